package wire

import (
	"encoding/binary"
	"fmt"

	"github.com/godwit-ps/godwit"
)

// Nodes ask each other what is no record: frames of type 10 are questions, those of type 11
// answers. Both have the number of the question at its sender in the place of the view:
//
//	byte  16     20
//	      ┌──────┬─────────┬─────────┐
//	      │length│text …   │0…7 zeros│
//	      │u32   │         │         │
//	      └──────┴─────────┴─────────┘

// MaxAsk is the largest length of the text of a question or an answer in bytes.
const MaxAsk = 1 << 20

// An Ask is a question of a node, or the answer to it.
type Ask struct {
	Answer bool
	Number uint64 // of the question at the node that asks
	Text   []byte // at most MaxAsk bytes
}

// Frame returns its frame.
func (a Ask) Frame() []byte {
	n := HeaderLen + 4 + len(a.Text)
	b := make([]byte, HeaderLen, (n+frameAlign-1)/frameAlign*frameAlign)
	typ := byte(typeQuestion)
	if a.Answer {
		typ = typeAnswer
	}
	putHeader(b, typ, godwit.View(a.Number))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(a.Text)))
	b = append(b, a.Text...)[:cap(b)]
	putLen(b)
	return b
}

// IsAsk reports whether a frame says that it is a question or an answer.
func IsAsk(frame []byte) bool {
	return len(frame) >= HeaderLen && (frame[6] == typeQuestion || frame[6] == typeAnswer)
}

// ParseAsk reads a whole frame that must be a question or an answer. The text is the frame's
// memory.
func ParseAsk(frame []byte) (Ask, error) {
	typ := byte(typeQuestion)
	answer := len(frame) >= HeaderLen && frame[6] == typeAnswer
	if answer {
		typ = typeAnswer
	}
	number, err := parseHeader(frame, typ)
	if err != nil {
		return Ask{}, err
	}
	rest := frame[HeaderLen:]
	if len(rest) < 4 {
		return Ask{}, headerError(HeaderLen, "a question or answer without a length")
	}
	n := binary.LittleEndian.Uint32(rest)
	if n > MaxAsk || (HeaderLen+4+int(n)+frameAlign-1)/frameAlign*frameAlign != len(frame) {
		return Ask{}, headerError(HeaderLen, fmt.Sprintf("a text of %d bytes in a frame of %d", n, len(frame)))
	}
	for i, x := range rest[4+n:] {
		if x != 0 {
			return Ask{}, headerError(HeaderLen+4+int(n)+i, "bytes behind a text that are not 0")
		}
	}
	return Ask{Answer: answer, Number: uint64(number), Text: rest[4 : 4+n]}, nil
}
