//go:build !race

package bench

// The baselines of two workers are loops without any synchronisation.

import (
	"context"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit/internal/racing"
)

func TestEachCaseMeasuresAndCloses(t *testing.T) {
	if racing.Enabled {
		t.Skip("measures for long what tests of nodes do under the race detector")
	}
	r, err := Run(context.Background(), small())
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Results) != len(Names()) {
		t.Errorf("%d results of %d cases", len(r.Results), len(Names()))
	}
	for _, x := range r.Results {
		if !(x.Nanos.Median > 0) || x.Nanos.Q1 > x.Nanos.Median || x.Nanos.Median > x.Nanos.Q3 || x.Turns < leastRounds || len(x.Ratios) == 0 {
			t.Errorf("%s: %+v", x.Name, x)
		}
		for _, ratio := range x.Ratios {
			if !(ratio.Median > 0) || ratio.To == "" {
				t.Errorf("%s: ratio %+v", x.Name, ratio)
			}
		}
	}
	var b strings.Builder
	if err := r.Print(&b); err != nil {
		t.Fatal(err)
	}
	for _, name := range Names() {
		if !strings.Contains(b.String(), name) {
			t.Errorf("the table lacks %s", name)
		}
	}
}

// Local pulls and pushes of any number of keys allocate nothing.
func TestLocalCallsAllocateNothing(t *testing.T) {
	o := small()
	o.Only = []string{"1 worker"}
	r, err := Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range r.Results {
		if *x.Allocs > 0 {
			t.Errorf("%s: a turn allocates %v objects", x.Name, *x.Allocs)
		}
	}
}
