package distinct

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestRowsAreNumberedByFirstOccurrence(t *testing.T) {
	const seed = 3
	r := rand.New(rand.NewPCG(seed, 0))
	var x Rows
	for round := range 50 {
		x.Reset()
		numbers := map[uint32]int32{}
		for range r.IntN(3000) {
			row := r.Uint32() >> r.IntN(32)
			want, old := numbers[row]
			if !old {
				want = int32(len(numbers))
				numbers[row] = want
				if got := find(&x, row); got != -1 {
					t.Fatalf("round %d: row %d has number %d before it came", round, row, got)
				}
			}
			if got := x.Add(row); got != want {
				t.Fatalf("round %d: row %d has number %d, want %d", round, row, got, want)
			}
		}
		for row, want := range numbers {
			if find(&x, row) != want || x.All()[want] != row {
				t.Fatalf("round %d: row %d is number %d, want %d", round, row, find(&x, row), want)
			}
		}
		if x.Len() != len(numbers) || len(x.All()) != len(numbers) {
			t.Fatalf("%d rows, want %d", x.Len(), len(numbers))
		}
	}
}

func TestRowsAreNumberedTogetherAsOneByOne(t *testing.T) {
	const seed = 4
	r := rand.New(rand.NewPCG(seed, 0))
	var one, together Rows
	for round := range 50 {
		one.Reset()
		together.Reset()
		for range r.IntN(20) {
			rows := make([]uint32, r.IntN(300))
			for i := range rows {
				rows[i] = r.Uint32() >> r.IntN(32)
			}
			numbers := make([]int32, len(rows))
			together.Number(numbers, rows)
			for i, row := range rows {
				if want := one.Add(row); numbers[i] != want {
					t.Fatalf("round %d: row %d has number %d, want %d", round, row, numbers[i], want)
				}
			}
			if !slices.Equal(one.All(), together.All()) {
				t.Fatalf("round %d: %d rows, want %d", round, together.Len(), one.Len())
			}
		}
	}
}

func TestAnIndexThatHasGrownAllocatesNothing(t *testing.T) {
	var x Rows
	if n := testing.AllocsPerRun(10, func() {
		x.Reset()
		for i := range uint32(1000) {
			x.Add(i * 7919)
		}
	}); n > 0 {
		t.Errorf("a batch allocates %v times", n)
	}
}

// find returns the number of a row, or -1.
func find(x *Rows, row uint32) int32 {
	if len(x.slots) == 0 {
		return -1
	}
	return int32(x.slots[x.slot(row)]>>above) - 1
}
