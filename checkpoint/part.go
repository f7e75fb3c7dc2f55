package checkpoint

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
)

// A part is a header, blocks, an index with an entry for each block, and a footer. All numbers are
// little-endian.
//
//	header   8 "GODWITpt"   4 version   4 zero
//	block    rows · 8 numbers of rows, ascending   rows · width · 4 floats   0 or 4 zeros, up to a multiple of 8
//	entry    8 offset   8 first row   8 last row   4 table   4 rows   4 width   4 zero   32 SHA-256 of the block
//	footer   8 offset of the index   8 entries   32 SHA-256 of the index   8 zero   8 "GODWITpe"
//
// Blocks follow each other without gaps, so that every byte is covered by a checksum.
const (
	headMagic   = "GODWITpt"
	footMagic   = "GODWITpe"
	partVersion = 1
	headerBytes = 16
	entryBytes  = 72
	footerBytes = 64
	// A block has at most so many bytes, or one row.
	maxBlock = 1 << 20
)

func header() []byte {
	b := append(make([]byte, 0, headerBytes), headMagic...)
	b = binary.LittleEndian.AppendUint32(b, partVersion)
	return binary.LittleEndian.AppendUint32(b, 0)
}

// checkHeader returns an error if a part does not begin as this program writes it.
func checkHeader(head []byte) error {
	switch version := binary.LittleEndian.Uint32(head[len(headMagic):]); {
	case bytes.Equal(head, header()):
		return nil
	case string(head[:len(headMagic)]) == headMagic && version != partVersion:
		return fmt.Errorf("it has version %d of the format of parts, and this version of godwit reads %d: it was changed, or use the version that wrote it", version, partVersion)
	}
	return errors.New("it does not begin as a part does")
}

// An entry describes a block.
type entry struct {
	offset      uint64
	first, last uint64 // rows
	table, rows uint32
	width       uint32
	sum         [sha256.Size]byte
}

// bytes is the length of the block.
func (e *entry) bytes() int64 { return blockBytes(int64(e.rows), int64(e.width)) }

func blockBytes(rows, width int64) int64 { return (rows*(8+4*width) + 7) &^ 7 }

func (e *entry) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, e.offset)
	b = binary.LittleEndian.AppendUint64(b, e.first)
	b = binary.LittleEndian.AppendUint64(b, e.last)
	b = binary.LittleEndian.AppendUint32(b, e.table)
	b = binary.LittleEndian.AppendUint32(b, e.rows)
	b = binary.LittleEndian.AppendUint32(b, e.width)
	b = binary.LittleEndian.AppendUint32(b, 0)
	return append(b, e.sum[:]...)
}

func decodeEntry(b []byte) (e entry) {
	e.offset = binary.LittleEndian.Uint64(b)
	e.first = binary.LittleEndian.Uint64(b[8:])
	e.last = binary.LittleEndian.Uint64(b[16:])
	e.table = binary.LittleEndian.Uint32(b[24:])
	e.rows = binary.LittleEndian.Uint32(b[28:])
	e.width = binary.LittleEndian.Uint32(b[32:])
	copy(e.sum[:], b[40:])
	return e
}

// footer ends a part whose index, of so many entries, begins at an offset.
func footer(offset uint64, index []byte) []byte {
	h := sha256.Sum256(index)
	return footerOf(offset, len(index)/entryBytes, h[:])
}

// footerOf is footer of an index by its checksum.
func footerOf(offset uint64, entries int, sum []byte) []byte {
	b := binary.LittleEndian.AppendUint64(make([]byte, 0, footerBytes), offset)
	b = binary.LittleEndian.AppendUint64(b, uint64(entries))
	b = append(b, sum...)
	b = binary.LittleEndian.AppendUint64(b, 0)
	return append(b, footMagic...)
}

// tailBytes is the length of a part's index and footer.
func (p *Part) tailBytes() int64 { return int64(p.Blocks)*entryBytes + footerBytes }

// decodeIndex reads the end of a part, from the begin of its index on. It takes memory for an entry when that was read and is sound:
// the size of a file is no proof that there are as many.
func decodeIndex(p *Part, tables []Table, tail io.Reader) ([]entry, error) {
	at := uint64(p.Bytes - p.tailBytes())
	tail = bufio.NewReaderSize(tail, 1<<16)
	var entries []entry
	var unsound error // of the first entry that is not, behind which the rest is only summed
	offset, rows, hash := uint64(headerBytes), uint64(0), sha256.New()
	var b [entryBytes]byte
	for i := range p.Blocks {
		if _, err := io.ReadFull(tail, b[:]); err != nil {
			return nil, fmt.Errorf("entry %d of its index: %w", i, err)
		}
		hash.Write(b[:])
		if unsound != nil {
			continue
		}
		e := decodeEntry(b[:])
		if err := e.check(tables, offset); err != nil {
			unsound = fmt.Errorf("block %d: %w", i, err)
			continue
		}
		entries = append(entries, e)
		offset += uint64(e.bytes())
		rows += uint64(e.rows)
	}
	var foot [footerBytes]byte
	if _, err := io.ReadFull(tail, foot[:]); err != nil {
		return nil, fmt.Errorf("its footer: %w", err)
	}
	index := hash.Sum(nil)
	switch {
	case hex.EncodeToString(index) != p.Index:
		return nil, errors.New("the checksum of its index is wrong: it belongs to another checkpoint, was changed, or was copied in part")
	case !bytes.Equal(foot[:], footerOf(at, p.Blocks, index)):
		return nil, errors.New("its footer does not fit its index")
	case unsound != nil:
		return nil, unsound
	case offset != at || rows != p.Rows:
		return nil, fmt.Errorf("its blocks have %d rows and end at byte %d, want %d rows and byte %d", rows, offset, p.Rows, at)
	}
	return entries, nil
}

func (e *entry) check(tables []Table, offset uint64) error {
	switch {
	case e.offset != offset:
		return fmt.Errorf("it begins at byte %d, and the one before it ends at %d", e.offset, offset)
	case int64(e.table) >= int64(len(tables)):
		return fmt.Errorf("it is of table %d of %d", e.table, len(tables))
	case int(e.width) != tables[e.table].Width:
		return fmt.Errorf("its rows have %d floats, and those of table %q %d", e.width, tables[e.table].Name, tables[e.table].Width)
	case e.rows < 1 || e.first > e.last || e.last >= tables[e.table].Rows || uint64(e.rows)-1 > e.last-e.first:
		return fmt.Errorf("it has %d rows, %d … %d, of table %q with %d", e.rows, e.first, e.last, tables[e.table].Name, tables[e.table].Rows)
	case e.rows > 1 && e.bytes() > maxBlock:
		return fmt.Errorf("it has %d bytes, at most %d are possible", e.bytes(), maxBlock)
	}
	return nil
}

// A block is the rows of a block that was read. Its memory is reused.
type block struct {
	table int
	rows  []uint64
	vals  []float32
	raw   []byte // of the floats
}

// decode reads the block that an entry describes, and checks it.
func (k *block) decode(e *entry, b []byte) error {
	if sha256.Sum256(b) != e.sum {
		return errors.New("its checksum is wrong: it was changed, or copied in part")
	}
	n, floats := int(e.rows), int(e.rows)*int(e.width)
	k.table = int(e.table)
	k.rows = k.rows[:0]
	for i := range n {
		k.rows = append(k.rows, binary.LittleEndian.Uint64(b[8*i:]))
		if i > 0 && k.rows[i] <= k.rows[i-1] {
			return errors.New("its rows are not in ascending order")
		}
	}
	if k.rows[0] != e.first || k.rows[n-1] != e.last {
		return fmt.Errorf("it has the rows %d … %d, and the index says %d … %d", k.rows[0], k.rows[n-1], e.first, e.last)
	}
	k.raw = b[8*n : 8*n+4*floats]
	if cap(k.vals) < floats {
		k.vals = make([]float32, floats)
	}
	k.vals = k.vals[:floats]
	readFloats(k.vals, k.raw)
	return nil
}

// keep removes the rows for which ok is false from rows and vals; raw has all.
func (k *block) keep(ok func(row uint64) bool) {
	width, n := len(k.vals)/len(k.rows), 0
	for i, row := range k.rows {
		if !ok(row) {
			continue
		}
		if i > n {
			k.rows[n] = row
			copy(k.vals[n*width:(n+1)*width], k.vals[i*width:])
		}
		n++
	}
	k.rows, k.vals = k.rows[:n], k.vals[:n*width]
}
