package watch

import (
	"sync/atomic"

	"github.com/godwit-ps/godwit/internal/protocol"
)

// Accesses count keys that one worker accessed, by table and where they were served. Only the worker adds.
type Accesses struct {
	tables               []places
	ahead, queued, asked atomic.Uint64 // of those that are not here: what became of them
}

// places counts keys of a table by protocol.Place. It has a cache line of its own.
type places struct {
	at [3]atomic.Uint64
	_  [5]uint64
}

// Count has the accesses of so many tables be counted.
func (a *Accesses) Count(tables int) { a.tables = make([]places, tables) }

// Served counts keys of a table, by protocol.Place.
func (a *Accesses) Served(table int, served *[3]uint64) {
	t := &a.tables[table]
	for p, n := range served {
		if n > 0 {
			add(&t.at[p], n)
		}
	}
}

// One counts one key.
func (a *Accesses) One(table int, p protocol.Place) { add(&a.tables[table].at[p], 1) }

// Elsewhere counts what became of keys that were not here: taken from what was fetched ahead, waited for
// on their way here, or asked for.
func (a *Accesses) Elsewhere(ahead, queued, asked uint64) {
	add(&a.ahead, ahead)
	add(&a.queued, queued)
	add(&a.asked, asked)
}

// add is for counters with one writer.
func add(c *atomic.Uint64, n uint64) { c.Store(c.Load() + n) }

// A Table is what the workers of a node accessed of a table, and what became of its keys there.
type Table struct {
	Local, Replica, Elsewhere uint64 // keys that were accessed, by where they were
	Ahead, Queued, Remote     uint64 // … those elsewhere by what became of them; of all tables together only
	Moves                     uint64 // keys that moved here
	Copies, Drops             uint64 // replicas that were set up, and given up
	Refreshes                 uint64 // rows that came for replicas
}

// Sum adds the accesses to those of all tables and of each.
func (a *Accesses) Sum(all *Table, tables []Table) {
	for i := range a.tables {
		t, at := &tables[i], &a.tables[i].at
		for _, to := range []*Table{all, t} {
			to.Local += at[protocol.AtOwner].Load()
			to.Replica += at[protocol.AtReplica].Load()
			to.Elsewhere += at[protocol.Elsewhere].Load()
		}
	}
	all.Ahead += a.ahead.Load()
	all.Queued += a.queued.Load()
	all.Remote += a.asked.Load()
}
