package checkpoint

import (
	"context"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit/internal/seedtest"
)

// A row that was written twice, by the same node long ago or by another one, in the first layer or a later one, is found by who verifies
// and by who reads rows.
func TestARowThatIsThereTwiceIsFound(t *testing.T) {
	rows := make([]uint64, tableBytes/12+1) // more than a writer has in memory
	for i := range rows {
		rows[i] = uint64(i)
	}
	once := func(w *Writer) error { return w.Write(1, []uint64{7}, []float32{1}) }
	again := func(w *Writer) error {
		if err := w.Write(1, rows, make([]float32, len(rows))); err != nil {
			return err
		}
		return once(w)
	}
	for what, c := range map[string]struct {
		nodes []func(*Writer) error
		later bool
	}{
		"a node twice":                {[]func(*Writer) error{again}, false},
		"two nodes, in a later layer": {[]func(*Writer) error{once, once}, true},
	} {
		ctx, s := t.Context(), folder(t)
		m := testManifest(ID{2, testAttempt})
		if c.later {
			first, err := save(ctx, seedtest.Rand(t), s, ID{1, testAttempt}, model{{}, {7: {3}}, {}}, 1, nil)
			if err != nil {
				t.Fatal(err)
			}
			m.BuildsOn = first.Layers()
		}
		var pieces []*Piece
		for i, fill := range c.nodes {
			p, err := Write(ctx, s, m.ID, i, testTables, fill)
			if err != nil {
				t.Fatal(err)
			}
			pieces = append(pieces, p)
		}
		if _, err := Commit(ctx, s, m, pieces); err != nil {
			t.Fatal(err)
		}
		open, err := Open(ctx, s, 0)
		if err != nil {
			t.Fatal(err)
		}
		for how, read := range map[string]func(context.Context) error{
			"Verify": func(ctx context.Context) error { _, err := open.Verify(ctx); return err },
			"Rows": func(ctx context.Context) error {
				return open.Rows(ctx, nil, func(int, []uint64, []float32) error { return nil })
			},
		} {
			if err := read(ctx); err == nil || !strings.Contains(err.Error(), `row 7 of table "b"`) {
				t.Errorf("%s, written by %s: %v", how, what, err)
			}
		}
	}
}

// Of rows that are too many and too far apart to watch all, none is taken for another, and of many that are there twice one is found.
func TestOfManyRowsThatAreThereTwiceOneIsFound(t *testing.T) {
	const watched, rows = 64, 10000
	w, all := &twice{most: watched}, &block{table: 3}
	for _, i := range seedtest.Rand(t).Perm(rows) {
		row := uint64(i) << 32
		if twice, found := w.find(&block{table: 3, rows: []uint64{row}}); found {
			t.Fatalf("row %d is there once", twice)
		}
		if len(w.words) > watched {
			t.Fatalf("%d ranges are watched, want %d at most", len(w.words), watched)
		}
		all.rows = append(all.rows, row)
	}
	if row, found := w.find(&block{table: 2, rows: all.rows}); found {
		t.Errorf("row %d of another table was taken for this one's", row)
	}
	if _, found := w.find(all); !found {
		t.Error("no row was found of those that are there twice")
	}
}
