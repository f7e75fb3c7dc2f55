package trace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/godwit-ps/godwit"
)

// A Copier reads the segments of a node's trace in pieces, while the node writes them, so that they can be copied elsewhere. If it is
// more than two segments behind, it skips what is older than the newest segment. The copy then has an event Lost after the header of its next
// segment. One goroutine uses a Copier.
type Copier struct {
	tail    Tail // for the paths
	remove  bool
	segment int   // that is read
	read    int64 // up to which byte it was read
	number  int   // of the copy's segment
	at      int64 // how many bytes that has
	node    godwit.NodeID
	owed    uint64 // events that were skipped, and that no event Lost counts yet
	skipped uint64 // events that were skipped since the beginning
}

// behind is how many segments a copy may be behind.
const behind = 2

// A Piece is some bytes of a segment of a copy.
type Piece struct {
	Segment int    // number of the segment, from 1
	At      int64  // position of the bytes in the segment
	Data    []byte // whole records, after all of the header if At is 0
	Skipped uint64 // how many events the Copier skipped and counts in the event Lost of this piece
}

// NewCopier returns a Copier of the trace of a node in the folder of a run. If remove is set, segments are removed after they were read or skipped.
func NewCopier(dir string, n godwit.NodeID, remove bool) *Copier {
	return &Copier{tail: Tail{dir: NodeDir(dir, n)}, remove: remove, segment: 1, number: 1, node: n}
}

// Next returns the next piece, which has about the given number of bytes. It has no data if nothing was written since the last piece.
func (c *Copier) Next(bytes int) (p Piece, err error) {
	for {
		if err := c.Skip(); err != nil {
			return p, err
		}
		// Once the next segment is there, nothing is added to this one.
		more := c.tail.exists(c.segment + 1)
		if p, err = c.piece(bytes); err != nil || len(p.Data) > 0 || !more {
			return p, err
		}
		if err := c.leave(); err != nil {
			return p, err
		}
		c.begin(c.segment + 1)
	}
}

// begin goes on to a segment of the node. The copy's segment begins then, too, unless it is empty.
func (c *Copier) begin(segment int) {
	if c.at > 0 {
		c.number++
	}
	c.segment, c.read, c.at = segment, 0, 0
}

// leave removes the segment, if that is wanted.
func (c *Copier) leave() error {
	if !c.remove {
		return nil
	}
	if err := os.Remove(c.tail.path(c.segment)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("trace: %w", err)
	}
	return nil
}

// piece reads on in the segment.
func (c *Copier) piece(bytes int) (p Piece, err error) {
	path := c.tail.path(c.segment)
	p = Piece{Segment: c.number, At: c.at}
	read := c.read
	if read == 0 {
		h, n, err := readHeader(path)
		if errors.Is(err, errShort) || errors.Is(err, fs.ErrNotExist) {
			return p, nil // it is about to be written
		}
		if err != nil {
			return p, fmt.Errorf("%w (%s)", err, path)
		}
		h.Segment = c.number
		if p.Data, err = h.encode(); err != nil {
			return p, err
		}
		if c.owed > 0 {
			p.Skipped = min(c.owed, 1<<32-1)
			e := Event{Kind: Lost, N: uint32(p.Skipped), Time: h.Base * micro, Node: c.node, Peer: c.node}
			p.Data = e.append(p.Data, h.Base)
		}
		read = int64(n)
	}
	f, err := os.Open(path)
	if err != nil {
		return p, fmt.Errorf("trace: %w", err)
	}
	defer f.Close()
	b := make([]byte, max(bytes, 2*RecordLen)/RecordLen*RecordLen)
	n, err := f.ReadAt(b, read)
	if err != nil && !errors.Is(err, io.EOF) {
		return p, fmt.Errorf("trace: %w", err)
	}
	n -= n % RecordLen
	p.Data = append(p.Data, b[:n]...)
	c.owed -= p.Skipped
	c.read = read + int64(n)
	c.at += int64(len(p.Data))
	return p, nil
}

// Skip skips what is too old. It may be called while a piece that Next returned waits to be copied.
func (c *Copier) Skip() error {
	newest := c.segment
	for c.tail.exists(newest + 1) {
		newest++
	}
	if newest-c.segment <= behind {
		return nil
	}
	return c.skip(newest)
}

// skip skips what is before a segment.
func (c *Copier) skip(to int) error {
	for c.segment < to {
		n, err := c.count()
		c.owed += n
		c.skipped += n
		if err = errors.Join(err, c.leave()); err != nil {
			return err
		}
		c.begin(c.segment + 1)
	}
	return nil
}

// End returns how many events were not read, or skipped and not counted in an event Lost. The Copier must not be used any more.
func (c *Copier) End() (uint64, error) {
	newest := c.segment
	for c.tail.exists(newest + 1) {
		newest++
	}
	err := c.skip(newest + 1)
	return c.owed, err
}

// Skipped returns how many events were skipped.
func (c *Copier) Skipped() uint64 { return c.skipped }

// count returns how many events of the segment were not read.
func (c *Copier) count() (events uint64, err error) {
	path := c.tail.path(c.segment)
	h, n, err := readHeader(path)
	if errors.Is(err, errShort) || errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("%w (%s)", err, path)
	}
	f := &File{h, path, max(c.read, int64(n)), context.Background()}
	_, err = f.Records(func(b []byte) bool {
		events += Count(b)
		return true
	})
	return events, err
}

// Count returns how many events whole records stand for. An event Lost stands for those that it counts.
func Count(records []byte) (events uint64) {
	for ; len(records) >= RecordLen; records = records[RecordLen:] {
		switch r := Record(records); r.Kind() {
		case Owns, Replicates, Input:
		case Lost:
			events += uint64(r.Number())
		default:
			events++
		}
	}
	return events
}

// Open returns the piece's records and, if it is the first one of a segment, the header.
func (p *Piece) Open() (h Header, records []byte, err error) {
	if p.At > 0 {
		return h, p.Data, nil
	}
	return decodeHeader(p.Data)
}

// Events returns how many events the piece stands for, as Count does.
func (p *Piece) Events() (uint64, error) {
	_, records, err := p.Open()
	return Count(records), err
}
