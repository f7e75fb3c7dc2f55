package curve

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"time"
)

// A Board writes figures as TensorBoard reads them: a file of events in a folder of the run. One
// goroutine uses it.
type Board struct {
	file *os.File
}

// NewBoard begins a file in a folder, which is made. Each run has a folder of its own.
func NewBoard(dir string, now time.Time) (*Board, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("curve: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	f, err := os.OpenFile(filepath.Join(dir, fmt.Sprintf("events.out.tfevents.%010d.%s", now.Unix(), host)), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return nil, fmt.Errorf("curve: %w", err)
	}
	b := &Board{f}
	if err := b.write(event(now, 0, func(e []byte) []byte { return field(e, 3, []byte("brain.Event:2")) })); err != nil {
		_ = f.Close() // the first error is told
		return nil, err
	}
	return b, nil
}

// Scalar writes a figure of a name at a step: it is there when Scalar returns.
func (b *Board) Scalar(name string, step int64, at time.Time, value float64) error {
	v := field(nil, 1, []byte(name))
	v = binary.LittleEndian.AppendUint32(append(v, 2<<3|5), math.Float32bits(float32(value)))
	return b.write(event(at, step, func(e []byte) []byte { return field(e, 5, field(nil, 1, v)) }))
}

// Close ends the file.
func (b *Board) Close() error { return b.file.Close() }

// event returns an Event of TensorFlow's event.proto: wall time (1), step (2), and what what appends.
func event(at time.Time, step int64, what func([]byte) []byte) []byte {
	e := binary.LittleEndian.AppendUint64([]byte{1<<3 | 1}, math.Float64bits(float64(at.UnixNano())/1e9))
	e = binary.AppendUvarint(append(e, 2<<3), uint64(step))
	return what(e)
}

// field appends a field of bytes to a message.
func field(m []byte, number byte, b []byte) []byte {
	m = binary.AppendUvarint(append(m, number<<3|2), uint64(len(b)))
	return append(m, b...)
}

func (b *Board) write(e []byte) error {
	if _, err := b.file.Write(framed(e)); err != nil {
		return fmt.Errorf("curve: %w", err)
	}
	return nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// framed returns a record of a TFRecord file:
//
//	8 bytes       4 bytes            n bytes  4 bytes
//	| length n  | sum of the length | data  | sum of the data |
//
// all little-endian.
func framed(data []byte) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(data)))
	b = binary.LittleEndian.AppendUint32(b, masked(b))
	b = append(b, data...)
	return binary.LittleEndian.AppendUint32(b, masked(data))
}

// masked returns the sum of bytes: CRC-32C, rotated and moved, so that sums of sums are not bad ones.
func masked(b []byte) uint32 {
	sum := crc32.Checksum(b, castagnoli)
	return (sum>>15 | sum<<17) + 0xa282ead8
}
