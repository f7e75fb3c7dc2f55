package recording

import (
	"encoding/binary"
	"fmt"

	"github.com/godwit-ps/godwit/node"
	"github.com/godwit-ps/godwit/telemetry/trace"
)

// A question of a [Sender] is
//
//	0  mark  1 byte, 1: no question of training, and none of rows of a cut, begins so
//	1  kind  1 byte
//	2 …      of comes: a record.Header as JSON; of sampled: a record.Sample as JSON
//
// and of traced
//
//	2  segment  4 bytes, little endian as all numbers
//	6  at       8 bytes, where in it
//	14 …        bytes of it
//
// and of leaves
//
//	2  total    8 bytes: of how many events the trace tells that was to be sent, as trace.Count counts
type kind byte

const (
	comes   kind = iota // the record of a node follows
	sampled             // a sample
	traced              // a piece of the trace
	leaves              // nothing follows
)

// An answer is one of these, and the text of an error.
const (
	wait byte = iota // ask again
	done             // taken
	over             // nothing of the node is wanted
	bad              // an error; nothing of the node is wanted any more
)

const (
	mark       = 1
	headBytes  = 2
	pieceHead  = headBytes + 12
	leaveBytes = headBytes + 8
	mostData   = node.MaxQuestion - pieceHead
	lastOf     = 1 << 30 // number of a segment at the most
)

// A message is a question, read.
type message struct {
	from  int
	kind  kind
	text  []byte // of comes and sampled
	piece trace.Piece
	total uint64
}

// IsQuestion reports whether a question of another node is one for a Collector.
func IsQuestion(q []byte) bool { return len(q) > 0 && q[0] == mark }

func (m *message) encode() []byte {
	b := []byte{mark, byte(m.kind)}
	switch m.kind {
	case traced:
		b = binary.LittleEndian.AppendUint32(b, uint32(m.piece.Segment))
		b = binary.LittleEndian.AppendUint64(b, uint64(m.piece.At))
		return append(b, m.piece.Data...)
	case leaves:
		return binary.LittleEndian.AppendUint64(b, m.total)
	}
	return append(b, m.text...)
}

// parse reads a question. The message has the question's memory.
func parse(q []byte) (m message, err error) {
	if len(q) < headBytes || q[0] != mark {
		return m, fmt.Errorf("recording: a question of %d bytes that is none", len(q))
	}
	m.kind = kind(q[1])
	switch rest := q[headBytes:]; {
	case m.kind == comes || m.kind == sampled:
		m.text = rest
	case m.kind == traced && len(q) > pieceHead:
		segment, at := binary.LittleEndian.Uint32(rest), binary.LittleEndian.Uint64(rest[4:])
		if segment < 1 || segment > lastOf || at > 1<<50 {
			return m, fmt.Errorf("recording: a piece of segment %d from byte %d", segment, at)
		}
		m.piece = trace.Piece{Segment: int(segment), At: int64(at), Data: q[pieceHead:]}
	case m.kind == leaves && len(q) == leaveBytes:
		m.total = binary.LittleEndian.Uint64(rest)
	default:
		return m, fmt.Errorf("recording: a question of %d bytes of kind %d", len(q), m.kind)
	}
	return m, nil
}
