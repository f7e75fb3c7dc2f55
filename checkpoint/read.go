package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"
)

// ErrNone is wrapped by the error of [Open] where there is no checkpoint at all.
var ErrNone = errors.New("there is no checkpoint")

// Numbers returns the numbers of the checkpoints in a store, in ascending order. It does not
// trust the store's list to be complete: it looks for later ones than the last one listed.
func Numbers(ctx context.Context, s Store) ([]uint64, error) {
	objects, err := s.List(ctx, Prefix)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: listing %s: %w", s, err)
	}
	var numbers []uint64
	for _, o := range objects {
		if n, attempt, ok := parse(o.Name); ok && attempt == "" {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	last := uint64(0)
	if len(numbers) > 0 {
		last = numbers[len(numbers)-1]
	}
	more, err := unlisted(ctx, s, func(i int) string { return manifestName(last + uint64(i)) })
	if err != nil {
		return nil, fmt.Errorf("checkpoint: looking for later ones at %s: %w", s, err)
	}
	for range more {
		last++
		numbers = append(numbers, last)
	}
	return numbers, nil
}

// mostUnlisted is how many objects of a kind a list may lack. Something that is no store may say of each that it is there.
const mostUnlisted = 100

// unlisted returns how many objects are there, from the first on, that a list may lack. name is that of the i-th, from 1 on.
func unlisted(ctx context.Context, s Store, name func(i int) string) (n int, err error) {
	for ; n < mostUnlisted; n++ {
		_, err := s.Size(ctx, name(n+1))
		if errors.Is(err, fs.ErrNotExist) {
			return n, nil
		}
		if err != nil {
			return 0, err
		}
	}
	return 0, fmt.Errorf("%s and the %d before it are said to be there, and no list has them: see whether a proxy, or the page of a network, answers in place of the store", name(n), n-1)
}

// Next returns the number of the next checkpoint.
func Next(ctx context.Context, s Store) (uint64, error) {
	numbers, err := Numbers(ctx, s)
	if err != nil || len(numbers) == 0 {
		return 1, err
	}
	return numbers[len(numbers)-1] + 1, nil
}

// A Checkpoint is one that can be read. It is immutable and may be used by any number of goroutines.
type Checkpoint struct {
	manifest *Manifest
	store    Store
}

// Open opens a checkpoint by its number; 0: the last one. It reads the manifest, and looks
// whether the objects that it names are there with their sizes.
func Open(ctx context.Context, s Store, number uint64) (*Checkpoint, error) {
	if number == 0 {
		numbers, err := Numbers(ctx, s)
		if err != nil {
			return nil, err
		}
		if len(numbers) == 0 {
			return nil, fmt.Errorf("checkpoint: %w at %s", ErrNone, s)
		}
		number = numbers[len(numbers)-1]
	}
	m, err := readManifest(ctx, s, number)
	if errors.Is(err, fs.ErrNotExist) {
		numbers, lerr := Numbers(ctx, s)
		switch {
		case lerr != nil || len(numbers) == 0:
		case slices.Contains(numbers, number):
			err = fmt.Errorf("checkpoint %d is listed at %s, and cannot be read there: it was removed meanwhile, or the store forgets: %w", number, s, fs.ErrNotExist)
		default:
			err = fmt.Errorf("checkpoint %d is not at %s, which has %d: %w", number, s, numbers, fs.ErrNotExist)
		}
		return nil, err
	}
	if err == nil {
		err = m.present(ctx, s)
	}
	if err != nil {
		return nil, nameBefore(ctx, s, number, "", err)
	}
	return &Checkpoint{m, s}, nil
}

// listWithin is how long a store may take to tell what else it has, once a checkpoint could not be read.
const listWithin = 5 * time.Second

// nameBefore adds to an error of a checkpoint that cannot be read, for an object that is damaged, or for those that are missing (""), which one before it
// may be taken instead: the last one that does not build on that object. It does so if the store answers soon,
// and names it by its number, because the store's name lacks the options of a URL, and is no place.
func nameBefore(ctx context.Context, s Store, number uint64, object string, err error) error {
	ctx, cancel := context.WithTimeout(ctx, listWithin)
	defer cancel()
	numbers, lerr := Numbers(ctx, s)
	if lerr != nil {
		return err
	}
	i, _ := slices.BinarySearch(numbers, number)
	known := i > 0
	for _, n := range slices.Backward(numbers[:i]) {
		m, merr := readManifest(ctx, s, n)
		if merr == nil && !m.names(object) && m.present(ctx, s) == nil {
			return fmt.Errorf("%w (one before it may be whole: take #%d of the same place)", err, n)
		}
		known = known && merr == nil
	}
	if known && ctx.Err() == nil {
		return fmt.Errorf("%w (none before it can be taken: they build on the same object, or lack some)", err)
	}
	return err
}

// names reports whether an object is one of the checkpoint's, or of those on which it builds.
func (m *Manifest) names(object string) bool {
	return slices.ContainsFunc(m.Layers(), func(l Layer) bool {
		return slices.ContainsFunc(l.Parts, func(p Part) bool { return p.Name == object })
	})
}

func readManifest(ctx context.Context, s Store, number uint64) (*Manifest, error) {
	name := manifestName(number)
	b, err := readAll(ctx, s, name, maxManifest)
	var m *Manifest
	if err == nil {
		m, err = decodeManifest(b)
	}
	if err == nil && m.Number != number {
		err = fmt.Errorf("it is the manifest of checkpoint %d", m.Number)
	}
	if err != nil {
		return nil, fmt.Errorf("checkpoint %d: %s at %s: %w", number, name, s, err)
	}
	return m, nil
}

// Manifest returns the description, which must not be changed.
func (c *Checkpoint) Manifest() *Manifest { return c.manifest }

// wrap says which object of the checkpoint an error is about, and which checkpoint may be taken instead.
func (c *Checkpoint) wrap(ctx context.Context, object string, err error) error {
	return nameBefore(ctx, c.store, c.manifest.Number, object, fmt.Errorf("checkpoint %d: %s at %s: %w", c.manifest.Number, object, c.store, err))
}

// Section reads a section. The error wraps fs.ErrNotExist if the checkpoint has none of the name.
func (c *Checkpoint) Section(ctx context.Context, name string) ([]byte, error) {
	i := slices.IndexFunc(c.manifest.Sections, func(s Section) bool { return s.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("checkpoint %d has no section %q: %w", c.manifest.Number, name, fs.ErrNotExist)
	}
	s := &c.manifest.Sections[i]
	b, err := readAll(ctx, c.store, s.Object, s.Bytes)
	if err == nil && sum(b) != s.SHA256 {
		err = errors.New("its checksum is wrong: it was changed, or copied in part")
	}
	if err != nil {
		return nil, c.wrap(ctx, s.Object, err)
	}
	return b, nil
}

// Rows hands rows to do, many at a time, with their values and states: each row once, as it is in the checkpoint. It reads only the blocks for
// which want is true: blocks with rows between first and last of a table, and hands over the rows for which it is true by
// themselves; nil wants all. What do gets is its own until it returns. Memory is bounded by a few blocks and the index of a part; and of an
// incremental checkpoint, by what it takes to remember which rows changed (see [newer]). The error names a row that one checkpoint wrote twice, if it is
// among those that are looked at for that: all, or of many far apart an even share (see [twice]).
func (c *Checkpoint) Rows(ctx context.Context, want func(table int, first, last uint64) bool, do func(table int, rows []uint64, vals []float32) error) error {
	later := newer{}
	return c.each(ctx, want, func(layer int, k *block) error {
		k.keep(func(row uint64) bool {
			return (want == nil || want(k.table, row, row)) && later.first(layer, k.table, row)
		})
		if len(k.rows) == 0 {
			return nil
		}
		return do(k.table, k.rows, k.vals)
	})
}

// each hands all blocks to do for which want is true, those of the last layer first. It returns an error if it finds a row that a layer has
// twice (see [twice]).
func (c *Checkpoint) each(ctx context.Context, want func(table int, first, last uint64) bool, do func(layer int, k *block) error) error {
	for i, l := range slices.Backward(c.manifest.Layers()) {
		seen := twice{}
		for j := range l.Parts {
			p := &l.Parts[j]
			err := c.part(ctx, p, want, func(k *block) error {
				if row, found := seen.find(k); found {
					return c.wrap(ctx, p.Name, fmt.Errorf("row %d of table %q was written before, in this or another part of checkpoint %d: a defect of the program that wrote it, report it",
						row, c.manifest.Tables[k.table].Name, l.Number))
				}
				return do(i, k)
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// newer remembers which rows were in layers that were read. It has a word of bits for each range of 64 rows of which
// there was one: about half a byte a row where most rows of a range changed, and 30 bytes for a row by itself. Rows of the
// oldest layer, the most, are not remembered.
type newer map[uint64]uint64

// first reports whether a row of a layer was in none of the layers that were read before.
func (n newer) first(layer, table int, row uint64) bool {
	at, bit := rangeOf(table, row)
	word := n[at]
	if word&bit != 0 {
		return false
	}
	if layer > 0 {
		n[at] = word | bit
	}
	return true
}

// A Sum describes the rows of a checkpoint. That of an incremental one equals that of one with all rows.
type Sum struct {
	Rows   uint64 `json:"rows"`   // how many there are
	Digest Digest `json:"digest"` // of them
}

// Sum reads all rows and returns how many there are, and their digest. The error says so if the rows of a layer do not have the digest of
// the manifest, or one is there twice, as with [Checkpoint.Rows].
func (c *Checkpoint) Sum(ctx context.Context) (Sum, error) {
	hashes := make([]*digester, len(c.manifest.Tables))
	for i, t := range c.manifest.Tables {
		hashes[i] = newDigester(t.Name)
	}
	var all Sum
	layers, later := c.manifest.Layers(), newer{}
	read := make([]Digest, len(layers))
	err := c.each(ctx, nil, func(layer int, k *block) error {
		width := len(k.raw) / len(k.rows)
		for i, row := range k.rows {
			d := hashes[k.table].of(row, k.raw[i*width:(i+1)*width])
			read[layer].Add(d)
			if later.first(layer, k.table, row) {
				all.Rows++
				all.Digest.Add(d)
			}
		}
		return nil
	})
	if err != nil {
		return Sum{}, err
	}
	for i, l := range layers {
		if read[i] != l.Digest {
			return Sum{}, fmt.Errorf("checkpoint %d at %s: the digest of the rows that checkpoint %d wrote is %v, and the manifest says %v",
				c.manifest.Number, c.store, l.Number, read[i], l.Digest)
		}
	}
	return all, nil
}

// Verify reads all of the checkpoint, checks it, and describes its rows.
func (c *Checkpoint) Verify(ctx context.Context) (Sum, error) {
	for i := range c.manifest.Sections {
		if _, err := c.Section(ctx, c.manifest.Sections[i].Name); err != nil {
			return Sum{}, err
		}
	}
	return c.Sum(ctx)
}

// part hands the blocks of a part to do for which want is true.
func (c *Checkpoint) part(ctx context.Context, p *Part, want func(table int, first, last uint64) bool, do func(*block) error) error {
	entries, err := c.index(ctx, p)
	if err != nil {
		return c.wrap(ctx, p.Name, err)
	}
	for len(entries) > 0 {
		n := run(entries, want)
		if n < 0 {
			entries = entries[-n:]
			continue
		}
		if err := c.blocks(ctx, p, entries[:n], do); err != nil {
			return err
		}
		entries = entries[n:]
	}
	return nil
}

// run returns how many of the first entries are wanted, or, if the first is not, minus how
// many are not.
func run(entries []entry, want func(table int, first, last uint64) bool) int {
	wanted := func(e *entry) bool { return want == nil || want(int(e.table), e.first, e.last) }
	first, n := wanted(&entries[0]), 1
	for n < len(entries) && wanted(&entries[n]) == first {
		n++
	}
	if first {
		return n
	}
	return -n
}

// index reads the header and the index of a part.
func (c *Checkpoint) index(ctx context.Context, p *Part) ([]entry, error) {
	head, err := c.bytes(ctx, p.Name, 0, headerBytes)
	if err != nil {
		return nil, err
	}
	if err := checkHeader(head); err != nil {
		return nil, err
	}
	n := p.tailBytes()
	tail, err := c.store.Read(ctx, p.Name, p.Bytes-n, n)
	if err != nil {
		return nil, err
	}
	defer tail.Close() // it is only read
	return decodeIndex(p, c.manifest.Tables, tail)
}

// bytes reads n bytes, which the object has.
func (c *Checkpoint) bytes(ctx context.Context, name string, off, n int64) ([]byte, error) {
	r, err := c.store.Read(ctx, name, off, n)
	if err != nil {
		return nil, err
	}
	defer r.Close() // it is only read
	b := make([]byte, n)
	_, err = io.ReadFull(r, b)
	return b, err
}

// blocks reads blocks that follow each other, as one stream. The next one is read while do works.
func (c *Checkpoint) blocks(ctx context.Context, p *Part, entries []entry, do func(*block) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	last := &entries[len(entries)-1]
	r, err := c.store.Read(ctx, p.Name, int64(entries[0].offset), int64(last.offset)+last.bytes()-int64(entries[0].offset))
	if err != nil {
		return c.wrap(ctx, p.Name, err)
	}
	full, empty := make(chan []byte), make(chan []byte, readAhead)
	for range readAhead {
		empty <- nil
	}
	var failed error // set before full is closed
	go func() {
		defer close(full)
		defer r.Close() // it is only read
		for i := range entries {
			var b []byte
			select {
			case b = <-empty:
			case <-ctx.Done():
				failed = context.Cause(ctx)
				return
			}
			b = slices.Grow(b[:0], int(entries[i].bytes()))[:entries[i].bytes()]
			if _, failed = io.ReadFull(r, b); failed != nil {
				return
			}
			select {
			case full <- b:
			case <-ctx.Done():
				failed = context.Cause(ctx)
				return
			}
		}
	}()
	defer func() {
		cancel()
		for range full { // until the reader has ended
		}
	}()
	var k block
	done := 0
	for b := range full {
		if err := k.decode(&entries[done], b); err != nil {
			return c.wrap(ctx, p.Name, fmt.Errorf("block at byte %d: %w", entries[done].offset, err))
		}
		if err := do(&k); err != nil {
			return err
		}
		done++
		empty <- b
	}
	if failed != nil {
		return c.wrap(ctx, p.Name, failed)
	}
	return nil
}

// readAhead is how many blocks are in memory at a time.
const readAhead = 3
