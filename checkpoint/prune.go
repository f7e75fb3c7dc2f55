package checkpoint

import (
	"context"
	"errors"
	"fmt"
)

// A Pruned is what [Prune] removed.
type Pruned struct {
	Checkpoints []uint64 `json:"checkpoints"` // by their numbers
	Objects     int      `json:"objects"`     // of them, and others that no manifest names
	Bytes       int64    `json:"bytes"`       // of these objects
	Unfinished  int      `json:"unfinished"`  // what killed writers left of objects under way
}

// Prune removes checkpoints but the last keep ones and the best one by its score, and then what no manifest that is
// left names. Parts of a removed checkpoint stay as long as one that is left builds on them. Objects of other programs are left alone. Whoever calls it holds the lock
// and writes no checkpoint meanwhile. If it fails or is killed, the checkpoints that were to be kept are
// whole: a manifest is removed before what it names.
func Prune(ctx context.Context, s Store, keep int) (*Pruned, error) {
	if keep < 1 {
		return nil, fmt.Errorf("checkpoint: %d checkpoints are to be kept, want at least 1", keep)
	}
	kept, drop, err := choose(ctx, s, keep)
	if err != nil {
		return nil, err
	}
	var done Pruned
	for _, n := range drop {
		if err := done.remove(ctx, s, Object{Name: manifestName(n)}); err != nil {
			return nil, err
		}
		done.Checkpoints = append(done.Checkpoints, n)
	}
	named := map[string]bool{}
	for _, m := range kept {
		named[manifestName(m.Number)] = true
		for _, l := range m.Layers() {
			for _, p := range l.Parts {
				named[p.Name] = true
			}
		}
		for _, x := range m.Sections {
			named[x.Object] = true
		}
	}
	objects, err := s.List(ctx, Prefix)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: listing %s: %w", s, err)
	}
	for _, o := range objects {
		if _, attempt, ok := parse(o.Name); !ok || attempt == "" || named[o.Name] {
			continue
		}
		if err := done.remove(ctx, s, o); err != nil {
			return nil, err
		}
	}
	if done.Unfinished, err = s.Clean(ctx); err != nil {
		return nil, fmt.Errorf("checkpoint: unfinished objects at %s: %w", s, err)
	}
	return &done, nil
}

// choose returns the manifests of the checkpoints to keep, and the numbers of the others.
func choose(ctx context.Context, s Store, keep int) (kept []*Manifest, drop []uint64, err error) {
	all, err := Manifests(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	best := bestOf(all)
	for i, m := range all {
		if i >= len(all)-keep || m == best {
			kept = append(kept, m)
		} else {
			drop = append(drop, m.Number)
		}
	}
	return kept, drop, nil
}

// Manifests returns the descriptions of all checkpoints in a store, in the order of their numbers. One
// that cannot be read is an error, as nobody knows what it names; those that can be are returned nevertheless.
func Manifests(ctx context.Context, s Store) ([]*Manifest, error) {
	numbers, err := Numbers(ctx, s)
	if err != nil {
		return nil, err
	}
	var all []*Manifest
	var errs []error
	for _, n := range numbers {
		m, err := readManifest(ctx, s, n)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		all = append(all, m)
	}
	return all, errors.Join(errs...)
}

// bestOf returns the manifest with the best score, nil if none has a score.
func bestOf(all []*Manifest) (best *Manifest) {
	for _, m := range all {
		if m.Score != nil && (best == nil || m.Score.better(best.Score)) {
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

// Best returns the number of the checkpoint with the best score, 0 if none has a score.
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
