package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// A Pruned is what [Lock.Prune] removed.
type Pruned struct {
	Checkpoints []uint64 `json:"checkpoints"` // by their numbers
	Objects     int      `json:"objects"`     // of them, and others that no manifest names
	Bytes       int64    `json:"bytes"`       // of these objects
	Unfinished  int      `json:"unfinished"`  // what killed writers left of objects under way
	// Unreadable are the checkpoints whose manifests cannot be read. Nobody knows what they name, so nothing was removed of
	// the last of them and those before it.
	Unreadable []uint64 `json:"unreadable,omitempty"`
}

// Prune removes checkpoints but the last keep ones and the best one (see [Best]), and then what no manifest that is
// left names. Parts of a removed checkpoint stay as long as one that is left builds on them. Objects of other programs are left alone. Whoever calls it
// writes no checkpoint meanwhile. If it fails or is killed, the checkpoints that were to be kept are
// whole: a manifest is removed before what it names.
//
// The lock is that of the store. If it is lost when the store has been looked through, nothing is removed, and the error wraps
// [ErrLocked]. What was not there by then is never removed: a run that stands still in between, and is taken over, removes nothing that
// its successor writes.
func (l *Lock) Prune(ctx context.Context, s Store, keep int) (*Pruned, error) {
	if keep < 1 {
		return nil, fmt.Errorf("checkpoint: %d checkpoints are to be kept, want at least 1", keep)
	}
	// What is removed was there before the lock was looked at. What another run writes has other names.
	objects, err := s.List(ctx, Prefix)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: listing %s: %w", s, err)
	}
	left, err := choose(ctx, s, keep)
	if err == nil {
		err = l.Check()
	}
	if err != nil {
		return nil, err
	}
	done := Pruned{Unreadable: left.unreadable}
	for _, n := range left.drop {
		if err := done.remove(ctx, s, Object{Name: manifestName(n)}); err != nil {
			return nil, err
		}
		done.Checkpoints = append(done.Checkpoints, n)
	}
	named := left.names()
	for _, o := range objects {
		if n, attempt, ok := parse(o.Name); !ok || attempt == "" || n <= left.unknown() || named[o.Name] {
			continue
		}
		if err := done.remove(ctx, s, o); err != nil {
			return nil, err
		}
	}
	if err := l.Check(); err != nil {
		return nil, err
	}
	if done.Unfinished, err = s.Clean(ctx); err != nil {
		return nil, fmt.Errorf("checkpoint: unfinished objects at %s: %w", s, err)
	}
	return &done, nil
}

// A choice says which checkpoints are to stay.
type choice struct {
	keep       []*Manifest
	drop       []uint64 // numbers of others
	unreadable []uint64 // of those whose manifests cannot be read, in ascending order
}

// choose looks at all manifests of a store.
func choose(ctx context.Context, s Store, keep int) (*choice, error) {
	all, damaged, err := manifests(ctx, s)
	if err != nil {
		return nil, err
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err // which is why they cannot be read
	}
	c := &choice{}
	for _, u := range damaged {
		c.unreadable = append(c.unreadable, u.number)
	}
	best := bestOf(all)
	for i, m := range all {
		if i >= len(all)-keep || m == best || m.Number <= c.unknown() {
			c.keep = append(c.keep, m)
		} else {
			c.drop = append(c.drop, m.Number)
		}
	}
	return c, nil
}

// unknown is up to which number an unreadable manifest may name objects; 0: there is none.
func (c *choice) unknown() uint64 {
	if n := len(c.unreadable); n > 0 {
		return c.unreadable[n-1]
	}
	return 0
}

// names returns the parts and sections of the checkpoints that stay.
func (c *choice) names() map[string]bool {
	named := map[string]bool{}
	for _, m := range c.keep {
		for _, l := range m.Layers() {
			for _, p := range l.Parts {
				named[p.Name] = true
			}
		}
		for _, x := range m.Sections {
			named[x.Object] = true
		}
	}
	return named
}

// Manifests returns the descriptions of all checkpoints in a store, in the order of their numbers. One
// that cannot be read is an error, as nobody knows what it names; those that can be are returned nevertheless.
func Manifests(ctx context.Context, s Store) ([]*Manifest, error) {
	all, damaged, err := manifests(ctx, s)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, u := range damaged {
		errs = append(errs, u.err)
	}
	return all, errors.Join(errs...)
}

// An unreadable manifest is why that of a checkpoint cannot be read.
type unreadable struct {
	number uint64
	err    error
}

// manifests returns all manifests of a store, and which of them cannot be read, both in the order of their numbers.
func manifests(ctx context.Context, s Store) (all []*Manifest, damaged []unreadable, err error) {
	numbers, err := Numbers(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	for _, n := range numbers {
		m, err := readManifest(ctx, s, n)
		if err != nil {
			damaged = append(damaged, unreadable{n, err})
			continue
		}
		all = append(all, m)
	}
	return all, damaged, nil
}

// bestOf returns the manifest with the best score of the course that led to the last one, nil if none has a score. Each run that resumed an
// earlier checkpoint gave up those between that one and its own. Manifests are in the order of their numbers.
func bestOf(all []*Manifest) (best *Manifest) {
	var given Resumed // up
	for _, m := range slices.Backward(all) {
		if given.From < m.Number && m.Number < given.Next {
			continue
		}
		if m.Resumed != nil {
			given = *m.Resumed
		}
		if m.Score != nil && (best == nil || !best.Score.better(m.Score)) {
			best = m
		}
	}
	return best
}

func (p *Pruned) remove(ctx context.Context, s Store, o Object) error {
	if err := s.Remove(ctx, o.Name); err != nil {
		return fmt.Errorf("checkpoint: removing %s from %s: %w", o.Name, s, err)
	}
	p.Objects++
	p.Bytes += o.Bytes
	return nil
}

// Best returns the number of the checkpoint with the best score, 0 if none has a score. Checkpoints that were given up when a run
// resumed an earlier one do not count.
func Best(ctx context.Context, s Store) (uint64, error) {
	all, err := Manifests(ctx, s)
	if err != nil {
		return 0, err
	}
	if best := bestOf(all); best != nil {
		return best.Number, nil
	}
	return 0, nil
}
