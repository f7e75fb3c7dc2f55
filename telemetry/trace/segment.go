package trace

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"

	"github.com/godwit-ps/godwit"
)

// Version is that of the format. Version 1 has no decisions, version 2 details of all traced keys, and version 3 each refresh; they are read, too.
const Version = 4

const (
	magic      = "GODWITRC"
	preamble   = len(magic) + 8 // magic, version, length of the header
	headerUnit = 64             // a header's length is a multiple of this
	maxHeader  = 1 << 20
	maxBase    = 1 << 47 // µs: four years
)

// MaxStart bounds the start of a trace, in nanoseconds since 1970: it is in the year 2096. Times of all nodes on one axis fit into 63 bits then.
const MaxStart = 4_000_000_000_000_000_000

// A Header begins a segment.
type Header struct {
	Run     string        `json:"run"`     // name of the run
	Policy  string        `json:"policy"`  // of the run
	Node    godwit.NodeID `json:"node"`    // whose segment it is
	Nodes   int           `json:"nodes"`   // of the run
	Start   int64         `json:"start"`   // of the trace, in nanoseconds since 1970 by the node's clock; 0 in a simulation
	Segment int           `json:"segment"` // its number, from 1
	Base    int64         `json:"base"`    // microseconds from Start to time 0 of the segment's events
	Tables  []Table       `json:"tables"`  // of the model
	Traced  string        `json:"traced"`  // which keys are traced
}

// A Table says which keys a table has.
type Table struct {
	Name  string     `json:"name"`  // of the table
	First godwit.Key `json:"first"` // its first key
	Rows  uint64     `json:"rows"`  // how many keys it has
}

// TablesOf returns the tables of a model.
func TablesOf(m *godwit.Model) (ts []Table) {
	for i := range m.Tables() {
		t := m.Table(i)
		ts = append(ts, Table{Name: t.Name, First: m.Key(i, 0), Rows: t.Rows})
	}
	return ts
}

// encode returns the bytes that a segment begins with.
func (h *Header) encode() ([]byte, error) {
	text, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	n := (preamble + len(text) + headerUnit - 1) / headerUnit * headerUnit
	if n > maxHeader {
		return nil, fmt.Errorf("trace: the header has %d bytes, at most %d are possible: the model has too many tables", n, maxHeader)
	}
	b := append([]byte(magic), 0, 0, 0, 0, 0, 0, 0, 0)
	binary.LittleEndian.PutUint32(b[8:], Version)
	binary.LittleEndian.PutUint32(b[12:], uint32(n))
	b = append(b, text...)
	return append(b, bytes.Repeat([]byte{' '}, n-len(b))...), nil
}

// decodeHeader reads the header of a segment, which b begins with, and returns what follows.
func decodeHeader(b []byte) (h Header, rest []byte, err error) {
	switch {
	case len(b) < preamble || string(b[:len(magic)]) != magic:
		return h, nil, fmt.Errorf("trace: this is no segment of a trace")
	case binary.LittleEndian.Uint32(b[8:]) < 1 || binary.LittleEndian.Uint32(b[8:]) > Version:
		return h, nil, fmt.Errorf("trace: the segment has version %d of the format, and this program reads versions 1 to %d: look at the run with the version of godwit that wrote it", binary.LittleEndian.Uint32(b[8:]), Version)
	}
	n := int(binary.LittleEndian.Uint32(b[12:]))
	if n < preamble || n > maxHeader || n > len(b) {
		return h, nil, fmt.Errorf("trace: the segment ends within its header")
	}
	if err := json.Unmarshal(b[preamble:n], &h); err != nil {
		return h, nil, fmt.Errorf("trace: the segment's header: %w", err)
	}
	if h.Nodes < 1 || h.Nodes > MaxNodes || int(h.Node) >= h.Nodes || h.Base < 0 || h.Base > maxBase || h.Start < 0 || h.Start > MaxStart {
		return h, nil, fmt.Errorf("trace: the segment's header says node %d of %d, start %d, base %d", h.Node, h.Nodes, h.Start, h.Base)
	}
	return h, b[n:], nil
}

// Check returns an error if whole records of the segment name a key that is in no table, or a node that is not in the run.
func (h *Header) Check(records []byte) error {
	end := godwit.Key(0)
	for _, t := range h.Tables {
		end = max(end, t.First+godwit.Key(t.Rows))
	}
	for ; len(records) >= RecordLen; records = records[RecordLen:] {
		r := Record(records)
		switch k := r.Kind(); {
		case k == Input || names[k] == "":
		case int(records[7]) >= h.Nodes:
			return fmt.Errorf("trace: an event names node %d of %d", records[7], h.Nodes)
		case !k.ofAll() && r.Key() >= end:
			return fmt.Errorf("trace: an event is of key %d, the model has %d", r.Key(), end)
		}
	}
	return nil
}
