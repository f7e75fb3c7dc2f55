package link

import (
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/filter"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/internal/wire"
)

func TestAPaceIsTheMedianOfWhatTheNetworkTook(t *testing.T) {
	var p pace
	if p.strained(1 << 40) {
		t.Error("a link that never had to wait is strained")
	}
	now := int64(1000)
	take := func(bytes int, took time.Duration) {
		p.begin(now)
		now += int64(took)
		if p.left(bytes); p.enough() {
			p.measure(now)
		}
	}
	take(measured-1, time.Hour)
	if p.strained(1 << 40) {
		t.Error("few bytes are measured")
	}
	const slow = 80 * time.Microsecond // for 10,000 bytes: 1 Gbit/s
	for range paces {
		take(measured, slow*measured/10_000)
	}
	for _, x := range []struct {
		bytes int
		want  bool
	}{{124_000, false}, {126_000, true}} {
		if got := p.strained(x.bytes); got != x.want {
			t.Errorf("at 1 Gbit/s, %d bytes strain the link: %v", x.bytes, got)
		}
	}
	for range paces / 4 {
		take(measured, time.Hour) // who writes lost the processor
		take(measured, 0)         // the system had room for all
	}
	if p.strained(124_000) || !p.strained(126_000) {
		t.Error("some measures of another kind decide")
	}
	for range paces {
		take(measured, slow*measured/100_000)
	}
	if p.strained(1_240_000) || !p.strained(1_260_000) {
		t.Error("the pace is not that of the last measures")
	}
}

// A timed world has the time that a test gives it.
type timed struct {
	host.World
	now int64
}

func (w *timed) Now() int64 { return w.now }

// The interface of a simulated node takes the next frame when the one before has left.
func TestAWayIsStrainedWhileMoreIsQueuedThanItTakesInTime(t *testing.T) {
	w := &timed{World: host.Real(), now: 1}
	ls := New(host.New(w), 0, 3, 1, host.Usual, filter.Compress{}, host.NewBell())
	for peer := godwit.NodeID(1); peer < 3; peer++ {
		ls.Imagine(peer, func() {})
	}
	out := ls.Sender()
	row := &wire.Record{Kind: wire.Set, Key: 1, Vals: make([]float32, 16<<10)} // 64 KiB
	var buf []byte
	empty := func(pace time.Duration) {
		for {
			if buf = ls.To(1).Take(buf); len(buf) == 0 {
				return
			}
			w.now += int64(pace) * int64(len(buf)) / 1000
		}
	}
	for range 20 {
		out.Send(1, row)
	}
	if out.Strained(1) {
		t.Error("a way is strained before anything was measured")
	}
	empty(8 * time.Microsecond) // 1000 bytes at 1 Gbit/s
	if out.Strained(1) {
		t.Error("a way is strained on which nothing waits")
	}
	if most := 2 * 124_000; out.StrainedBy(most) || !out.StrainedBy(most+4000) {
		t.Error("125,000 bytes take a millisecond at 1 Gbit/s")
	}
	out.Send(1, row)
	if out.Strained(1) {
		t.Error("half a millisecond strains a way")
	}
	out.Send(1, row)
	if !out.Strained(1) || out.Strained(2) || out.Strained(0) {
		t.Errorf("strained: %v, the way to another peer: %v, to itself: %v, want the first only", out.Strained(1), out.Strained(2), out.Strained(0))
	}
	empty(0)
	if out.Strained(1) {
		t.Error("a way is strained when all has left")
	}
}
