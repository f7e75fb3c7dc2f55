package link

import "slices"

// A pace is how fast the network takes what waits for a link, as long as something waits.
// The median of the last measures counts: in some, who writes has lost the processor, the peer's
// reader was late, or the system had room for all. A link for which never so much waited has
// no pace, and takes everything at once. The zero pace knows nothing.
//
// The queue's lock guards each; the other fields belong to who writes.
type pace struct {
	busy  bool  // of a simulated node: something waits
	began int64 // of the measure, in nanoseconds
	bytes int   // that left in it
	last  [paces]float64
	n     int     // measures so far
	each  float64 // nanoseconds a byte; 0: not known
}

const (
	paces    = 8
	measured = 32 << 10 // bytes of a measure at the least; fewer are frames, rather than bytes
)

// begin begins a measure: something is queued from now on.
func (p *pace) begin(now int64) { p.began, p.bytes = now, 0 }

// left takes note that bytes have left.
func (p *pace) left(bytes int) { p.bytes += bytes }

// enough reports whether so much has left that it may be measured.
func (p *pace) enough() bool { return p.bytes >= measured }

// measure ends a measure of enough bytes and begins the next one.
func (p *pace) measure(now int64) {
	p.last[p.n%paces] = float64(now-p.began) / float64(p.bytes)
	p.n++
	sorted := p.last
	known := sorted[:min(p.n, paces)]
	slices.Sort(known)
	p.each = known[len(known)/2]
	p.begin(now)
}

// strained reports whether so many bytes take longer than a worker's step should wait for them.
func (p *pace) strained(bytes int) bool { return float64(bytes)*p.each > strain }

// strain is from how many nanoseconds on bytes that wait for a link are worth making fewer: values
// are fetched ahead of steps that take as long, or longer. On a network of 10 Gbit/s they are a megabyte.
const strain = 1e6
