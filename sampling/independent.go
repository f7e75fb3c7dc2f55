package sampling

import (
	"context"

	"github.com/godwit-ps/godwit"
)

// Independent draws when samples are pulled and prepares nothing: exact draws
// from the target, most of them remote. It is the baseline of the other
// schemes (NuPS: independent sampling without preparation).
type Independent struct{}

func (Independent) Name() string { return "independent" }
func (Independent) Level() Level { return IID }
func (Independent) check() error { return nil }

func (Independent) prepare(*Sampler, Access, *sample, godwit.Clock, godwit.Clock) error { return nil }

func (Independent) pull(ctx context.Context, s *Sampler, a Access, b *sample, keys []godwit.Key, dst []float32) error {
	if err := s.fill(s.drawnOf(b), keys); err != nil {
		return err
	}
	return a.Pull(ctx, keys, dst)
}
