package diagnose

import (
	"math"
	"slices"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/telemetry/record"
	"github.com/godwit-ps/godwit/telemetry/trace"
)

// An Input is what nodes did while they trained.
type Input struct {
	Policy string // of the run
	Nodes  []Node // those that trained, by number
}

// A Node is what one node did while it trained.
type Node struct {
	Node         godwit.NodeID                  // its number
	Workers      int                            // that it has
	Host         string                         // name of its machine
	record.Usage                                // where the time of its workers went
	Halves       [2]record.Usage                // … in the first and in the second half of its samples
	Accesses     record.Accesses                // keys of pulls and pushes
	Answered     uint64                         // how often its workers waited for answers
	Processor    float64                        // seconds of processor time
	Delayed      float64                        // seconds for which its threads were ready and had no processor
	Rounds       float64                        // … of which rounds took so many
	Stalled      float64                        // seconds for which processes of its machine waited for memory
	Used         uint64                         // the most memory that it had, in bytes; 0: not known
	Available    uint64                         // the least memory that processes could still get, in bytes; 0: not known
	Sent         map[string]uint64              // bytes of records, by kind
	Leads        record.Times                   // from asking for a key, because of an intent, to its arrival
	Intents      record.Intents                 // what its workers announced
	Answers      map[godwit.NodeID]record.Times // of operations, by the peer that was asked, or of several the one that answered last
	Waste        record.Waste                   // of a sample of the keys
	Missed       uint64                         // accesses of traced keys that were not served at once
	Traced       uint64                         // accesses of traced keys
	Hot          []trace.KeyUse                 // keys of which there is most to say
	Most         int                            // so few keys have four fifths of the refreshes
}

// From puts together what the nodes of a run did while they trained: in the time between two samples in
// which examples were trained. Of programs that count no examples, steps count.
func From(r *record.Run) Input { return Recent(r, math.MaxInt64) }

// Recent is From of the last samples, which span a time at the most.
func Recent(r *record.Run, span time.Duration) (in Input) {
	in.Policy = r.About.Policy
	for i, n := range r.Nodes {
		if n == nil || len(n.Samples) < 2 {
			continue
		}
		samples := n.Samples
		for len(samples) > 2 && samples[len(samples)-1].Time-samples[0].Time > int64(span) {
			samples = samples[1:]
		}
		x := in.node(i, &n.Header)
		items := samples[len(samples)-1].Items > samples[0].Items
		for j := 1; j < len(samples); j++ {
			a, b := &samples[j-1], &samples[j]
			if trained(a, b, items) {
				x.add(a, b, min(1, 2*j/len(samples)))
				x.addSums(a, b)
			}
		}
		in.take(x, &samples[len(samples)-1])
	}
	return in
}

// Scan is From of a run of [record.Outline], whose samples it reads one by one and does not keep. It calls tell when so many more of their bytes are read.
func Scan(r *record.Run, tell func(bytes int)) (in Input, err error) {
	in.Policy = r.About.Policy
	for i, n := range r.Nodes {
		if n == nil {
			continue
		}
		s := scan{in: &in, header: &n.Header, number: i}
		last, err := r.Each(godwit.NodeID(i), s.pair, tell)
		if err != nil {
			return in, err
		}
		if s.node != nil {
			s.end(last)
			in.take(s.node, s.whole(last))
		}
	}
	return in, nil
}

// A scan puts together what one node did, from pairs of samples.
type scan struct {
	in     *Input
	header *record.Header
	number int
	node   *Node // nil: there was no pair
	items  bool  // the node counts examples
	// The first sample of those that the node trained between one and the next, up to now; nil: it does not train. What is a sum counts from it to the last
	// of them at once: to read it takes most of the time.
	from *record.Sample
}

// pair takes a sample and the one before it.
func (s *scan) pair(a, b *record.Front) {
	switch {
	case s.node == nil:
		s.node = s.in.node(s.number, s.header)
		s.items = b.Items > a.Items
	case !s.items && b.Items > a.Items: // the steps before were none of training
		s.node, s.from, s.items = s.in.node(s.number, s.header), nil, true
	}
	if !trained(&a.Sample, &b.Sample, s.items) {
		s.end(a)
		return
	}
	if s.from == nil {
		s.from = s.whole(a)
	}
	s.node.add(&a.Sample, &b.Sample, b.Half)
}

// end takes note that the node does not train after a sample.
func (s *scan) end(f *record.Front) {
	if s.from != nil {
		s.node.addSums(s.from, s.whole(f))
	}
	s.from = nil
}

// whole returns a sample with all of its fields; of one that has fields of other types, with those that were read before.
func (s *scan) whole(f *record.Front) *record.Sample {
	x, err := f.Whole()
	if err != nil {
		return &f.Sample
	}
	return &x
}

// node returns a node of which nothing is known yet.
func (in *Input) node(i int, h *record.Header) *Node {
	if in.Policy == "" {
		in.Policy = h.Policy
	}
	x := &Node{Node: godwit.NodeID(i), Workers: max(1, h.Workers), Host: h.Host, Sent: map[string]uint64{}, Answers: map[godwit.NodeID]record.Times{}}
	x.Waits, x.Halves[0].Waits, x.Halves[1].Waits = map[string]float64{}, map[string]float64{}, map[string]float64{}
	return x
}

// take takes a node whose last sample is given, if it trained.
func (in *Input) take(x *Node, last *record.Sample) {
	if x.Seconds > 0 {
		x.keys(last)
		in.Nodes = append(in.Nodes, *x)
	}
}

// trained reports whether the node trained between two samples, by its examples or by its steps.
func trained(a, b *record.Sample, items bool) bool {
	return items && b.Items > a.Items || !items && b.Steps > a.Steps
}

// add adds what the fronts of two samples say of what the node did between them, in one half of its time.
func (x *Node) add(a, b *record.Sample, half int) {
	u := b.Since(a, x.Workers)
	sum(&x.Usage, &u)
	sum(&x.Halves[half], &u)
	p, q := &a.Accesses, &b.Accesses
	x.Accesses.Local += q.Local - p.Local
	x.Accesses.Replica += q.Replica - p.Replica
	x.Accesses.Ahead += q.Ahead - p.Ahead
	x.Accesses.Queued += q.Queued - p.Queued
	x.Accesses.Remote += q.Remote - p.Remote
	x.Accesses.Late += q.Late - p.Late
	x.Answered += waits(b) - waits(a)
	x.Processor += seconds(b.Process.Processor - a.Process.Processor)
	x.Delayed += max(0, seconds(b.Process.Delayed-a.Process.Delayed))
	x.Rounds += seconds(b.RoundTime - a.RoundTime)
	x.Stalled += seconds(b.Process.Stalled - a.Process.Stalled)
	x.Used = max(x.Used, b.Process.Used)
	if n := b.Process.Available; n > 0 && (x.Available == 0 || n < x.Available) {
		x.Available = n
	}
}

// addSums adds the rest of what the node did between two samples: what it did between more of them is the sum.
func (x *Node) addSums(a, b *record.Sample) {
	for _, k := range b.Sent {
		before := uint64(0)
		if i := slices.IndexFunc(a.Sent, func(o record.Sent) bool { return o.Record == k.Record }); i >= 0 {
			before = a.Sent[i].Bytes
		}
		x.Sent[k.Record] += k.Bytes - before
	}
	x.Leads = plus(x.Leads, b.Leads, a.Leads)
	x.Intents.N += b.Intents.N - a.Intents.N
	x.Intents.Keys += b.Intents.Keys - a.Intents.Keys
	x.Intents.Ahead += b.Intents.Ahead - a.Intents.Ahead
	for _, p := range b.Peers {
		var before record.Times
		if i := slices.IndexFunc(a.Peers, func(o record.Peer) bool { return o.Node == p.Node }); i >= 0 {
			before = plus(a.Peers[i].Answers, a.Peers[i].Last, record.Times{})
		}
		x.Answers[p.Node] = plus(x.Answers[p.Node], plus(p.Answers, p.Last, record.Times{}), before)
	}
	x.Waste.Refreshes += b.Waste.Refreshes - a.Waste.Refreshes
	x.Waste.Unread += b.Waste.Unread - a.Waste.Unread
}

// keys takes what the last sample says of the traced keys.
func (x *Node) keys(s *record.Sample) {
	for _, t := range s.Tables {
		x.Missed += t.Missed
		x.Traced += t.Accesses
	}
	x.Hot, x.Most = s.Hot, s.Most
}

func waits(s *record.Sample) (n uint64) {
	for _, w := range s.Waits {
		if w.For == answers {
			n += w.N
		}
	}
	return n
}

// plus returns what t and the difference of two totals have together.
func plus(t, b, a record.Times) record.Times {
	return record.Times{N: t.N + b.N - a.N, Sum: t.Sum + b.Sum - a.Sum}
}

func sum(to, u *record.Usage) {
	to.Seconds += u.Seconds
	to.Items += u.Items
	to.Steps += u.Steps
	to.Compute += u.Compute
	to.Server += u.Server
	to.GC += u.GC
	to.Pauses += u.Pauses
	to.Waited += u.Waited
	for cause, s := range u.Waits {
		to.Waits[cause] += s
	}
}

func seconds(nanos int64) float64 { return float64(nanos) / 1e9 }

// crowding is the share of the time for which a node's threads would have run that they had no
// processor.
const crowding = 0.2

// Crowded reports whether the processors of the node's machine are taken: by other programs, or by more nodes than
// it has processors. Then its workers wait for nodes that wait for a processor, and no figure of
// theirs says what the run itself lacks.
func (x *Node) Crowded() bool { return x.Delayed > crowding*(x.Delayed+x.Processor) }

// Crowded reports whether a node of the run is on a machine whose processors are taken.
func (in *Input) Crowded() bool {
	return slices.ContainsFunc(in.Nodes, func(n Node) bool { return n.Crowded() })
}
