package filter_test

import (
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/filter"
)

func TestOnKeepsTheFiltersOfTablesAndNamesNoneTwice(t *testing.T) {
	own := []godwit.Table{{Name: "a", Filters: []godwit.Filter{filter.Sparse{}}}, {Name: "b"}}
	got := filter.On(own, filter.BF16{}, filter.Sparse{})
	want := [][]godwit.Filter{{filter.Sparse{}, filter.BF16{}}, {filter.BF16{}, filter.Sparse{}}}
	for i, fs := range want {
		if len(got[i].Filters) != 2 || got[i].Filters[0].Name() != fs[0].Name() || got[i].Filters[1].Name() != fs[1].Name() {
			t.Errorf("table %s has the filters %v, want %v", got[i].Name, got[i].Filters, fs)
		}
	}
	if len(own[0].Filters) != 1 || len(own[1].Filters) != 0 {
		t.Errorf("the tables themselves were changed: %v", own)
	}
	// Tables may have filters of one memory.
	shared := append(make([]godwit.Filter, 0, 2), filter.Sparse{})
	one := filter.On([]godwit.Table{{Filters: shared}}, filter.BF16{})
	filter.On([]godwit.Table{{Filters: shared}}, filter.Skip{P: 0.5})
	if got := one[0].Filters[1].Name(); got != (filter.BF16{}).Name() {
		t.Errorf("the filter of one table has become that of another: %s", got)
	}
}
