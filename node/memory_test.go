package node

import (
	"context"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit/placement"
)

func TestAPolicyThatKeepsAllRowsEverywhereIsRefusedWhereTheyDoNotFit(t *testing.T) {
	for _, rows := range []uint64{1 << 36, 1 << 46} {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_, err := Local(ctx, 2, Config{Model: model(t, rows, 8), Policy: placement.ReplicateAll, Workers: 1})
		if err == nil {
			t.Fatalf("%d rows are replicated everywhere", rows)
		}
		for _, word := range []string{`"replicate"`, "rows of", "GiB", `"adaptive"`} {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%d rows: the error %q does not contain %q", rows, err, word)
			}
		}
	}
}

// What a node is taken to need for replicas of all keys is what it takes.
func TestReplicasOfAllKeysTakeWhatTheyAreTakenToNeed(t *testing.T) {
	const rows = 100_000
	for _, dim := range []int{1, 8, 100} {
		m := model(t, rows, dim)
		c := local(t, 2, Config{Model: m, Policy: placement.ReplicateAll, Workers: 1})
		eventually(t, "all keys are at both nodes", func() bool {
			s := sum(c)
			return s.Owned == rows && s.Replicas == rows
		})
		for _, n := range c.Nodes {
			bytes := float64(n.Stats().Bytes)
			t.Logf("dim %d: %.0f bytes a row", dim, bytes/rows)
			if err := checkFits(m, placement.ReplicateAll, 2, uint64(0.75*bytes)); err == nil {
				t.Errorf("dim %d: replicas that take %.0f bytes are taken to fit in three quarters of that", dim, bytes)
			}
			if err := checkFits(m, placement.ReplicateAll, 2, uint64(1.3*bytes)); err != nil {
				t.Errorf("dim %d: replicas that take %.0f bytes are taken not to fit in 1.3 times that: %v", dim, bytes, err)
			}
		}
		if err := checkFits(m, placement.Adaptive, 2, 0); err != nil {
			t.Error(err)
		}
		if err := checkFits(m, placement.ReplicateAll, 1, 0); err != nil {
			t.Error(err)
		}
	}
}
