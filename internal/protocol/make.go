package protocol

import (
	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/store"
)

// This file makes the rows that nobody has accessed before: one when it is accessed, or
// many at once when it is known that they will be.

// InUse notes that keys whose home is here are in use. A caller of Make calls it first,
// for all keys together: that is much faster than key by key.
func (c *Config) InUse(keys []godwit.Key) { c.used.AddAll(keys) }

// Make makes the rows of those keys that nobody has accessed before, as an access would.
// The keys must have their home here, and [Config.InUse] must have been called for them.
// rows gets the rows that were made, nil for the other keys.
func (s *Shard) Make(keys []godwit.Key, rows []*store.Header) (made int) {
	m := s.cfg.Model
	away := s.dir.AwayLen() > 0
	for n, k := range keys {
		rows[n] = nil
		if away {
			if _, ok := s.dir.Away(k); ok {
				continue
			}
		}
		i, _ := m.Locate(k)
		if r, fresh := s.st.Ensure(k, s.cfg.classes[i]); fresh {
			rows[n] = s.start(i, k, r)
			made++
		}
	}
	return made
}

// create makes the row of one key.
func (s *Shard) create(k godwit.Key) store.Ref {
	i, _ := s.cfg.Model.Locate(k)
	r := s.st.Insert(k, s.cfg.classes[i])
	s.cfg.used.Add(k)
	s.start(i, k, r)
	return r
}

// Touched reports whether anybody has accessed a key, and known whether this node knows that: its home does, and who has a row of
// it. No row is made.
func (s *Shard) Touched(k godwit.Key) (used, known bool) {
	if _, ok := s.st.Find(k); ok {
		return true, true
	}
	if !s.cfg.HomedHere(k) {
		return false, false
	}
	_, away := s.dir.Away(k)
	return away, true
}

// First writes the row that a key has at first: its value, and the state of its rule.
func (c *Config) First(table int, k godwit.Key, row []float32) {
	t := c.Model.Table(table)
	t.Init.Init(row[:t.Dim:t.Dim], c.Seed, k)
	c.updates[table].begin(row)
}

// start makes a new row of a table the main copy of a key, with its first value.
func (s *Shard) start(table int, k godwit.Key, r store.Ref) *store.Header {
	h := s.st.Header(r)
	s.becomeOwner(h)
	s.tell(Created, k, s.cfg.Self, 0)
	s.mark(h, s.cut.fresh())
	s.cfg.First(table, k, s.st.Floats(r))
	return h
}
