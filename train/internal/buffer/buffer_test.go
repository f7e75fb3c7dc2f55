package buffer

import (
	"slices"
	"testing"
)

func TestSizedUsesTheMemoryThatIsThere(t *testing.T) {
	x := make([]float32, 5, 8)
	for _, n := range []int{0, 3, 8} {
		if y := Sized(x, n); len(y) != n || n > 0 && &y[0] != &x[0] {
			t.Errorf("%d floats of eight are new ones, %d of them", n, len(y))
		}
	}
	if y := Sized(x, 9); len(y) != 9 {
		t.Errorf("%d floats, want 9", len(y))
	}
	if y := Sized([]int32(nil), 2); len(y) != 2 {
		t.Errorf("%d numbers of none, want 2", len(y))
	}
}

func TestRowsFollowEachOther(t *testing.T) {
	x := []int{1, 2, 3, 4, 5, 6}
	for i, want := range [][]int{{1, 2}, {3, 4}, {5, 6}} {
		if got := Row(x, int32(i), 2); !slices.Equal(got, want) {
			t.Errorf("row %d is %v, want %v", i, got, want)
		}
	}
	if _ = append(Row(x, 0, 2), 7); x[2] != 3 {
		t.Error("appending to a row changed the next one")
	}
}
