package recording

import (
	"encoding/binary"
	"fmt"

	"github.com/godwit-ps/godwit/node"
	"github.com/godwit-ps/godwit/telemetry/trace"
)

// A question of a [Sender] is a message:
//
//	0  mark  1 byte, 1; questions of training and of cuts begin with another byte
//	1  kind  1 byte
//	2 …      hello: a record.Header as JSON; sample: a record.Sample as JSON
//
// A chunk goes on with (all numbers are little endian)
//
//	2  segment  4 bytes, its number from 1
//	6  at       8 bytes, the position of the bytes in the segment
//	14 …        bytes of the segment
//
// and goodbye with
//
//	2  total    8 bytes, how many events the node's trace has, as trace.Count counts them
type kind byte

// The kinds of messages.
const (
	hello   kind = iota // the first message of a node
	sample              // a sample
	chunk               // some bytes of a segment of the trace
	goodbye             // the last message of a node
)

// The first byte of an answer. The text of an error follows refused.
const (
	retry    byte = iota // the message was not taken: send it again
	accepted             // the message was taken
	unwanted             // nothing of this node is wanted
	refused              // the message is not valid: nothing of this node is taken any more
)

const (
	mark         = 1
	headLen      = 2
	chunkHeadLen = headLen + 12
	goodbyeLen   = headLen + 8
	maxData      = node.MaxQuestion - chunkHeadLen
	maxSegment   = 1 << 30 // the largest number of a segment
	maxPosition  = 1 << 50
)

// A message is a question that was read, or is to be sent.
type message struct {
	from  int // the node that sent it
	kind  kind
	text  []byte      // of hello and sample
	piece trace.Piece // of chunk
	total uint64      // of goodbye
}

// IsQuestion reports whether a question of another node is for a [Collector].
func IsQuestion(q []byte) bool { return len(q) > 0 && q[0] == mark }

func (m *message) encode() []byte {
	b := []byte{mark, byte(m.kind)}
	switch m.kind {
	case chunk:
		b = binary.LittleEndian.AppendUint32(b, uint32(m.piece.Segment))
		b = binary.LittleEndian.AppendUint64(b, uint64(m.piece.At))
		return append(b, m.piece.Data...)
	case goodbye:
		return binary.LittleEndian.AppendUint64(b, m.total)
	}
	return append(b, m.text...)
}

// parse reads a question. The message refers to the memory of the question.
func parse(q []byte) (m message, err error) {
	if len(q) < headLen || q[0] != mark {
		return m, fmt.Errorf("recording: a question of %d bytes has no head of a message", len(q))
	}
	m.kind = kind(q[1])
	switch rest := q[headLen:]; {
	case m.kind == hello || m.kind == sample:
		m.text = rest
	case m.kind == chunk && len(q) > chunkHeadLen:
		segment, at := binary.LittleEndian.Uint32(rest), binary.LittleEndian.Uint64(rest[4:])
		if segment < 1 || segment > maxSegment || at > maxPosition {
			return m, fmt.Errorf("recording: a chunk at byte %d of segment %d, want at most byte %d of segments 1 to %d", at, segment, maxPosition, maxSegment)
		}
		m.piece = trace.Piece{Segment: int(segment), At: int64(at), Data: q[chunkHeadLen:]}
	case m.kind == goodbye && len(q) == goodbyeLen:
		m.total = binary.LittleEndian.Uint64(rest)
	default:
		return m, fmt.Errorf("recording: a message of kind %d has %d bytes", m.kind, len(q))
	}
	return m, nil
}
