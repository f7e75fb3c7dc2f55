package relay

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/godwit-ps/godwit/node"
)

// A question is
//
//	0  mark  1 byte, 0: no question of training begins so
//	1  kind  1 byte
//	2  cut   8 bytes, little endian as all numbers
//	10 …     rows, or the text of an error
//
// and rows are
//
//	0  table 4 bytes
//	4  n     4 bytes
//	8  rows  8 bytes each
//	…  their floats, 4 bytes each
type kind byte

const (
	rowsCome kind = iota // rows of a cut
	rowsEnd              // there are no more of this node
	rowsFail             // this node has no more, because of an error
	rowsNext             // rows are asked for
	roomNext             // room for rows is asked for: it is kept for this node
	kinds
)

// An answer is one of these, and rows or the text of an error.
const (
	wait byte = iota // ask again
	done             // taken, or here they are, or there is room
	over             // there are no more
	bad              // an error
)

const (
	mark      = 0
	headBytes = 10
	rowsHead  = 8
	mostBytes = node.MaxQuestion - headBytes
)

// IsQuestion reports whether a question of another node is one for a Hub.
func IsQuestion(q []byte) bool { return len(q) > 0 && q[0] == mark }

func question(k kind, cut uint64, rest []byte) []byte {
	return append(binary.LittleEndian.AppendUint64([]byte{mark, byte(k)}, cut), rest...)
}

func parseQuestion(q []byte) (k kind, cut uint64, rest []byte, err error) {
	if len(q) < headBytes || q[0] != mark || kind(q[1]) >= kinds {
		return 0, 0, nil, fmt.Errorf("relay: a question of %d bytes that is none", len(q))
	}
	return kind(q[1]), binary.LittleEndian.Uint64(q[2:]), q[headBytes:], nil
}

// rows are some of one table.
type rows struct {
	table  int
	rows   []uint64
	floats []float32
}

// most is how many rows of so many floats a message takes; 0: not one.
func most(width int) int { return (mostBytes - rowsHead) / (8 + 4*width) }

// Carries reports whether a row of so many floats fits into a message.
func Carries(width int) bool { return most(width) > 0 }

func (r *rows) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(r.table))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(r.rows)))
	for _, x := range r.rows {
		b = binary.LittleEndian.AppendUint64(b, x)
	}
	for _, x := range r.floats {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

// parseRows reads rows of tables whose rows have so many floats.
func parseRows(b []byte, widths []int) (*rows, error) {
	if len(b) < rowsHead {
		return nil, fmt.Errorf("relay: rows of %d bytes", len(b))
	}
	table, n := binary.LittleEndian.Uint32(b), int(binary.LittleEndian.Uint32(b[4:]))
	if uint64(table) >= uint64(len(widths)) {
		return nil, fmt.Errorf("relay: rows of table %d, there are %d", table, len(widths))
	}
	width := widths[table]
	if b = b[rowsHead:]; n > len(b)/8 || len(b) != n*(8+4*width) {
		return nil, fmt.Errorf("relay: %d rows of %d floats in %d bytes", n, width, len(b))
	}
	r := &rows{int(table), make([]uint64, n), make([]float32, n*width)}
	for i := range r.rows {
		r.rows[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	for i := range r.floats {
		r.floats[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[8*n+4*i:]))
	}
	return r, nil
}
