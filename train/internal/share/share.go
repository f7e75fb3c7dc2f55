// Package share holds a worker's share of items that all workers train, in
// batches, in another order in each epoch.
package share

import (
	"math/rand/v2"

	"github.com/godwit-ps/godwit/train"
)

// A Share is every part.Count-th of n items. It belongs to one goroutine.
type Share struct {
	order []int32
	batch int
	part  train.Partition
	seed  uint64
}

// Deal returns the share of a worker. The order follows from the seed, the epoch
// and the worker's part alone.
func Deal(n, batch int, part train.Partition, seed uint64) *Share {
	s := &Share{batch: batch, part: part, seed: seed}
	for i := part.Index; i < n; i += part.Count {
		s.order = append(s.order, int32(i))
	}
	return s
}

// Len returns the number of items.
func (s *Share) Len() int { return len(s.order) }

// Steps returns the number of batches of an epoch.
func (s *Share) Steps() int { return (len(s.order) + s.batch - 1) / s.batch }

// Batch returns the items of a batch of an epoch. Batches are asked for in order,
// as [train.Trainer] has it.
func (s *Share) Batch(epoch, step int) []int32 {
	if step == 0 {
		r := rand.New(rand.NewPCG(s.seed, uint64(epoch)<<32|uint64(s.part.Index)))
		r.Shuffle(len(s.order), func(i, j int) { s.order[i], s.order[j] = s.order[j], s.order[i] })
	}
	from := step * s.batch
	return s.order[from:min(from+s.batch, len(s.order))]
}
