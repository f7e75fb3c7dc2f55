package node

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/setting"
	"github.com/godwit-ps/godwit/internal/racing"
	"github.com/godwit-ps/godwit/sampling"

	"github.com/godwit-ps/godwit/placement"
)

func TestAPolicyThatKeepsAllRowsEverywhereIsRefusedWhereTheyDoNotFit(t *testing.T) {
	for _, rows := range []uint64{1 << 36, 1 << 46} {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_, err := Local(ctx, 2, Config{Model: model(t, rows, 8), Policy: placement.ReplicateAll, Workers: 1})
		if !errors.Is(err, godwit.ErrMemory) {
			t.Fatalf("%d rows are replicated everywhere: %v, want %v", rows, err, godwit.ErrMemory)
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
	dims := []int{1, 8, 100}
	if racing.Enabled {
		dims = dims[1:2]
	}
	for _, dim := range dims {
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

// A configuration that cannot be is refused, and the field is named.
func TestAConfigurationThatCannotBeIsRefused(t *testing.T) {
	m := model(t, 10, 1)
	for _, specs := range [][]sampling.Spec{{{Name: "s"}, {Name: "r"}, {Name: "s"}}, make([]sampling.Spec, 2)} {
		_, err := Start(t.Context(), Config{Model: m, Workers: 1, Session: lonely{nodes: 1}, Samplers: specs})
		if err == nil || !strings.Contains(err.Error(), "names of their own") {
			t.Errorf("samplers of one name: %v", err)
		}
	}
	for field, cfg := range map[string]Config{
		"Model":    {Workers: 1, Session: lonely{nodes: 1}},
		"Workers":  {Model: m, Session: lonely{nodes: 1}},
		"Session":  {Model: m, Workers: 1},
		"Network":  {Model: m, Workers: 1, Session: lonely{nodes: 2}},
		"Samplers": {Model: m, Workers: 1, Session: lonely{nodes: 1}, Samplers: make([]sampling.Spec, 1<<20)},
	} {
		_, err := Start(t.Context(), cfg)
		var bad *setting.Error
		if !errors.As(err, &bad) || bad.Field != field {
			t.Errorf("without a proper %s: %v", field, err)
		}
	}
}
