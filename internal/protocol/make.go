package protocol

import (
	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/store"
)

// This file is how rows are made that nobody has accessed before: one when it is
// accessed, or many at once when it is known that they will be.

// InUse notes that keys whose home is here are in use. Who has many keys' rows
// made says so before, of all of them: it is much faster than key by key.
func (c *Config) InUse(keys []godwit.Key) { c.used.AddAll(keys) }

// Make makes the rows that an access to each of the keys would: of those that
// nobody has accessed before. Their home is here, and [Config.InUse] has been told
// of them. rows gets those that were made, nil for the other keys.
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

// start makes a row of a table one that this node owns, with its first value.
func (s *Shard) start(table int, k godwit.Key, r store.Ref) *store.Header {
	t := s.cfg.Model.Table(table)
	h := s.st.Header(r)
	s.becomeOwner(h)
	row := s.st.Floats(r)
	t.Init.Init(row[:t.Dim], s.cfg.Seed, k)
	s.begin(table, row)
	return h
}
