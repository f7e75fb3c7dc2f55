package sim

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/godwit-ps/godwit/internal/history"
	"github.com/godwit-ps/godwit/node"
)

// A StormsReport sums up many storms. Only its times are real.
type StormsReport struct {
	Seeds    uint64        `json:"seeds"`      // storms that kept all promises
	Messages uint64        `json:"messages"`   // records handled in all storms
	Moves    uint64        `json:"moves"`      // keys that moved
	Copies   uint64        `json:"copies"`     // replicas set up
	Drops    uint64        `json:"drops"`      // … and dropped
	Virtual  time.Duration `json:"virtual_ns"` // of all storms
	// Hash is equal whenever the same storms gave the same frames: the exclusive
	// or of their hashes.
	Hash uint64        `json:"hash"`
	Took time.Duration `json:"took_ns"` // of real time

	sum     node.Stats
	scanned Scanned
	judged  history.JudgedClocks
	rebound int
	gaveUp  Cancelled
	rounded int
	aged    int

	// Failed is the storm of the smallest seed that broke a promise; nil if none
	// did.
	Failed *Failure `json:"-"`
}

// A Failure is a storm that broke a promise.
type Failure struct {
	Seed   uint64 // of the storm
	Config string // of the storm, as in StormReport
	Err    error  // the broken promise
}

func (f *Failure) Error() string { return fmt.Sprintf("seed %d (%s): %v", f.Seed, f.Config, f.Err) }
func (f *Failure) Unwrap() error { return f.Err }

// Storms runs the storms of n seeds from first on, up to parallel of them (at
// least 1) at a time, until one fails or ctx ends, which is no error: the
// report says how far it came.
func Storms(ctx context.Context, first, n uint64, w StormConfig, parallel int) *StormsReport {
	s := &storms{next: first, left: n}
	began := time.Now()
	var wg sync.WaitGroup
	for range max(parallel, 1) {
		wg.Go(func() {
			for seed, ok := s.take(ctx); ok; seed, ok = s.take(ctx) {
				r, err := Storm(ctx, seed, w)
				s.over(ctx, seed, r, err)
			}
		})
	}
	wg.Wait()
	s.report.Took = time.Since(began)
	return &s.report
}

// storms are handed out in the order of their seeds.
type storms struct {
	mu     sync.Mutex
	next   uint64
	left   uint64
	report StormsReport
}

func (s *storms) take(ctx context.Context) (seed uint64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left == 0 || s.report.Failed != nil || ctx.Err() != nil {
		return 0, false
	}
	seed = s.next
	s.next++
	s.left--
	return seed, true
}

func (s *storms) over(ctx context.Context, seed uint64, r *StormReport, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err != nil && ctx.Err() != nil: // cut short
	case err != nil:
		if f := s.report.Failed; f == nil || seed < f.Seed {
			s.report.Failed = &Failure{seed, r.Config, err}
		}
	default:
		sum := r.Sum()
		s.report.Seeds++
		s.report.Messages += r.Messages
		s.report.Moves += sum.Moves
		s.report.Copies += sum.Copies
		s.report.Drops += sum.Drops
		s.report.Virtual += r.Elapsed
		s.report.Hash ^= r.Hash
		s.report.sum.Add(sum)
		s.report.scanned.Add(r.Scanned)
		s.report.judged.Add(r.Judged)
		s.report.rebound += r.Rebound
		s.report.gaveUp.Add(r.Cancelled)
		s.report.rounded += r.Rounded
		s.report.aged += r.Aged
	}
}
