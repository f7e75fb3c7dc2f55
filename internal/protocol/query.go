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

// asked returns what a pull asked for, in the row or in scratch.
func (u *Update) asked(h *store.Header, r *wire.Record, scratch *[]float32) []float32 {
	if r.Whole {
		return store.FloatsAt(h, u.len)
	}
	return u.value(h, scratch)
}

// PushTo makes a copy of a row of the table what a push makes of the row.
func (u *Update) PushTo(row, push []float32) { u.apply(row, push) }

// Read writes what a pull of a row gets to dst, which has the value's length.
func (u *Update) Read(dst, row []float32) {
	if u.query == nil {
		copy(dst, row[:u.dim])
		return
	}
	u.query.Query(dst[:u.dim:u.dim], row[:u.dim:u.dim], row[u.dim:])
}

// answerPull answers a pull.
func (s *Shard) answerPull(out Out, h *store.Header, r *wire.Record) {
	i, _ := s.cfg.Model.Locate(h.Key)
	s.reply(out, r, wire.PullReply, s.cfg.updates[i].asked(h, r, &s.diff))
}

// begin makes a row with a given value a new one: its state begins anew.
func (s *Shard) begin(table int, row []float32) { s.cfg.updates[table].begin(row) }

func (u *Update) begin(row []float32) {
	u.rule.InitState(row[u.dim:])
	if u.query != nil {
		u.query.Keep(row[:u.dim:u.dim], row[u.dim:])
	}
}
