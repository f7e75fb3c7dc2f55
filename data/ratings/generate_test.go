package ratings

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestAGeneratedMatrixHasItsSizes(t *testing.T) {
	for _, s := range []Spec{
		DefaultSpec(),
		{Rows: 2, Cols: 2, Cells: 4, Rank: 1, Seed: 1},
		{Rows: 300, Cols: 40, Cells: 5000, Rank: 3, Noise: 1, Valid: 0.1, Test: 0.2, Seed: 5},
		{Rows: 40, Cols: 300, Cells: 340, Rank: 3, Exponent: 2, Test: 0.3, Seed: 5},
	} {
		if s.Cells > s.Rows*s.Cols/2 {
			s.Cells = s.Rows * s.Cols / 2
		}
		set, err := Generate(s)
		if s.Rows == 2 {
			if err == nil || !strings.Contains(err.Error(), "Spec.Cells") {
				t.Errorf("%+v: %v, which has no room for a cell in each row and column", s, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%+v: %v", s, err)
		}
		if err := set.Check(); err != nil {
			t.Error(err)
		}
		all := slices.Concat(set.Train, set.Valid, set.Test)
		if len(all) != s.Cells || set.Rows != s.Rows || set.Cols != s.Cols {
			t.Errorf("%+v: %d cells in %d rows and %d columns", s, len(all), set.Rows, set.Cols)
		}
		seen := map[[2]uint32]bool{}
		for _, c := range all {
			if seen[[2]uint32{c.Row, c.Col}] {
				t.Fatalf("%+v: cell %v stands twice", s, c)
			}
			seen[[2]uint32{c.Row, c.Col}] = true
		}
		rows, cols := set.Counts()
		if slices.Min(rows) == 0 || slices.Min(cols) == 0 {
			t.Errorf("%+v: a row or column has no cell to train", s)
		}
		if s.Cells >= 5000 {
			for part, got := range map[float64]int{s.Valid: len(set.Valid), s.Test: len(set.Test)} {
				if want := int(part * float64(s.Cells)); got < want-2 || got > want+2 {
					t.Errorf("%+v: a part of %d cells, want %d", s, got, want)
				}
			}
		}
		again, err := Generate(s)
		if err != nil || !reflect.DeepEqual(again, set) {
			t.Errorf("%+v: another matrix the second time, %v", s, err)
		}
	}
}

func TestGeneratedValuesHaveTheVarianceOfSignalAndNoise(t *testing.T) {
	s := DefaultSpec()
	s.Exponent, s.Noise, s.Rank = 0, 0.5, 20
	set, err := Generate(s)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, c := range set.Train {
		sum += float64(c.Value) * float64(c.Value)
	}
	// The mean over 3,000 factors of rank 20 varies by a few hundredths.
	if got := sum / float64(len(set.Train)); math.Abs(got-1.25) > 0.1 {
		t.Errorf("variance %v, want 1.25", got)
	}
}

func TestDrawsFollowZipfsLaw(t *testing.T) {
	const n, draws, exponent, seed = 1000, 300_000, 1.1, 4
	r := rand.New(rand.NewPCG(seed, 0))
	z := newZipf(n, exponent, r)
	counts := make([]float64, n)
	for range draws {
		counts[z.draw(r)]++
	}
	sum := 0.0
	for rank := range n {
		sum += math.Pow(float64(rank+1), -exponent)
	}
	chi := 0.0
	for rank, at := range z.at {
		want := draws * math.Pow(float64(rank+1), -exponent) / sum
		chi += (counts[at] - want) * (counts[at] - want) / want
	}
	// Mean n-1, variance 2(n-1); the bound is 4 standard deviations above.
	if most := n - 1 + 4*math.Sqrt(2*(n-1)); chi > most {
		t.Errorf("chi-square is %.0f over %d ranks, want at most %.0f", chi, n, most)
	}
}

func TestTheMostFrequentRowsAndColumnsAreAnywhere(t *testing.T) {
	set, err := Generate(DefaultSpec())
	if err != nil {
		t.Fatal(err)
	}
	rows, cols := set.Counts()
	for what, counts := range map[string][]int{"rows": rows, "columns": cols} {
		most, mean := slices.Max(counts), len(set.Train)/len(counts)
		if slices.Max(counts[:10]) == most || most < 4*mean {
			t.Errorf("%s: at most %d cells, on average %d, among the first ten %v", what, most, mean, counts[:10])
		}
	}
}

func TestBadSpecsAreNamed(t *testing.T) {
	nan := math.NaN()
	for field, spoil := range map[string]func(*Spec){
		"Rows": func(s *Spec) { s.Rows = 1 }, "Cols": func(s *Spec) { s.Cols = maxSide + 1 },
		"Cells": func(s *Spec) { s.Cells = s.Rows }, "Rank": func(s *Spec) { s.Rank = 0 },
		"Exponent": func(s *Spec) { s.Exponent = nan }, "Noise": func(s *Spec) { s.Noise = -1 },
		"Valid": func(s *Spec) { s.Valid = 0.4 }, "Test": func(s *Spec) { s.Test = nan },
	} {
		s := DefaultSpec()
		spoil(&s)
		if _, err := Generate(s); err == nil || !strings.Contains(err.Error(), "Spec."+field+" ") {
			t.Errorf("%s: %v", field, err)
		}
	}
	s := DefaultSpec()
	s.Rows, s.Cols, s.Cells, s.Exponent = 100, 100, 5000, 2
	if _, err := Generate(s); err == nil || !strings.Contains(err.Error(), "found a place") {
		t.Errorf("half the matrix by a steep law: %v", err)
	}
}

func TestHoldOutLeavesEachRowAndColumnACell(t *testing.T) {
	for seed := range uint64(20) {
		s := &Set{Rows: 3, Cols: 3, Train: []Rating{{0, 0, 1}, {0, 1, 2}, {1, 1, 3}, {2, 2, 4}, {2, 0, 5}, {1, 2, 6}}}
		s.HoldOut(0.9, seed)
		rows, cols := s.Counts()
		if slices.Min(rows) == 0 || slices.Min(cols) == 0 || len(s.Train)+len(s.Test) != 6 || len(s.Test) == 0 {
			t.Errorf("seed %d: %+v", seed, s)
		}
	}
}

func TestSetsThatAreWrongAreNamed(t *testing.T) {
	for want, s := range map[string]Set{
		"0 rows":           {Cols: 1},
		"0 columns":        {Rows: 1},
		"2 names":          {Rows: 1, Cols: 1, ColNames: []string{"a", "b"}},
		"cell 0 of train":  {Rows: 1, Cols: 1, Train: []Rating{{Row: 1}}},
		"cell 1 of valid":  {Rows: 1, Cols: 1, Valid: []Rating{{}, {Col: 1}}},
		"of test is NaN":   {Rows: 1, Cols: 1, Test: []Rating{{Value: float32(math.NaN())}}},
		"of train is +Inf": {Rows: 1, Cols: 1, Train: []Rating{{Value: float32(math.Inf(1))}}},
	} {
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
