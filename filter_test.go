package godwit_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/filter"
	"github.com/godwit-ps/godwit/optim"
)

func TestTablesWithCountsOrANonAdditiveRuleRefuseFiltersThatChangeThem(t *testing.T) {
	for f, ok := range map[godwit.Filter]bool{
		filter.Sparse{}: true, filter.Compress{Method: filter.S2}: true, filter.BF16{}: true,
		filter.FixedPoint(2): false, filter.Skip{P: 0.5}: false, filter.Noise{Std: 1}: false, filter.Significant{Threshold: 1}: false,
	} {
		table := godwit.Table{Name: "counts", Rows: 1, Dim: 1, Counts: true, Filters: []godwit.Filter{f}}
		_, err := godwit.NewModel(table)
		if ok != (err == nil) || err != nil && (!strings.Contains(err.Error(), `"counts"`) || !strings.Contains(err.Error(), f.Name())) {
			t.Errorf("%s for counts: %v", f.Name(), err)
		}
		reporter, _ := f.(godwit.LossReporter)
		table.Counts, table.Rule = false, optim.Max{}
		if _, err := godwit.NewModel(table); (err == nil) != (reporter != nil && reporter.MaxLoss() == godwit.LossNone) {
			t.Errorf("%s for the largest: %v", f.Name(), err)
		}
		if table.Rule = nil; !ok {
			if _, err := godwit.NewModel(table); err != nil {
				t.Errorf("%s for any values: %v", f.Name(), err)
			}
		}
	}
}

func TestModelsCheckTheirFilters(t *testing.T) {
	for want, fs := range map[string][]godwit.Filter{
		"filter 1 is nil": {filter.Sparse{}, nil},
		"there twice":     {filter.Sparse{}, filter.BF16{}, filter.Sparse{}},
		"in 3 bytes":      {filter.FixedPoint(3)},
		"no function":     {filter.Active{}},
	} {
		if _, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 1, Dim: 1, Filters: fs}); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `"t"`) {
			t.Errorf("the error is %v, want one with %q", err, want)
		}
	}
}

func TestModelsThatDifferInFiltersHaveDifferentFingerprints(t *testing.T) {
	seen := map[string]bool{}
	for _, fs := range [][]godwit.Filter{nil, {filter.BF16{}}, {filter.FixedPoint(1)}, {filter.FixedPoint(1), filter.Sparse{}}} {
		m, err := godwit.NewModel(filter.On([]godwit.Table{{Name: "t", Rows: 1, Dim: 1}}, fs...)...)
		if err != nil {
			t.Fatal(err)
		}
		seen[m.Fingerprint()] = true
	}
	if len(seen) != 4 {
		t.Errorf("four models have %d fingerprints", len(seen))
	}
}

func TestARelaxedTableMakesAnotherModel(t *testing.T) {
	fingerprint := func(relaxed bool) string {
		m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 1, Dim: 1, Relaxed: relaxed})
		if err != nil {
			t.Fatal(err)
		}
		return m.Fingerprint()
	}
	if fingerprint(false) == fingerprint(true) {
		t.Error("nodes that disagree on whether a table is relaxed do not notice")
	}
}

func TestWhatAFilterRoundsAwayIsTheResidual(t *testing.T) {
	b := godwit.FilterBatch{Dim: 2}
	b.Reset([]godwit.Key{1, 2, 3}, []float32{1.25, 2, 3.5, 4, 5, 6}, 1)
	if b.Residual(0) != nil {
		t.Errorf("a batch that no filter changed has the residual %v", b.Residual(0))
	}
	b.Drop(2)
	b.Round(0, 0, 1)
	b.Round(1, 0, 4)
	b.Round(1, 1, float32(math.Inf(1))) // the difference is not finite: it is not kept
	b.Round(2, 0, 7)                    // it is not sent: nothing is kept
	for i, want := range [][]float32{{0.25, 0}, {-0.5, 0}, {0, 0}} {
		if got := b.Residual(i); !slices.Equal(got, want) {
			t.Errorf("position %d has the residual %v, want %v", i, got, want)
		}
	}
	if want := []float32{1, 2, 4, float32(math.Inf(1))}; !slices.Equal(b.Vals[:4], want) {
		t.Errorf("the vectors are %v, want %v", b.Vals[:4], want)
	}
	b.Reset(b.Keys, b.Vals, 1)
	if b.Residual(0) != nil || b.Dropped() != 0 || !b.Sent(2) {
		t.Error("Reset keeps what the batch before left")
	}
}
