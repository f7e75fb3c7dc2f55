package protocol

import (
	"math"

	"github.com/godwit-ps/godwit/internal/store"
	"github.com/godwit-ps/godwit/internal/vec"
)

// This file applies a policy's limits for the updates of replicas (placement.Sync).

// limited reports whether the limits apply yet. Pushes of the task's setup are exempt.
func (c *Config) limited() bool { return c.SettingUp == nil || !c.SettingUp() }

// holdBack holds a replica's update if it is too small to be sent yet: it is not on the
// list of the next round, until something is pushed or a flush begins.
func (s *Shard) holdBack(h *store.Header, ref store.Ref) bool {
	least := s.cfg.sync.Threshold
	if least == 0 {
		return false
	}
	d := s.replica(h)
	if d.unsent == exact || !s.cfg.limited() {
		return false
	}
	i, _ := s.cfg.Model.Locate(h.Key)
	dim := s.cfg.Model.Table(i).Dim
	s.diff = append(s.diff[:0], s.st.Floats(ref)[:dim]...)
	vec.Sub(s.diff, s.st.Floats(d.sub)[:dim])
	if !(norm(s.diff) < least) {
		return false
	}
	d.unsent = held
	s.setNoted(h, false)
	return true
}

// sendExactly makes the next round send the updates of a replica, whatever their size and
// without rounding.
func (s *Shard) sendExactly(h *store.Header) {
	d := s.replica(h)
	if d.unsent == held {
		s.dirty = append(s.dirty, h.Key)
	}
	d.unsent = exact
}

// known is the number of updates from which on their mean norm counts, and about how
// many updates the mean reaches back.
const known = 64

// clip shortens the update in flight of a replica if it is far longer than its
// usual ones. The replica loses the excess, too. Rules that say themselves how copies
// meet ([godwit.Merger]), or what a row keeps ([godwit.Querier]), are exempt.
func (s *Shard) clip(h *store.Header, ref store.Ref) {
	most := s.cfg.sync.Clip
	if most == 0 || !s.cfg.limited() {
		return
	}
	d := s.replica(h)
	i, _ := s.cfg.Model.Locate(h.Key)
	if s.cfg.mergers[i] != nil || s.cfg.updates[i].query != nil {
		return
	}
	dim := s.cfg.Model.Table(i).Dim
	diff := s.floats(d.flight)[:dim]
	long := norm(diff)
	if !(long > 0) || math.IsInf(long, 0) {
		return // nothing to clip, or nothing that clipping would mend
	}
	mean := float64(d.mean)
	if limit := most * mean; d.means == known && long > limit {
		s.diff = append(s.diff[:0], diff...)
		vec.Scale(diff, float32(limit/long))
		vec.Sub(s.diff, diff)
		vec.Sub(s.st.Floats(ref)[:dim], s.diff)
		vec.Sub(s.st.Floats(d.sub)[:dim], s.diff)
		s.Stats.Clipped++
	}
	d.means = min(d.means+1, known)
	d.mean += float32((long - mean) / float64(d.means))
}

func norm(x []float32) float64 { return math.Sqrt(float64(vec.SquaredNorm(x))) }
