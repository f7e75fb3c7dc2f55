// Package packing compresses the frames of a connection where that makes them shorter.
package packing

import (
	"fmt"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/filter"
	"github.com/godwit-ps/godwit/internal/wire"
)

// A Packer compresses the frames to one peer, where that makes them shorter. It
// belongs to who writes. What it does depends on the frames alone.
//
// Floats seldom compress. So a frame that did not get shorter by one part in
// gain is sent as it is, and the next ones are not tried; then one is, a sample
// of it first; and the pause doubles each time that it does not pay.
type Packer struct {
	by    filter.Compress
	takes wire.Features // 0: nothing is compressed
	buf   []byte
	skip  int // frames to let pass before the next is tried
	pause int // how many that was the last time
}

const (
	gain      = 8
	leastPack = 256     // bytes of a frame that is tried
	sample    = 8 << 10 // bytes
	maxPaused = 64      // frames
)

// Set has frames compressed by a method, if the peer takes that.
func (p *Packer) Set(by filter.Compress, takes wire.Features) {
	if t := takenBy(by); t&takes != 0 {
		p.by, p.takes = by, t
	}
}

// takenBy is what a peer must take to be sent what a method compressed.
func takenBy(by filter.Compress) wire.Features {
	switch by.Method {
	case filter.S2:
		return wire.SupportsS2
	case filter.Zstd:
		return wire.SupportsZstd
	}
	return 0
}

// Pack returns the frame compressed, in memory that is used for the next one,
// or nil where it should be sent as it is.
func (p *Packer) Pack(frame []byte) []byte {
	if p.takes == 0 || len(frame) < leastPack {
		return nil
	}
	if p.skip > 0 {
		p.skip--
		return nil
	}
	if p.pause > 0 && len(frame) > 4*sample {
		part := frame[len(frame)/2:][:sample]
		if b, err := p.by.Pack(p.buf[:0], part); err != nil || !pays(b, part) {
			return p.failed()
		}
	}
	b, err := wire.Compress(p.buf, frame, p.takes, p.by.Pack)
	if err != nil {
		return p.failed()
	}
	p.buf = b
	if !pays(b, frame) {
		return p.failed()
	}
	p.pause = 0
	return b
}

func pays(packed, frame []byte) bool { return len(packed) < len(frame)-len(frame)/gain }

func (p *Packer) failed() []byte {
	p.pause = min(max(2*p.pause, 1), maxPaused)
	p.skip = p.pause
	return nil
}

// Of returns how the frames of a model are compressed. Its tables may not
// differ in that, since frames carry records of all of them.
func Of(m *godwit.Model) (by filter.Compress, err error) {
	for i := range m.Tables() {
		for _, f := range m.Table(i).Filters {
			c, ok := f.(filter.Compress)
			if ok && by.Method != "" && by != c {
				return by, fmt.Errorf("a table has its frames compressed by %s, table %q by %s: frames carry records of both", by.Name(), m.Table(i).Name, c.Name())
			}
			if ok {
				by = c
			}
		}
	}
	return by, nil
}

// Unpacked returns a frame as it was before it was compressed: a compressed one
// in the memory of dst, any other as it is. The error says what is wrong with a
// compressed one.
func Unpacked(dst, frame []byte) ([]byte, error) {
	switch wire.Compression(frame) {
	case wire.SupportsS2:
		return wire.Decompress(dst, frame, filter.Compress{Method: filter.S2}.Unpack)
	case wire.SupportsZstd:
		return wire.Decompress(dst, frame, filter.Compress{Method: filter.Zstd}.Unpack)
	}
	return frame, nil
}
