package protocol

import (
	"math"

	"github.com/godwit-ps/godwit/internal/store"
	"github.com/godwit-ps/godwit/internal/vec"
)

// limits are what a policy asks of the updates of replicas (placement.Sync).

// limited reports whether limits hold yet: what workers push while the task
// sets its model up is exempt.
func (c *Config) limited() bool { return c.SettingUp == nil || !c.SettingUp() }

// holdBack decides that a replica's update is too small to be sent yet. It
// stays dirty but leaves the list of the next round, until something is pushed
// or a flush begins.
func (s *Shard) holdBack(h *store.Header, ref store.Ref, d *side) bool {
	least := s.cfg.sync.Threshold
	if least == 0 || d.flush || !s.cfg.limited() {
		return false
	}
	i, _ := s.cfg.Model.Locate(h.Key)
	dim := s.cfg.Model.Table(i).Dim
	s.diff = append(s.diff[:0], s.st.Floats(ref)[:dim]...)
	vec.Sub(s.diff, s.st.Floats(d.sub)[:dim])
	if !(norm(s.diff) < least) {
		return false
	}
	d.weak = true
	return true
}

// sendAll has an update sent that was held back, and any other whatever its
// size.
func (s *Shard) sendAll(h *store.Header, d *side) {
	d.flush = true
	if d.weak {
		d.weak = false
		s.dirty = append(s.dirty, h.Key)
	}
}

// known is how many updates make a mean that counts, and about how many the
// mean reaches back.
const known = 64

// clip shortens the update in flight of a replica if it is far longer than its
// usual ones. What is cut off never was: it leaves the replica, too. Rules that
// say themselves how copies meet, or what a row keeps, are exempt.
func (s *Shard) clip(h *store.Header, ref store.Ref, d *side) {
	most := s.cfg.sync.Clip
	if most == 0 || !s.cfg.limited() {
		return
	}
	i, _ := s.cfg.Model.Locate(h.Key)
	if s.cfg.mergers[i] != nil || s.cfg.updates[i].query != nil {
		return
	}
	dim := s.cfg.Model.Table(i).Dim
	diff := s.flight(d)[:dim]
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
