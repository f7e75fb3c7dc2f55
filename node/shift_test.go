package node

import "testing"

func TestShardsFollowKeysAndWorkers(t *testing.T) {
	for _, c := range []struct {
		keys    uint64
		workers int
		shards  int
	}{
		{1, 1, 16}, {64 * 40, 8, 32}, // at most one for 64 keys
		{1 << 20, 1, 64}, {1 << 20, 2, 128}, {1 << 20, 1000, 512}, // 64 a worker
		{1 << 24, 1, 128}, {1 << 40, 1, 512}, // at least one for 2^17 keys
	} {
		if n := 1 << shift(c.keys, c.workers); n != c.shards {
			t.Errorf("%d keys at a node of %d workers are in %d shards, want %d", c.keys, c.workers, n, c.shards)
		}
	}
}
