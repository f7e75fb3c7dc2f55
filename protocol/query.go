package protocol

import (
	"slices"

	"github.com/godwit-ps/godwit/store"
	"github.com/godwit-ps/godwit/wire"
)

// queried reports whether what pulls of a table's keys get is made by its rule.
func (c *Config) queried(table int) bool { return c.queries != nil && c.queries[table] != nil }

// read writes what a pull of a key gets to dst, which has the value's length.
func (s *Shard) read(h *store.Header, dst []float32) {
	if s.cfg.queries != nil {
		i, _ := s.cfg.Model.Locate(h.Key)
		if q := s.cfg.queries[i]; q != nil {
			row := store.FloatsAt(h, s.cfg.Model.TableRowLen(i))
			q.Query(dst, row[:len(dst):len(dst)], row[len(dst):])
			return
		}
	}
	copy(dst, store.FloatsAt(h, len(dst)))
}

// answerPull answers a pull.
func (s *Shard) answerPull(out Out, h *store.Header, r *wire.Record) {
	dim := s.cfg.Model.Dim(h.Key)
	value := store.FloatsAt(h, dim)
	if s.cfg.queries != nil {
		s.diff = slices.Grow(s.diff[:0], dim)[:dim]
		value = s.diff
		s.read(h, value)
	}
	s.reply(out, r, wire.PullReply, value)
}

// begin makes a row of a value that is there, with a new state.
func (s *Shard) begin(table int, row []float32) {
	t := s.cfg.Model.Table(table)
	t.Rule.InitState(row[t.Dim:])
	if s.cfg.queried(table) {
		s.cfg.queries[table].Keep(row[:t.Dim:t.Dim], row[t.Dim:])
	}
}
