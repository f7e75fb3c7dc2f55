package setting

import (
	"errors"
	"fmt"
	"testing"
)

type inner struct{ Dim, Batch int }

type settings struct {
	inner
	Graph inner
	Spec  struct{ Rows int }
	Rows  int
	dim   int
}

type Named struct{ Dim, Rows int }

type outer struct {
	Named
	Other struct{ Dim int }
}

func TestAnErrorFindsTheFieldsThatItMayMean(t *testing.T) {
	s := &outer{}
	var e *Error
	if err := fmt.Errorf("loading: %w", Outside("setting.Named", "Dim", 0, 1, 9)); !errors.As(err, &e) || err.Error() != "loading: setting: Named.Dim is 0, want 1 … 9" {
		t.Fatalf("the error is %v", err)
	}
	if ps := e.Pointers(s); len(ps) != 2 || ps[0] != &s.Dim || ps[1] != &s.Other.Dim {
		t.Errorf("fields %v, want first that of the struct that the error names", ps)
	}
	x := &settings{}
	x.dim = 1
	if ps := Bad("elsewhere.Spec", "Rows", 1, "2").(*Error).Pointers(x); len(ps) != 2 || ps[0] != &x.Spec.Rows || ps[1] != &x.Rows {
		t.Errorf("fields %v, want both that have the name", ps)
	}
	for _, other := range []any{nil, x.Rows, *x, &x.Rows} {
		if ps := e.Pointers(other); len(ps) != 0 {
			t.Errorf("fields of a %T: %v", other, ps)
		}
	}
}
