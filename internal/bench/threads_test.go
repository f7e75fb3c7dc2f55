package bench

import (
	"sync/atomic"
	"testing"
	"time"
)

func TestEachThreadRunsATurnOnce(t *testing.T) {
	c := newThreads(3)
	for n := 1; n <= 3; n++ {
		var calls [3]atomic.Int32
		c.turn(n, func(w int) { calls[w].Add(1) })
		for w := range calls {
			want := int32(0)
			if w < n {
				want = 1
			}
			if got := calls[w].Load(); got != want {
				t.Errorf("a turn of %d: member %d was called %d times", n, w, got)
			}
		}
		if took, _ := c.clock(); took <= 0 {
			t.Errorf("a turn took %v", took)
		}
	}
	c.close()
}

func TestTurnsCountThatAllDidAtTheSameTime(t *testing.T) {
	zero := time.Now()
	s := func(from, to, ran int) span {
		return span{zero.Add(time.Duration(from)), zero.Add(time.Duration(to)), int64(ran)}
	}
	for _, c := range []struct {
		name  string
		spans []span
		took  time.Duration
		ok    bool
	}{
		{"alone", []span{s(0, 1000, 1000)}, 1000, true},
		{"alone and interrupted", []span{s(0, 1000, 900)}, 1000, false},
		{"where the system does not say who ran", []span{s(0, 1000, 0)}, 1000, true},
		{"together", []span{s(0, 1000, 1000), s(50, 950, 900)}, 950, true},
		{"one after the other", []span{s(0, 1000, 1000), s(1000, 2000, 1000)}, 1000, false},
		{"one interrupted", []span{s(0, 1000, 1000), s(0, 1000, 500)}, 1000, false},
		{"one late", []span{s(0, 1000, 1000), s(300, 1300, 1000)}, 1000, false},
	} {
		if took, ok := parallel(c.spans); took != c.took || ok != c.ok {
			t.Errorf("%s: %v, counts %v; want %v, %v", c.name, took, ok, c.took, c.ok)
		}
	}
}
