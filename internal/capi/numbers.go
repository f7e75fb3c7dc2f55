package capi

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// What C has been handed, by number. Numbers are not used again.
var numbers = struct {
	mu       sync.Mutex
	last     int64
	clusters map[int64]*Cluster
	readers  map[int64]*Reader
	workers  atomic.Pointer[[]*Worker] // replaced as a whole; nil where the cluster was closed
}{clusters: map[int64]*Cluster{}, readers: map[int64]*Reader{}}

// add adds what was opened, and returns its number.
func add[T any](to map[int64]*T, x *T, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	numbers.mu.Lock()
	defer numbers.mu.Unlock()
	numbers.last++
	to[numbers.last] = x
	return numbers.last, nil
}

// numbered returns what has a number.
func numbered[T any](of map[int64]*T, what string, id int64) (*T, error) {
	numbers.mu.Lock()
	defer numbers.mu.Unlock()
	if x := of[id]; x != nil {
		return x, nil
	}
	return nil, noSuch(what, id)
}

// noSuch is the error of a number that names nothing.
func noSuch(what string, id int64) error { return fmt.Errorf("%s %d: %w", what, id, errNone) }

// OpenNumber is Open by numbers.
func OpenNumber(config []byte) (int64, error) {
	c, err := Open(config)
	return add(numbers.clusters, c, err)
}

// ClusterOf returns a cluster by its number.
func ClusterOf(id int64) (*Cluster, error) { return numbered(numbers.clusters, "cluster", id) }

// WorkerNumber returns the number of a cluster's worker.
func WorkerNumber(id int64, index int) (int64, error) {
	c, err := ClusterOf(id)
	if err != nil {
		return 0, err
	}
	w, err := c.Worker(index)
	if err != nil {
		return 0, err
	}
	n := &numbers
	n.mu.Lock()
	defer n.mu.Unlock()
	all := list()
	for i, other := range all {
		if other == w {
			return int64(i), nil
		}
	}
	all = append(all, w)
	n.workers.Store(&all)
	return int64(len(all) - 1), nil
}

// list returns a copy of the workers.
func list() []*Worker {
	if ws := numbers.workers.Load(); ws != nil {
		return append([]*Worker(nil), *ws...)
	}
	return nil
}

// WorkerOf returns a worker by its number.
func WorkerOf(id int64) (*Worker, error) {
	if ws := numbers.workers.Load(); ws != nil && uint64(id) < uint64(len(*ws)) && (*ws)[id] != nil {
		return (*ws)[id], nil
	}
	return nil, noSuch("worker", id)
}

// CloseNumber closes a cluster and reports whether it has ended. Its number, and those of its
// workers, are forgotten then.
func CloseNumber(id int64, wait time.Duration) (bool, error) {
	return endNumber(id, func(c *Cluster) (bool, error) { return c.Close(wait) })
}

// AbandonNumber is CloseNumber by Abandon.
func AbandonNumber(id int64, reason string, wait time.Duration) (bool, error) {
	return endNumber(id, func(c *Cluster) (bool, error) { return c.Abandon(reason, wait) })
}

func endNumber(id int64, end func(*Cluster) (bool, error)) (bool, error) {
	c, err := ClusterOf(id)
	if err != nil {
		return true, err
	}
	over, err := end(c)
	if over {
		n := &numbers
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.clusters, id)
		all := list()
		for i, w := range all {
			if w != nil && w.cluster == c {
				all[i] = nil
			}
		}
		n.workers.Store(&all)
	}
	return over, err
}

// ReaderNumber is OpenReader by numbers.
func ReaderNumber(place string) (int64, error) {
	r, err := OpenReader(place)
	return add(numbers.readers, r, err)
}

// ReaderOf returns a reader by its number.
func ReaderOf(id int64) (*Reader, error) { return numbered(numbers.readers, "checkpoint", id) }

// ForgetReader forgets the number of a reader.
func ForgetReader(id int64) error {
	if _, err := ReaderOf(id); err != nil {
		return err
	}
	n := &numbers
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.readers, id)
	return nil
}
