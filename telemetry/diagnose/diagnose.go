package diagnose

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/plural"
	"github.com/godwit-ps/godwit/telemetry/record"
)

type (
	usage = record.Usage
	times = record.Times
)

// An Ill is what holds up a run.
type Ill string

// The ills that are known.
const (
	SlowNode       Ill = "slow node"
	SlowLink       Ill = "slow link"
	LateIntents    Ill = "late intents"
	HotKey         Ill = "hot key"
	SmallBatches   Ill = "small batches"
	MemoryPressure Ill = "memory pressure"
	NoIntents      Ill = "no announcements"
	VainRefreshes  Ill = "vain refreshes"
)

// A Finding is an ill that a run has.
type Finding struct {
	Ill     Ill                `json:"ill"`            // which one
	Loss    float64            `json:"loss"`           // share of the workers' time that it costs, as an estimate: 0 … 1
	Node    int                `json:"node"`           // whose it is; -1: no single node's
	Peer    int                `json:"peer"`           // the other end of a link; else -1
	Keys    []godwit.Key       `json:"keys,omitempty"` // that it is about
	Text    string             `json:"text"`           // what was found, with figures
	Advice  string             `json:"advice"`         // what to do
	Figures map[string]float64 `json:"figures"`        // what the text says, for programs: times in seconds, shares of 1
}

// What a run must show at least for something to be an ill.
const (
	answers    = "answers" // the cause of waits for other nodes
	waiting    = 0.05      // share of a worker's time that it waits for answers
	slowSpeed  = 0.8       // of the other nodes' speed
	slowAnswer = 3         // times as long as other links take
	farMicros  = 300       // by which a link takes longer, in µs
	fewMeasure = 20        // operations by which a link is judged
	announced  = 0.05      // announced keys for each access
	manyClocks = 6         // batches: a loader that would have to look further ahead has small ones
	hotShare   = 0.4       // of accesses that waited
	fewKeys    = 16        // are hot at the most
	unread     = 0.5       // share of refreshes
	collecting = 0.15      // share of processor time
	stalling   = 0.02      // share of time
	scarce     = 0.05      // of memory is left
)

// Diagnose returns the ills of a run, the one that costs most first. Where processors are taken
// ([Input.Crowded]), why workers wait is not known, and nothing is said of that.
func Diagnose(in Input) []Finding {
	d := &doctor{in: in}
	d.slowNodes()
	d.slowLinks()
	d.memory()
	d.waits()
	d.refreshes()
	slices.SortStableFunc(d.found, func(a, b Finding) int { return cmp.Compare(b.Loss, a.Loss) })
	return d.found
}

// A doctor looks for one ill after the other.
type doctor struct {
	in    Input
	slow  []godwit.NodeID    // nodes that compute slowly
	far   [][2]godwit.NodeID // links that answer slowly
	found []Finding
}

func (d *doctor) find(f Finding) {
	f.Loss = min(1, max(0, f.Loss))
	d.found = append(d.found, f)
}

// speed is how much a node trains in a second of computing.
func speed(u *usage) float64 {
	n := u.Items
	if n == 0 {
		n = u.Steps
	}
	return float64(n) / max(u.Compute, 1e-9)
}

// slowNodes looks for nodes that compute more slowly than the others, in both halves of the time.
func (d *doctor) slowNodes() {
	for i := range d.in.Nodes {
		n := &d.in.Nodes[i]
		if n.Crowded() && d.together() {
			continue // one machine has one speed
		}
		ratio := d.ratio(i, func(n *Node) float64 { return speed(&n.Usage) })
		steady := max(d.ratio(i, func(n *Node) float64 { return speed(&n.Halves[0]) }), d.ratio(i, func(n *Node) float64 { return speed(&n.Halves[1]) }))
		if ratio == 0 || ratio > slowSpeed || steady > (1+slowSpeed)/2 {
			continue
		}
		d.slow = append(d.slow, n.Node)
		f := Finding{Ill: SlowNode, Node: int(n.Node), Peer: -1, Figures: map[string]float64{"speed": ratio},
			Text:   fmt.Sprintf("node %d runs at %.0f %% of the others' speed", n.Node, 100*ratio),
			Advice: "look what else runs on its machine, and how fast that is; a node of a run is held up by nothing of Godwit's when it computes"}
		if busy := n.Processor / max(n.Seconds*float64(n.Workers)-n.Waited, 1e-9); n.Processor > 0 {
			f.Figures["processor"] = busy
			if busy < slowSpeed {
				f.Text += fmt.Sprintf(": while its workers compute, they get a processor for %.0f %% of the time", 100*busy)
				f.Advice = "something else uses its processors: end that, or give the node fewer workers (--workers)"
			}
		}
		f.Loss = (1-ratio)/float64(len(d.in.Nodes)) + d.share(func(n *Node) float64 { return n.Waits["barrier"] + n.Waits["bound"] })
		d.find(f)
	}
}

// together reports whether all nodes are on one machine.
func (d *doctor) together() bool {
	return !slices.ContainsFunc(d.in.Nodes, func(n Node) bool { return n.Host == "" || n.Host != d.in.Nodes[0].Host })
}

// ratio returns a figure of a node over the median of the others'; 0 if there is none to compare with.
func (d *doctor) ratio(node int, of func(*Node) float64) float64 {
	var others []float64
	for i := range d.in.Nodes {
		if x := of(&d.in.Nodes[i]); i != node && x > 0 {
			others = append(others, x)
		}
	}
	if len(others) == 0 {
		return 0
	}
	return of(&d.in.Nodes[node]) / median(others)
}

func median(xs []float64) float64 {
	slices.Sort(xs)
	if n := len(xs); n%2 == 0 {
		return (xs[n/2-1] + xs[n/2]) / 2
	}
	return xs[len(xs)/2]
}

// share returns the share of all workers' time that something takes.
func (d *doctor) share(of func(*Node) float64) float64 {
	part, all := 0.0, 0.0
	for i := range d.in.Nodes {
		n := &d.in.Nodes[i]
		part, all = part+of(n), all+n.Seconds*float64(n.Workers)
	}
	return part / max(all, 1e-9)
}

// A way is what is known of how long answers take between two nodes.
type way struct {
	a, b godwit.NodeID
	n    uint64
	mean float64 // seconds
}

// slowLinks looks for two nodes that answer each other more slowly than the others do, which neither of
// them does to all.
func (d *doctor) slowLinks() {
	if d.in.Crowded() {
		return
	}
	var ways []way
	for i := range d.in.Nodes {
		for j := range i {
			a, b := &d.in.Nodes[j], &d.in.Nodes[i]
			t := plus(a.Answers[b.Node], b.Answers[a.Node], times{})
			if t.N >= fewMeasure {
				ways = append(ways, way{a.Node, b.Node, t.N, seconds(t.Sum) / float64(t.N)})
			}
		}
	}
	var all []float64
	of := map[godwit.NodeID][]float64{} // the ways of a node
	for _, w := range ways {
		all, of[w.a], of[w.b] = append(all, w.mean), append(of[w.a], w.mean), append(of[w.b], w.mean)
	}
	slices.Sort(all)
	for _, times := range of {
		slices.Sort(times)
	}
	for _, w := range ways {
		usual := max(medianWithout(all, w.mean), medianWithout(of[w.a], w.mean), medianWithout(of[w.b], w.mean))
		if usual == 0 || w.mean < slowAnswer*usual || w.mean-usual < farMicros*1e-6 {
			continue
		}
		d.far = append(d.far, [2]godwit.NodeID{w.a, w.b})
		d.find(Finding{Ill: SlowLink, Node: int(w.a), Peer: int(w.b), Figures: map[string]float64{"answer": w.mean, "others": usual},
			Loss: d.share(func(n *Node) float64 {
				if n.Node == w.a || n.Node == w.b {
					return n.Waits[answers]
				}
				return 0
			}),
			Text:   fmt.Sprintf("answers between nodes %d and %d take %v, between others %v", w.a, w.b, duration(w.mean), duration(usual)),
			Advice: "look at the network between their machines"})
	}
}

// medianWithout returns the median of sorted numbers other than one of them; 0: there are none.
func medianWithout(sorted []float64, one float64) float64 {
	but, _ := slices.BinarySearch(sorted, one)
	at := func(i int) float64 {
		if i >= but {
			i++
		}
		return sorted[i]
	}
	switch n := len(sorted) - 1; {
	case n <= 0:
		return 0
	case n%2 == 0:
		return (at(n/2-1) + at(n/2)) / 2
	default:
		return at(n / 2)
	}
}

// memory looks for nodes whose machine has too little of it.
func (d *doctor) memory() {
	for i := range d.in.Nodes {
		n := &d.in.Nodes[i]
		all := float64(n.Used) + float64(n.Available)
		left, stalled, gc := 1.0, n.Stalled/max(n.Seconds, 1e-9), n.GC/max(n.Processor, 1e-9)
		if n.Used > 0 && n.Available > 0 {
			left = float64(n.Available) / all
		}
		f := Finding{Ill: MemoryPressure, Node: int(n.Node), Peer: -1, Figures: map[string]float64{"stalled": stalled, "gc": gc, "left": left}, Loss: max(stalled, gc) / float64(len(d.in.Nodes))}
		switch {
		case stalled >= stalling:
			f.Text = fmt.Sprintf("on the machine of node %d, processes waited for memory for %.0f %% of the time; %s are left", n.Node, 100*stalled, size(n.Available))
			f.Loss = stalled // who waits for a node waits for its memory
			f.Advice = "give the machine more memory or fewer processes, or the run more nodes"
		// On a crowded machine, the runtime takes waiting for a processor for collecting.
		case gc >= collecting && min(n.Halves[0].GC, n.Halves[1].GC) >= n.GC/4 && !n.Crowded():
			f.Text = fmt.Sprintf("the collection of garbage takes %.0f %% of the processor time of node %d", 100*gc, n.Node)
			f.Advice = "set GOMEMLIMIT higher, or GOGC: the heap is collected too often for its size"
		case left < scarce:
			f.Text = fmt.Sprintf("node %d has %s of memory, and %s are left on its machine", n.Node, size(n.Used), size(n.Available))
			f.Loss = max(f.Loss, 0.1*(1-left/scarce)) // nothing is lost yet; the node is, soon
			f.Advice = "give the machine more memory or the run more nodes: when nothing is left, the node is killed"
		default:
			continue
		}
		d.find(f)
	}
}

// waits looks why workers wait for other nodes.
func (d *doctor) waits() {
	if d.in.Crowded() {
		return
	}
	worst := -1
	for i := range d.in.Nodes {
		if d.excused(&d.in.Nodes[i]) {
			continue
		}
		if worst < 0 || waited(&d.in.Nodes[i]) > waited(&d.in.Nodes[worst]) {
			worst = i
		}
	}
	if worst < 0 || waited(&d.in.Nodes[worst]) < waiting {
		return
	}
	n := &d.in.Nodes[worst]
	loss := d.share(func(n *Node) float64 {
		if d.excused(n) {
			return 0
		}
		return n.Waits[answers]
	})
	who := fmt.Sprintf("workers of node %d", n.Node)
	hot := d.hotKeys(n, who, loss)
	// What is said below is about the rest.
	if rest := loss * (1 - hot); rest >= waiting/2 {
		d.announcements(n, who, rest)
	}
}

// excused reports whether a node's waits have another cause, which was found.
func (d *doctor) excused(n *Node) bool {
	return slices.ContainsFunc(d.far, func(l [2]godwit.NodeID) bool { return l[0] == n.Node || l[1] == n.Node })
}

// waited is the share of its workers' time for which a node waited for answers.
func waited(n *Node) float64 { return n.Waits[answers] / max(n.Seconds*float64(n.Workers), 1e-9) }

// hotKeys looks whether few keys make the workers wait, and returns the share of accesses that
// waited for these.
func (d *doctor) hotKeys(n *Node, who string, loss float64) float64 {
	missed, of := map[godwit.Key]uint64{}, uint64(0)
	moves := uint64(0)
	for i := range d.in.Nodes {
		of += d.in.Nodes[i].Missed
		for _, k := range d.in.Nodes[i].Hot {
			missed[k.Key] += k.Missed
		}
	}
	var keys []godwit.Key
	for k := range missed {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b godwit.Key) int { return cmp.Or(cmp.Compare(missed[b], missed[a]), cmp.Compare(a, b)) })
	part := uint64(0)
	for i, k := range keys[:min(len(keys), fewKeys)] {
		if missed[k]*50 < of || missed[k] < fewMeasure { // no more than the others
			keys = keys[:i]
			break
		}
		part += missed[k]
	}
	keys = keys[:min(len(keys), fewKeys)]
	share := float64(part) / float64(max(1, of))
	if of < fewMeasure || share < hotShare {
		return 0
	}
	for i := range d.in.Nodes {
		for _, k := range d.in.Nodes[i].Hot {
			if slices.Contains(keys, k.Key) {
				moves += k.Moves
			}
		}
	}
	f := Finding{Ill: HotKey, Node: -1, Peer: -1, Keys: keys, Loss: loss * share, Figures: map[string]float64{"waited": waited(n), "share": share, "keys": float64(len(keys)), "moves": float64(moves)},
		Text: fmt.Sprintf("%s waited %.0f %% of the time, and %.0f %% of the accesses that had to wait were of %s, which moved %s", who, 100*waited(n), 100*share, name(keys), plural.Of(moves, "time"))}
	f.Advice = "train with --policy adaptive, which replicates what several nodes want"
	if name := nameOf(d.in.Policy); name == "" || name == "adaptive" || name == "adapm" || name == "adaptive-replicate-only" { // they do so
		f.Advice = "announce it further ahead, or with longer intents, so that its replicas stay"
	}
	d.find(f)
	return share
}

func name(keys []godwit.Key) string {
	if len(keys) == 1 {
		return fmt.Sprintf("key %d", keys[0])
	}
	return fmt.Sprintf("%d keys, the first of which is %d", len(keys), keys[0])
}

// announcements looks whether workers wait because of what they announced, or did not.
func (d *doctor) announcements(n *Node, who string, loss float64) {
	step := n.Compute / float64(max(1, n.Steps))                     // of a worker, without waits
	ahead := float64(n.Intents.Ahead) / float64(max(1, n.Intents.N)) // in batches
	wait := n.Waits[answers] / float64(max(1, n.Answered))
	lead := n.lead()
	figures := map[string]float64{"waited": waited(n), "step": step, "ahead": ahead, "wait": wait, "answer": lead}
	f := Finding{Node: int(n.Node), Peer: -1, Loss: loss, Figures: figures}
	none := float64(n.Intents.Keys) < announced*float64(n.Accesses.All())
	short := step > 0 && step*manyClocks < lead+wait
	need := math.Ceil((max(lead, 0)+wait)/max(step, 1e-9)) + ahead
	switch {
	case short:
		times := math.Ceil((lead + wait) / max(step, 1e-9))
		f.Ill, f.Text = SmallBatches, fmt.Sprintf("%s waited %.0f %% of the time: a batch is computed in %v, and a key of another node takes %v", who, 100*waited(n), duration(step), duration(max(lead, wait)))
		f.Figures["times"] = times
		f.Advice = fmt.Sprintf("make batches larger: of %.0f times the size, they take as long as a key", times)
		d.find(f)
		if !none {
			return
		}
		f.Figures = figures
		f.Loss *= 0.9
		fallthrough
	case none:
		if !actsOnIntents(d.in.Policy) {
			return
		}
		f.Ill, f.Text = NoIntents, fmt.Sprintf("%s waited %.0f %% of the time for keys of other nodes, and announced %.1f %% of their accesses", who, 100*waited(n), 100*float64(n.Intents.Keys)/float64(max(1, n.Accesses.All())))
		f.Advice = "announce the keys of batches to come (Worker.Intent, or a loader that does)"
		d.find(f)
	case ahead*step < lead+2*wait && ahead < manyClocks && actsOnIntents(d.in.Policy):
		f.Figures["need"] = need
		f.Ill, f.Text = LateIntents, fmt.Sprintf("%s waited %.0f %% of the time for keys that were announced %v too late: the loader looks %.0f %s ahead, %.0f would do", who, 100*waited(n), duration(wait), ahead, batches(ahead), max(need, ahead+1))
		f.Advice = fmt.Sprintf("have the loader announce batches %.0f steps before they are used", max(need, ahead+1))
		d.find(f)
	}
}

// lead returns how long a key of another node takes, in seconds; 0: not known.
func (n *Node) lead() float64 {
	if n.Leads.N > 0 {
		return n.Leads.Mean().Seconds()
	}
	var t times
	for _, x := range n.Answers {
		t = plus(t, x, times{})
	}
	return t.Mean().Seconds()
}

func batches(n float64) string {
	if math.Round(n) == 1 {
		return "batch"
	}
	return "batches"
}

// actsOnIntents reports whether a policy does anything about what is announced.
func actsOnIntents(policy string) bool {
	switch nameOf(policy) {
	case "static":
		return policy != "static" // with parameters, it fetches values ahead
	case "replicate", "stale":
		return false
	}
	return true
}

// nameOf returns a policy without its parameters.
func nameOf(policy string) string {
	name, _, _ := strings.Cut(policy, "(")
	return name
}

// refreshes looks whether replicas are refreshed that nobody reads.
func (d *doctor) refreshes() {
	var refresh, all, came, vain uint64
	keys := 0
	for i := range d.in.Nodes {
		n := &d.in.Nodes[i]
		refresh += n.Sent["refresh"]
		for _, b := range n.Sent {
			all += b
		}
		came, vain, keys = came+n.Waste.Refreshes, vain+n.Waste.Unread, max(keys, n.Most)
	}
	bytes, useless := float64(refresh)/float64(max(1, all)), float64(vain)/float64(max(1, came))
	rounds := d.share(func(n *Node) float64 { return n.Rounds })
	if bytes < unread || useless < unread || came < fewMeasure || rounds*useless < waiting {
		return
	}
	d.find(Finding{Ill: VainRefreshes, Node: -1, Peer: -1, Loss: rounds * useless, Figures: map[string]float64{"bytes": bytes, "unread": useless, "keys": float64(keys), "rounds": rounds},
		Text:   fmt.Sprintf("%.0f %% of bytes are refreshes of %d keys, and %.0f %% of these were not read before the next one", 100*bytes, keys, 100*useless),
		Advice: "end intents when the keys are used no more: while a node wants a key, its replica is refreshed"})
}

func duration(s float64) time.Duration {
	d := time.Duration(s * 1e9)
	switch {
	case d > 100*time.Millisecond:
		return d.Round(time.Millisecond)
	case d > time.Millisecond:
		return d.Round(10 * time.Microsecond)
	}
	return d.Round(100 * time.Nanosecond)
}

func size(bytes uint64) string {
	if bytes < 1e9 {
		return fmt.Sprintf("%.0f MB", float64(bytes)/1e6)
	}
	return fmt.Sprintf("%.1f GB", float64(bytes)/1e9)
}
