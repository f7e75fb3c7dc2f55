package trace

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/godwit-ps/godwit"
)

// A Copier reads the segments of a node's trace in pieces, while the node writes them, for a copy elsewhere. A copy that is
// more than two segments behind leaves out what is older than the newest segment, and has an event Lost in its place. One goroutine uses a Copier.
type Copier struct {
	tail    Tail // for the paths
	remove  bool
	segment int   // of the node that is read,
	read    int64 // … up to here
	number  int   // of the copy's segment,
	at      int64 // … which has as many bytes
	micros  int64 // time of the last event of the copy's segment, since its base
	base    int64 // of the copy's segment
	node    godwit.NodeID
	owed    uint64 // events that were left out, of which the copy does not tell yet
	skipped uint64 // … since the beginning
}

// behind is how many segments a copy may be behind.
const behind = 2

// A Piece is some bytes of a segment of a copy.
type Piece struct {
	Segment int    // its number, from 1
	At      int64  // where they begin
	Data    []byte // all of the header and whole records, or whole records
}

// NewCopier returns a Copier of the trace of a node in the folder of a run. If remove is set, segments are removed when they have been read, or were left out.
func NewCopier(dir string, n godwit.NodeID, remove bool) *Copier {
	return &Copier{tail: Tail{dir: NodeDir(dir, n)}, remove: remove, segment: 1, number: 1, node: n}
}

// Next returns the next piece, of about some bytes; without data, if nothing was written since the last one. The first piece of a segment
// has all of its header, and others whole records.
func (c *Copier) Next(bytes int) (p Piece, err error) {
	for {
		if err := c.Skip(); err != nil {
			return p, err
		}
		// Only what is not written any more is left for the next segment.
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

// begin goes on to a segment of the node.
func (c *Copier) begin(segment int) {
	if c.at > 0 {
		c.number++
	}
	c.segment, c.read, c.at, c.micros = segment, 0, 0, 0
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
		read, c.base = int64(n), h.Base
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
	for r := b[:n]; len(r) > 0; r = r[RecordLen:] {
		if r := Record(r); r.Kind() != Input {
			c.micros = max(c.micros, r.Micros())
		}
	}
	p.Data = append(p.Data, b[:n]...)
	if c.owed > 0 && len(p.Data) > 0 {
		e := Event{Kind: Lost, N: uint32(min(c.owed, 1<<32-1)), Time: (c.base + c.micros) * int64(time.Microsecond), Node: c.node, Peer: c.node}
		p.Data, c.owed = e.append(p.Data, c.base), 0
	}
	c.read = read + int64(n)
	c.at += int64(len(p.Data))
	return p, nil
}

// Skip leaves out what is too old, also while pieces that were returned wait to be copied.
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

// skip leaves out what is before a segment.
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

// End returns how many events the copy lacks of which it does not tell: those that were not read. The Copier is used no more.
func (c *Copier) End() (uint64, error) {
	newest := c.segment
	for c.tail.exists(newest + 1) {
		newest++
	}
	err := c.skip(newest + 1)
	return c.owed, err
}

// Skipped returns how many events were left out.
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
	f := &File{h, path, max(c.read, int64(n))}
	_, err = f.Records(func(b []byte) bool {
		events += Count(b)
		return true
	})
	return events, err
}

// Count returns of how many events whole records tell, those included of which they say that they are lost.
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

// Open returns the header of a segment, in the first piece of one, and the piece's records.
func (p *Piece) Open() (h Header, records []byte, err error) {
	if p.At > 0 {
		return h, p.Data, nil
	}
	return decodeHeader(p.Data)
}

// Events returns of how many events the piece tells.
func (p *Piece) Events() (uint64, error) {
	_, records, err := p.Open()
	return Count(records), err
}
