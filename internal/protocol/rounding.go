package protocol

import (
	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/store"
	"github.com/godwit-ps/godwit/internal/vec"
	"github.com/godwit-ps/godwit/internal/wire"
)

// A table may have a filter that rounds single vectors (godwit.Quantizer). Two
// kinds of records can do with it: a replica's update, whose remainder stays in
// the replica as one that was not sent yet, and the answer to another node's
// pull, where the table asks for that. Everything else that travels is exact, but for
// what strained.go says: what makes copies equal, what moves, what is set, and what a
// flush or the end of a replica must bring.
//
// The remainder of a difference is one too: the row is that much ahead of sub,
// as if it had been pushed just now. What a Merger packed is none any more; of
// that, the replica keeps the remainder beside, as packed (replicaSide.rest). Row and sub
// both contain it, it is added to the next update, and a Refresh, which lacks it,
// has it merged.

// A rounding is how vectors of a table are rounded that travel alone.
type rounding struct {
	godwit.Quantizer
	updates, answers bool
	crowded          bool // … only where bytes bound the network
	merges           bool // the remainder of an update is as packed
	seed             uint64
}

func newRounding(m *godwit.Model, table int, seed uint64) *rounding {
	t := m.Table(table)
	if t.Counts {
		return nil // a sum of counts may take more bits than the filter leaves
	}
	_, merges := t.Rule.(godwit.Merger)
	for _, f := range t.Filters {
		r, ok := f.(godwit.Quantizer)
		if !ok {
			continue
		}
		_, joins := t.Rule.(godwit.NonAdditive)
		alike := m.TableRowLen(table) == t.Dim || r.RelativeError()
		x := &rounding{Quantizer: r, updates: alike && !joins, answers: r.QuantizesPulls(), merges: merges, seed: godwit.Hash64(seed ^ uint64(table))}
		if x.updates || x.answers {
			return x
		}
		return nil
	}
	if t.MayRound() {
		return &rounding{Quantizer: nearest{}, updates: true, crowded: true, merges: merges}
	}
	return nil
}

// of returns the seed of a vector's random numbers. It differs between the vectors of a
// key.
func (x *rounding) of(k godwit.Key, a, b uint64) uint64 {
	return godwit.Hash64(godwit.Hash64(godwit.Hash64(x.seed^uint64(k))^a) ^ b)
}

// Rounds reports whether answers of the table are rounded.
func (u *Update) Rounds() bool { return u.rounding != nil && u.rounding.answers }

// Round rounds the value of an answer to a request of another node, in the
// memory of scratch, which it returns. It must only be called if Rounds.
func (u *Update) Round(answer, request *wire.Record, scratch []float32, stats *Stats) []float32 {
	x := u.rounding
	scratch = append(scratch[:0], answer.Vals...)
	form := x.Quantizer.Quantize(scratch, x.of(request.Key, request.Op, uint64(request.Origin)<<32|uint64(request.Index))).Usable()
	answer.Vals, answer.Coding, answer.Step = scratch, wire.Coding(form.Coding), form.Step
	stats.rounded(form, scratch)
	return scratch
}

// rounds reports whether the table's updates are rounded, so that a held update is the
// remainder of rounding and not one that the policy's limits hold back.
func (s *Shard) rounds(k godwit.Key) bool {
	i, _ := s.cfg.Model.Locate(k)
	x := s.cfg.updates[i].rounding
	return x != nil && x.updates && s.cfg.sync.Threshold == 0
}

func (s *Stats) rounded(f godwit.Encoding, v []float32) {
	s.RoundedIn += uint64(4 * len(v))
	s.RoundedOut += uint64(f.Bytes(v))
}

// roundUpdate rounds the update of a replica that is about to be sent. The remainder stays
// in the replica, and waits for the next push or for a flush.
func (s *Shard) roundUpdate(out Out, to godwit.NodeID, h *store.Header, r *wire.Record) {
	i, _ := s.cfg.Model.Locate(h.Key)
	x := s.cfg.updates[i].rounding
	if x == nil || !x.updates || x.crowded && !s.crowded(out, to) {
		return
	}
	flight := s.floats(s.replica(h).flight)
	s.diff = append(s.diff[:0], flight...)
	form := x.Quantizer.Quantize(flight, x.of(h.Key, r.Seq, uint64(s.cfg.Self))).Usable()
	left := false
	for j, y := range flight {
		rest := s.diff[j] - y
		if rest-rest != 0 {
			rest = 0 // of no finite number nothing is left
		}
		s.diff[j] = rest
		left = left || rest != 0
	}
	if left {
		s.leave(h, x.merges)
	}
	r.Coding, r.Step = wire.Coding(form.Coding), form.Step
	s.Stats.rounded(form, flight)
}

// leave keeps the remainder of an update, in s.diff, in the replica as not sent yet.
func (s *Shard) leave(h *store.Header, packed bool) {
	d := s.replica(h)
	if packed {
		d.rest = s.addSpare(d.sub)
		copy(s.floats(d.rest), s.diff)
	} else {
		vec.Sub(s.st.Floats(d.sub), s.diff)
	}
	d.unsent = held
	s.unsettle(h)
}

// withRest adds the remainder of the update before to the update that is about to be
// sent, and reports whether there was any.
func (s *Shard) withRest(d *replicaSide) bool {
	if !d.rest.present() {
		return false
	}
	vec.Add(s.floats(d.flight), s.floats(d.rest))
	s.dropSpare(&d.rest)
	return true
}
