package protocol

import (
	"slices"

	"github.com/godwit-ps/godwit/internal/store"
	"github.com/godwit-ps/godwit/internal/wire"
)

// This file applies a rule's query function ([godwit.Querier]): to what pulls get, and to
// new values.

// read writes what a pull of a key gets to dst, which has the value's length.
func (s *Shard) read(h *store.Header, dst []float32) {
	if !s.cfg.queries {
		copy(dst, store.FloatsAt(h, len(dst)))
		return
	}
	i, _ := s.cfg.Model.Locate(h.Key)
	copy(dst, s.cfg.updates[i].value(h, &s.diff))
}

// value returns what a pull gets, in the row or in scratch.
func (u *Update) value(h *store.Header, scratch *[]float32) []float32 {
	if u.query == nil {
		return store.FloatsAt(h, u.dim)
	}
	row := store.FloatsAt(h, u.len)
	*scratch = slices.Grow((*scratch)[:0], u.dim)[:u.dim]
	u.query.Query(*scratch, row[:u.dim:u.dim], row[u.dim:])
	return *scratch
}

// answerPull answers a pull.
func (s *Shard) answerPull(out Out, h *store.Header, r *wire.Record) {
	i, _ := s.cfg.Model.Locate(h.Key)
	s.reply(out, r, wire.PullReply, s.cfg.updates[i].value(h, &s.diff))
}

// begin makes a row with a given value a new one: its state begins anew.
func (s *Shard) begin(table int, row []float32) {
	u := &s.cfg.updates[table]
	u.rule.InitState(row[u.dim:])
	if u.query != nil {
		u.query.Keep(row[:u.dim:u.dim], row[u.dim:])
	}
}
