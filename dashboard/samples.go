package dashboard

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/godwit-ps/godwit/dashboard/internal/index"
	"github.com/godwit-ps/godwit/telemetry/diagnose"
	"github.com/godwit-ps/godwit/telemetry/record"
)

// describe adds what a run's nodes say of it, for as many nodes as it has.
func (r *run) describe(o object, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	nodes := make([]object, n)
	for i := range nodes {
		nodes[i] = object{"id": i}
	}
	o["nodes"] = nodes
	if r.rec == nil {
		return
	}
	for i, x := range r.rec.Nodes {
		if x != nil && i < n {
			nodes[i]["host"], nodes[i]["pid"], nodes[i]["workers"] = x.Header.Host, x.Header.PID, x.Header.Workers
		}
	}
	if s := r.rec.Start(); s != nil {
		o["task"], o["unit"], o["data"], o["epochs"] = s.Task, s.Unit, s.Data, s.Epochs
	}
}

// mostPoints is how many epochs and evaluations of a run curves have at the most, beside its last ones: more than a picture has columns.
const mostPoints = 1000

// chosen reports whether the i-th of n is one of mostPoints that lie evenly, or the last.
func chosen(i, n int) bool {
	return n <= mostPoints || i == n-1 || i == 0 || i*mostPoints/n != (i-1)*mostPoints/n
}

// curves returns the loss and the metrics of a run that began at a time, in ns since 1970. Of many epochs it has some.
func (r *run) curves(start int64) (loss, metrics []object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	loss, metrics = []object{}, []object{}
	if r.rec == nil {
		return loss, metrics
	}
	said := map[string]record.Metric{} // of the last evaluation
	tell := func(t float64, epoch int, list []record.Metric) {
		for _, m := range list {
			name := fmt.Sprint(epoch, " ", m.Split, " ", m.Name)
			if said[name] != m { // the end of a run may say again what its last evaluation said
				metrics = append(metrics, object{"t": t, "epoch": epoch, "split": m.Split, "name": m.Name, "value": m.Value})
			}
			said[name] = m
		}
	}
	epochs, evaluations := 0, 0
	for _, e := range r.rec.Events {
		if e.Epoch != nil {
			epochs++
		}
		if e.Evaluation != nil {
			evaluations++
		}
	}
	epoch, evaluation := 0, 0
	for _, e := range r.rec.Events {
		t := seconds(e.Time.UnixNano() - start)
		if x := e.Epoch; x != nil {
			if chosen(epoch, epochs) {
				loss = append(loss, object{"t": t, "epoch": x.Epoch, "loss": x.Loss})
			}
			epoch++
		}
		if x := e.Evaluation; x != nil {
			if chosen(evaluation, evaluations) {
				tell(t, x.Epoch, x.Metrics)
			}
			evaluation++
		}
		if x := e.End; x != nil {
			tell(t, x.Epochs, x.Metrics)
		}
	}
	return loss, metrics
}

// A counter is a figure of samples that only grows, in its unit.
type counter struct {
	name string
	of   func(*record.Sample) float64
}

// counters returns the counters that samples of a node have.
func counters(n *record.Node) []counter {
	last := &n.Samples[len(n.Samples)-1]
	list := []counter{
		{"throughput", func(s *record.Sample) float64 { return float64(s.Items) }},
		{"gc", func(s *record.Sample) float64 { return seconds(s.Process.GC) }},
		{"processor", func(s *record.Sample) float64 { return seconds(s.Process.Processor) }},
		{"rounds", func(s *record.Sample) float64 { return float64(s.Rounds) }},
		{"sent", func(s *record.Sample) float64 { return float64(s.SentBytes) }},
	}
	for _, w := range last.Waits {
		list = append(list, counter{"wait." + w.For, func(s *record.Sample) float64 {
			for _, x := range s.Waits {
				if x.For == w.For {
					return seconds(x.Time)
				}
			}
			return 0
		}})
	}
	for _, k := range last.Sent {
		list = append(list, counter{"bytes." + k.Record, func(s *record.Sample) float64 {
			for _, x := range s.Sent {
				if x.Record == k.Record {
					return float64(x.Bytes)
				}
			}
			return 0
		}})
	}
	return list
}

// A spot is a time between two samples of a node.
type spot struct {
	a, b *record.Sample
	part float64 // of the time from a to b
}

// spotAt returns where a time of the node, in ns, lies between its samples. It has none (nil) where there is no sample.
func spotAt(n *record.Node, t int64) (x spot) {
	s := n.Samples
	i := sort.Search(len(s), func(i int) bool { return s[i].Time >= t })
	switch {
	case i == len(s) || i == 0 && s[0].Time > t+int64(1e9):
		return x
	case i == 0 || s[i].Time == s[i-1].Time:
		return spot{&s[i], &s[i], 0}
	}
	return spot{&s[i-1], &s[i], float64(t-s[i-1].Time) / float64(s[i].Time-s[i-1].Time)}
}

// of returns a figure at the spot: between two samples it is on the line between them. It is not known (NaN) where there is no sample.
func (x spot) of(figure func(*record.Sample) float64) float64 {
	if x.a == nil {
		return math.NaN()
	}
	return figure(x.a)*(1-x.part) + figure(x.b)*x.part
}

// number is what JSON has of a figure: null where it is not known.
func number(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}

// sampled adds the series of a node's samples, for windows of the run's time.
func (r *run) sampled(series object, node int, start int64, s *index.Series) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.node(node)
	if n == nil {
		return
	}
	late := n.Header.Start - start
	begin, ends := spotAt(n, s.From-late), make([]spot, s.Cols) // of windows
	for i := range ends {
		_, to := s.Window(i)
		ends[i] = spotAt(n, to-late)
	}
	for _, c := range counters(n) {
		list := make([]*float64, s.Cols)
		last := begin.of(c.of)
		for i := range list {
			now := ends[i].of(c.of)
			from, to := s.Window(i)
			list[i] = number(max(0, now-last) / seconds(to-from))
			last = now
		}
		series[c.name] = list
	}
	for i, x := range series["gc"].([]*float64) {
		if all := series["processor"].([]*float64)[i]; x != nil && all != nil && *all > 0 {
			*x = min(*x, *all) // Go's estimate has time in which other processes had the processors
		}
	}
	queued := make([]*float64, s.Cols)
	for i := range queued {
		queued[i] = number(ends[i].of(func(x *record.Sample) (bytes float64) {
			for _, p := range x.Peers {
				bytes += float64(p.Queued)
			}
			return bytes
		}))
	}
	series["queued"] = queued
}

// node returns what a node wrote; nil: nothing. It is called under the lock.
func (r *run) node(i int) *record.Node {
	if r.rec == nil || i >= len(r.rec.Nodes) || r.rec.Nodes[i] == nil || len(r.rec.Nodes[i].Samples) == 0 {
		return nil
	}
	return r.rec.Nodes[i]
}

// usage returns where the time of a node went within a range of the run's time.
func (r *run) usage(node int, start, from, to int64) (u record.Usage, first, last *record.Sample, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.node(node)
	if n == nil {
		return u, nil, nil, false
	}
	late, s := n.Header.Start-start, n.Samples
	a := sort.Search(len(s), func(i int) bool { return s[i].Time+late >= from })
	b := sort.Search(len(s), func(i int) bool { return s[i].Time+late > to }) - 1
	if a >= b {
		a, b = max(0, min(b, len(s)-1)-1), max(0, min(b, len(s)-1)) // the last second of it
	}
	if a == b {
		return u, nil, nil, false
	}
	x, y := s[a], s[b]
	return y.Since(&x, n.Header.Workers), &x, &y, true
}

// span is the range of time of a request: without one it is the last ten seconds of a run that is live, and all of
// another.
func (r *request) span(run *run, to int64) (int64, int64) {
	from := int64(0)
	if run.growing() {
		from = max(0, to-10e9)
	}
	return r.time("from", from), min(r.time("to", to), to)
}

// overview answers how the run goes.
func (s *Server) overview(r *request) (any, error) {
	run, ix, err := s.of(r)
	if err != nil {
		return nil, err
	}
	x := ix.State()
	from, to := r.span(run, x.To)
	if r.err != nil {
		return nil, r.err
	}
	until := to
	if to == x.To {
		until = math.MaxInt64 // the last sample of a node follows its last event
	}
	nodes, speeds, waste := []object{}, map[int]float64{}, record.Waste{}
	for n := range x.Header.Nodes {
		u, a, b, ok := run.usage(n, x.Start, from, until)
		if !ok {
			nodes = append(nodes, object{"id": n, "seconds": nil, "parts": nil, "throughput": nil, "speed": nil})
			continue
		}
		parts := object{"compute": u.Compute, "server": u.Server, "gc": u.GC}
		for cause, t := range u.Waits {
			parts[cause] = t
		}
		nodes = append(nodes, object{"id": n, "seconds": u.Compute + u.Waited, "parts": parts, "throughput": number(float64(u.Items) / u.Seconds), "speed": nil})
		if u.Items > 0 && u.Compute > 0 {
			speeds[n] = float64(u.Items) / u.Compute
		}
		add(&waste, &a.Waste, &b.Waste)
	}
	var slowest any
	least := math.Inf(1)
	for n, v := range speeds {
		x := v / median(without(speeds, n))
		nodes[n]["speed"] = number(x)
		if v < least {
			least, slowest = v, object{"node": n, "speed": number(x)}
		}
	}
	if len(speeds) < 2 {
		slowest = nil
	}
	loss, metrics := run.curves(x.Start)
	o := object{"from": seconds(from), "to": seconds(to), "nodes": nodes, "slowest": slowest, "waste": wasted(&waste, ix), "loss": loss, "metrics": metrics, "findings": []object{}}
	o["verdict"], o["findings"] = run.verdict(time.Duration(to - from))
	return o, nil
}

// bad is the share of the workers' time from which on an ill is one.
const bad = 0.1

// verdict says in a sentence how the run goes, and what holds it up, the worst first. Of a run that is live it is what held it up of late.
func (r *run) verdict(span time.Duration) (sentence any, findings []object) {
	live := r.growing()
	r.mu.Lock()
	defer r.mu.Unlock()
	findings = []object{}
	if r.rec == nil {
		return nil, findings
	}
	in := diagnose.From(r.rec)
	if live {
		in = diagnose.Recent(r.rec, max(span, 10*time.Second))
	}
	if why := r.rec.Failure(); why != "" { // worse than all that slowed it down
		findings = append(findings, object{"ill": "failed", "text": "the run failed: " + why, "advice": nil, "share": nil, "figures": object{}, "node": nil, "level": "bad"})
	}
	if len(in.Nodes) == 0 && len(findings) == 0 {
		text := "no node told how it trained"
		if live {
			text = "no node has told yet how it trains: each does so every second"
		}
		return object{"text": text, "level": "note"}, findings
	}
	for _, f := range diagnose.Diagnose(in) {
		figures := object{}
		for name, x := range f.Figures {
			figures[name] = number(x)
		}
		o := object{"ill": f.Ill, "text": f.Text, "advice": f.Advice, "share": number(f.Loss), "figures": figures, "node": nil, "level": "note"}
		if f.Node >= 0 {
			o["node"] = f.Node
		}
		if f.Loss >= bad {
			o["level"] = "bad"
		}
		findings = append(findings, o)
	}
	switch {
	case len(findings) > 0:
		return findings[0], findings
	case in.Crowded():
		return object{"text": "the processors are taken by more than they can do at once: why workers wait is not known", "level": "note"}, findings
	}
	return object{"text": "the run is well", "level": "ok"}, findings
}

func median(of map[int]float64) float64 {
	var all []float64
	for _, x := range of {
		all = append(all, x)
	}
	slices.Sort(all)
	if len(all) == 0 {
		return math.NaN()
	}
	return (all[len(all)/2] + all[(len(all)-1)/2]) / 2
}

// without returns the figures of all nodes but one.
func without(of map[int]float64, node int) map[int]float64 {
	others := maps.Clone(of)
	delete(others, node)
	return others
}

func add(w, a, b *record.Waste) {
	w.Accesses += b.Accesses - a.Accesses
	w.Refreshes += b.Refreshes - a.Refreshes
	w.Unread += b.Unread - a.Unread
	w.Drops += b.Drops - a.Drops
	w.DroppedUnread += b.DroppedUnread - a.DroppedUnread
	w.Intents += b.Intents - a.Intents
	w.Unused += b.Unused - a.Unused
}

// wasted says what the adaptation was not good for; nil: nobody sampled it.
func wasted(w *record.Waste, ix *index.Index) any {
	if *w == (record.Waste{}) {
		return nil
	}
	share := func(part, of uint64) *float64 { return number(float64(part) / float64(of)) }
	accesses, moves := ix.Moved()
	return object{"unread": share(w.Unread, w.Refreshes), "dropped": share(w.DroppedUnread, w.Drops), "unused": share(w.Unused, w.Intents), "touches": share(accesses, moves)}
}

// series returns what happened at a node in windows of time, from its trace.
func series(s *index.Series, node int) object {
	o := object{}
	for c, name := range seriesNames {
		o[name] = rates(s.Nodes[node][c], s)
	}
	return o
}

// ends returns when windows end.
func endsOf(s *index.Series) []float64 {
	t := make([]float64, s.Cols)
	for i := range t {
		_, to := s.Window(i)
		t[i] = seconds(to)
	}
	return t
}

// cluster answers with what happened over time.
func (s *Server) cluster(r *request) (any, error) {
	run, ix, err := s.of(r)
	if err != nil {
		return nil, err
	}
	x := ix.State()
	from, to, cols := r.time("from", 0), r.time("to", x.To), r.number("cols", 300, 1, 1000)
	if r.err != nil {
		return nil, r.err
	}
	all := ix.Series(from, to, cols)
	nodes := []object{}
	for n := range all.Nodes {
		o := series(all, n)
		run.sampled(o, n, x.Start, all)
		nodes = append(nodes, object{"id": n, "series": o})
	}
	loss, metrics := run.curves(x.Start)
	return object{"t": endsOf(all), "nodes": nodes, "skew": skew(nodes, all.Cols), "loss": loss, "metrics": metrics}, nil
}

// skew returns the throughput of the slowest node by that of the one in the middle; null where nobody trains.
func skew(nodes []object, cols int) []*float64 {
	list := make([]*float64, cols)
	for i := range list {
		rate := map[int]float64{}
		for n, o := range nodes {
			if t, ok := o["series"].(object)["throughput"].([]*float64); ok && t[i] != nil {
				rate[n] = *t[i]
			}
		}
		least := math.Inf(1)
		for _, x := range rate {
			least = min(least, x)
		}
		if middle := median(rate); len(rate) > 1 && middle >= 1 {
			list[i] = number(least / middle)
		}
	}
	return list
}

// compareCols is how many windows runs are compared in.
const compareCols = 100

// compare answers with two runs beside each other.
func (s *Server) compare(r *request) (any, error) {
	run, ix, err := s.of(r)
	if err != nil {
		return nil, err
	}
	other, err := s.runs.get(r.FormValue("other"))
	if err != nil {
		return nil, err
	}
	otherIndex, err := other.await(r.Context())
	if err != nil {
		return nil, err
	}
	return object{"runs": []object{run.summary(ix), other.summary(otherIndex)}}, nil
}

// summary is a run beside another one.
func (r *run) summary(ix *index.Index) object {
	x := ix.State()
	s := ix.Series(0, x.To, compareCols)
	sums, all := [index.Counted]float64{}, object{}
	for c, name := range seriesNames {
		total := make([]float64, s.Cols)
		for _, n := range s.Nodes {
			for i, k := range n[c] {
				total[i] += k
				sums[c] += k
			}
		}
		all[name] = rates(total, s)
	}
	loss, metrics := r.curves(x.Start)
	return object{
		"name": r.name, "policy": x.Header.Policy, "nodes": x.Header.Nodes, "seconds": seconds(x.To), "done": x.Done,
		"accesses": math.Round(sums[index.Accesses]), "missed": math.Round(sums[index.Misses]), "moves": sums[index.Moves], "copies": sums[index.Copies],
		"refreshes": math.Round(sums[index.Refreshes]),
		"t":         endsOf(s), "series": all, "loss": loss, "metrics": metrics,
	}
}
