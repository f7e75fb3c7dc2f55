package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
)

// ErrNone is wrapped by the error of [Open] where there is no checkpoint at all.
var ErrNone = errors.New("there is no checkpoint")

// Numbers returns the numbers of the checkpoints in a store, in ascending order. It does not
// trust the store's list to be complete: it looks for later ones than the last one listed.
func Numbers(ctx context.Context, s Store) ([]uint64, error) {
	objects, err := s.List(ctx, prefix)
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
	for {
		_, err := s.Size(ctx, manifestName(last+1))
		if errors.Is(err, fs.ErrNotExist) {
			return numbers, nil
		}
		if err != nil {
			return nil, fmt.Errorf("checkpoint: looking for later ones at %s: %w", s, err)
		}
		last++
		numbers = append(numbers, last)
	}
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
	if err != nil {
		return nil, err
	}
	if err := m.present(ctx, s); err != nil {
		return nil, err
	}
	return &Checkpoint{m, s}, nil
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

// wrap says which object of the checkpoint an error is about.
func (c *Checkpoint) wrap(object string, err error) error {
	return fmt.Errorf("checkpoint %d: %s at %s: %w", c.manifest.Number, object, c.store, err)
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
		return nil, c.wrap(s.Object, err)
	}
	return b, nil
}

// Rows hands rows to do, block by block, with their values and states. It reads only the blocks for which want is
// true: blocks with rows between first and last of a table; nil wants all. What do gets is its own until it
// returns. Memory is bounded by a few blocks and the index of a part.
func (c *Checkpoint) Rows(ctx context.Context, want func(table int, first, last uint64) bool, do func(table int, rows []uint64, vals []float32) error) error {
	for i := range c.manifest.Parts {
		if err := c.part(ctx, &c.manifest.Parts[i], want, func(k *block) error { return do(k.table, k.rows, k.vals) }); err != nil {
			return err
		}
	}
	return nil
}

// Digest reads all rows and returns their digest. The error says so if it is not that of the manifest.
func (c *Checkpoint) Digest(ctx context.Context) (Digest, error) {
	hashes := make([]*digester, len(c.manifest.Tables))
	for i, t := range c.manifest.Tables {
		hashes[i] = newDigester(t.Name)
	}
	for i := range c.manifest.Parts {
		err := c.part(ctx, &c.manifest.Parts[i], nil, func(k *block) error {
			width := len(k.raw) / len(k.rows)
			for i, row := range k.rows {
				hashes[k.table].add(row, k.raw[i*width:(i+1)*width])
			}
			return nil
		})
		if err != nil {
			return Digest{}, err
		}
	}
	var all Digest
	for _, h := range hashes {
		all.Add(h.sum)
	}
	if all != c.manifest.Digest {
		return all, fmt.Errorf("checkpoint %d at %s: the digest of its rows is %v, and the manifest says %v", c.manifest.Number, c.store, all, c.manifest.Digest)
	}
	return all, nil
}

// Verify reads all of the checkpoint, checks it, and returns the digest of its rows.
func (c *Checkpoint) Verify(ctx context.Context) (Digest, error) {
	for i := range c.manifest.Sections {
		if _, err := c.Section(ctx, c.manifest.Sections[i].Name); err != nil {
			return Digest{}, err
		}
	}
	return c.Digest(ctx)
}

// part hands the blocks of a part to do for which want is true.
func (c *Checkpoint) part(ctx context.Context, p *Part, want func(table int, first, last uint64) bool, do func(*block) error) error {
	entries, err := c.index(ctx, p)
	if err != nil {
		return c.wrap(p.Name, err)
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
	if string(head) != string(header()) {
		return nil, errors.New("it does not begin as a part does")
	}
	n := int64(p.Blocks)*entryBytes + footerBytes
	tail, err := c.bytes(ctx, p.Name, p.Bytes-n, n)
	if err != nil {
		return nil, err
	}
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
		return c.wrap(p.Name, err)
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
			return c.wrap(p.Name, fmt.Errorf("block at byte %d: %w", entries[done].offset, err))
		}
		if err := do(&k); err != nil {
			return err
		}
		done++
		empty <- b
	}
	if failed != nil {
		return c.wrap(p.Name, failed)
	}
	return nil
}

// readAhead is how many blocks are in memory at a time.
const readAhead = 3
