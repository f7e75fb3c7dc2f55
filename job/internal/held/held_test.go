package held

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/seedtest"
	"github.com/godwit-ps/godwit/optim"
)

// Values are as pulls return them: those of a rule that keeps something else are computed. What was not written has no value.
func TestRowsAreReadAsPullsReturnThem(t *testing.T) {
	seed := seedtest.Of(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	ftrl := optim.FTRL{LR: 0.1, Beta: 1, L1: 0.5, L2: 0.1}
	m, err := godwit.NewModel(
		godwit.Table{Name: "small", Rows: 3*slabRows + 5, Dim: 3, Rule: godwit.Add{}},
		godwit.Table{Name: "hashed", Rows: denseRows + 1, Dim: 2, Rule: ftrl},
	)
	if err != nil {
		t.Fatal(err)
	}
	h, written := New(m), [2]map[uint64][]float32{{}, {}}
	for table := range 2 {
		width, all := m.TableRowLen(table), m.Table(table).Rows
		for len(written[table]) < 2*slabRows {
			var rows []uint64
			var floats []float32
			for range 1 + rng.IntN(100) {
				r := rng.Uint64N(all)
				if written[table][r] != nil {
					continue
				}
				row := make([]float32, width)
				for i := range row {
					row[i] = rng.Float32()
				}
				written[table][r] = row
				rows, floats = append(rows, r), append(floats, row...)
			}
			if err := h.Write(table, rows, floats); err != nil {
				t.Fatal(err)
			}
		}
	}
	read := h.Values()
	for table := range 2 {
		dim := m.Table(table).Dim
		for range 3 * slabRows {
			r, got, want := rng.Uint64N(m.Table(table).Rows), make([]float32, dim), make([]float32, dim)
			row := written[table][r]
			if table == 0 && row != nil {
				copy(want, row)
			} else if row != nil {
				ftrl.Query(want, row[:dim], row[dim:])
			}
			if ok := read[table](r, got); ok != (row != nil) || !slices.Equal(got, want) {
				t.Fatalf("seed %d: row %d of table %d is %v, %v; want %v", seed, r, table, got, ok, want)
			}
		}
	}
	err = h.Each(func(table int, rows []uint64, floats []float32) error {
		width := m.TableRowLen(table)
		for i, r := range rows {
			if want := written[table][r]; !slices.Equal(floats[i*width:(i+1)*width], want) {
				t.Errorf("seed %d: row %d of table %d was %v", seed, r, table, want)
			}
			delete(written[table], r)
		}
		return nil
	})
	if left := len(written[0]) + len(written[1]); err != nil || left > 0 {
		t.Errorf("seed %d: %d rows were not handed on: %v", seed, left, err)
	}
}

func TestASinkThatFailsEndsTheRows(t *testing.T) {
	m, err := godwit.NewModel(godwit.Table{Name: "a", Rows: 2 * slabRows, Dim: 1}, godwit.Table{Name: "b", Rows: 1, Dim: 1})
	if err != nil {
		t.Fatal(err)
	}
	h := New(m)
	rows := make([]uint64, slabRows+1)
	for i := range rows {
		rows[i] = uint64(i)
	}
	if err := errors.Join(h.Write(0, rows, make([]float32, len(rows))), h.Write(1, []uint64{0}, []float32{0})); err != nil {
		t.Fatal(err)
	}
	full, calls := errors.New("disk full"), 0
	err = h.Each(func(int, []uint64, []float32) error { calls++; return full })
	if calls != 1 || err != full {
		t.Errorf("after %d calls: %v", calls, err)
	}
}
