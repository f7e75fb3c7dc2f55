package ratings

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestCellsThatStandThereTwiceAreHeldOutWithTheirCopies(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for seed := range uint64(20) {
		s := &Set{Rows: 30, Cols: 20}
		for row := range uint32(30) {
			for col := range uint32(20) {
				for range r.IntN(4) { // of other values, too: somebody rates again
					s.Train = append(s.Train, Rating{row, col, r.Float32()})
				}
			}
		}
		r.Shuffle(len(s.Train), func(i, j int) { s.Train[i], s.Train[j] = s.Train[j], s.Train[i] })
		all, want := slices.Clone(s.Train), len(s.Train)/5
		s.HoldOut(0.2, seed)
		if n := len(s.Test); n > want || n < want-2 {
			t.Errorf("seed %d: %d cells are held out of %d, want %d, or a copy or two less", seed, n, len(all), want)
		}
		if w := s.Warnings(); len(w) > 0 {
			t.Errorf("seed %d: warnings %q", seed, w)
		}
		isTest := func(x Rating) bool { return slices.Contains(s.Test, x) }
		if kept := slices.DeleteFunc(slices.Clone(all), isTest); !slices.Equal(kept, s.Train) {
			t.Errorf("seed %d: the cells to train are not those that were not held out, in their order", seed)
		}
	}
}

func TestTheLastCellOfARowStaysWithItsCopies(t *testing.T) {
	for seed := range uint64(10) {
		s := &Set{Rows: 2, Cols: 2, Train: []Rating{{0, 0, 1}, {0, 0, 2}, {0, 0, 1}, {1, 0, 3}, {1, 1, 4}}}
		s.HoldOut(0.9, seed)
		if len(s.Test) > 1 || len(s.Test) == 1 && s.Test[0] != (Rating{1, 0, 3}) {
			t.Errorf("seed %d: %v are held out", seed, s.Test)
		}
	}
}

func TestWithoutRepeatsTheSameCellsAreHeldOutAsEver(t *testing.T) {
	s := &Set{Rows: 5, Cols: 5}
	for i := range uint32(20) {
		s.Train = append(s.Train, Rating{i / 4, (i/4 + i%4) % 5, float32(i)})
	}
	s.HoldOut(0.3, 7)
	var got []float32
	for _, x := range s.Test {
		got = append(got, x.Value)
	}
	if want := []float32{5, 8, 9, 10, 16, 17}; !slices.Equal(got, want) {
		t.Errorf("%v are held out, want %v", got, want)
	}
}

func TestWarningsTellOfTestsThatAreTrainedAndOfHeadings(t *testing.T) {
	dir := folder(t, map[string]string{
		"train.csv": "user,item,rating\na,x,1\na,y,2\nb,x,3\n", "test.csv": "a,x,5\nb,y,2\nb,x,3\n",
	})
	s, err := Load(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := s.Warnings()
	if len(w) != 2 || !strings.Contains(w[0], `train.csv: "user,item,rating"`) || !strings.Contains(w[1], "2 of 3 cells to test") {
		t.Errorf("warnings %q", w)
	}
}

// Lots are drawn of a log in which one cell stands very often.
func TestHoldOutOfManyCopiesOfACell(t *testing.T) {
	s := &Set{Rows: 2, Cols: 2}
	for range 1 << 17 {
		s.Train = append(s.Train, Rating{Row: 0, Col: 0})
	}
	s.Train = append(s.Train, Rating{Row: 0, Col: 1}, Rating{Row: 1, Col: 0}, Rating{Row: 1, Col: 1})
	began := time.Now()
	s.HoldOut(0.5, 1)
	if d := time.Since(began); d > 5*time.Second {
		t.Errorf("it took %v", d)
	}
	if len(s.Test) == 0 || len(s.Test) > 2 {
		t.Errorf("%d cells are held out, want one or two of those that stand once", len(s.Test))
	}
}
