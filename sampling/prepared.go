package sampling

import (
	"context"
	"slices"

	"github.com/godwit-ps/godwit"
)

// Prepared draws when a sample is prepared and announces the keys by an intent,
// so that they are local by the time they are pulled: exact draws from the
// target, each of which moves or is replicated (NuPS: independent sampling with
// preparation). An open sample holds 8 bytes for each of its keys.
type Prepared struct{}

func (Prepared) Name() string { return "prepared" }
func (Prepared) Level() Level { return IID }
func (Prepared) check() error { return nil }

func (Prepared) prepare(s *Sampler, a Access, b *sample, start, end godwit.Clock) error {
	return s.announce(a, b, start, end)
}

func (Prepared) pull(ctx context.Context, _ *Sampler, a Access, b *sample, keys []godwit.Key, dst []float32) error {
	copy(keys, b.keys[len(b.keys)-b.left:])
	return a.Pull(ctx, keys, dst)
}

// announce draws the whole sample and declares the intent to pull it.
func (s *Sampler) announce(a Access, b *sample, start, end godwit.Clock) error {
	b.keys = slices.Grow(b.keys[:0], b.left)[:b.left]
	var d *drawn
	if s.spec.Distinct {
		// The whole sample is drawn here, so one record of what was drawn
		// serves all samples.
		d = &s.once
		d.reset(b.left)
	}
	b.due = s.postponed.take(d, b.keys)
	if err := s.fill(d, b.keys[b.due:]); err != nil {
		s.postponed.add(b.keys[:b.due])
		return err
	}
	if err := a.Intent(b.keys, start, end); err != nil {
		s.postponed.add(b.keys[:b.due])
		return err
	}
	return nil
}
