package link

// A pace is how fast the network takes what is sent to a peer, as long as something waits for that: the mean
// of the last few measures, in nanoseconds a byte. A link on which too little was sent has no
// pace, and takes everything at once. The zero pace knows nothing.
type pace struct {
	last [paces]float64
	n    int     // measures so far
	calm int64   // until then copies count as more than the network takes
	each float64 // their mean; 0: not known
}

const (
	paces = 8

	measured = 32 << 10 // bytes of a measure at the least: fewer are frames, rather than bytes
)

// measure takes note of a measure.
func (p *pace) measure(each float64) {
	p.last[p.n%paces] = each
	p.n++
	p.each = 0
	known := min(p.n, paces)
	for _, x := range p.last[:known] {
		p.each += x / float64(known)
	}
}

// strained reports whether so many bytes take longer than a worker's step should wait for them.
func (p *pace) strained(bytes int) bool { return float64(bytes)*p.each > strain }

// copies returns how many bytes may be queued where refreshes and deltas are put in, limit at the most.
func (p *pace) copies(limit int) int {
	if p.each == 0 {
		return limit
	}
	return min(limit, max(int(soon/p.each), fewCopies))
}

const (
	// soon is for how many nanoseconds refreshes and deltas may keep the network busy. Answers that somebody waits for come
	// behind them, and what waits longer only becomes old: left for a later round, it is joined by further updates of the same keys.
	soon = 100e3

	// fewCopies is how many bytes of them may be queued in any case: with less, frames would be small, and many workers would sum updates of old rows.
	fewCopies = 64 << 10
)

// crowded reports whether so many bytes that wait are more than copies should wait for, or lately were.
func (p *pace) crowded(bytes int, now int64) bool {
	if float64(bytes)*p.each > crowd {
		p.calm = now + calm
	}
	return now < p.calm
}

// Copies are exchanged for steps far shorter than those ahead of which values are fetched. So a way is crowded for them when as much waits as takes half of
// the time that they may: 62 KB at 10 Gbit/s. Rounds fill a queue and let it run empty, so it stays crowded for the time of several.
const (
	crowd = soon / 2
	calm  = 10_000_000
)

// strain is from how many nanoseconds on bytes that wait for a link are worth making fewer: values
// are fetched ahead of steps that take as long, or longer. On a network of 10 Gbit/s they are a megabyte.
const strain = 1e6

// A stopwatch measures the pace of a simulated link, of which a frame is taken when those before
// have left.
type stopwatch struct {
	runs  bool  // something has waited ever since
	began int64 // … then, in nanoseconds
	bytes int   // that left
}

// taken is told that a frame is about to be taken, or that none is left.
func (w *stopwatch) taken(more bool, now int64, p *pace) {
	if w.runs && w.bytes >= measured {
		p.measure(float64(now-w.began) / float64(w.bytes))
		w.runs = false
	}
	if !w.runs {
		w.began, w.bytes = now, 0
	}
	w.runs = more
}
