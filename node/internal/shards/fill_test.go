package shards

import (
	"slices"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/protocol"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/node/internal/roomtest"
)

// keyed begins rows of a key by it.
type keyed struct{}

func (keyed) Name() string { return "keyed" }

func (keyed) Init(dst []float32, _ uint64, key godwit.Key) {
	for i := range dst {
		dst[i] = float32(10*int(key) + i)
	}
}

// wide returns rows of a model that no processor's cache holds, so that rows are made
// many at a time.
func wide(t testing.TB, nodes int) *Set {
	return setOf(t, nodes, godwit.Table{Name: "five", Rows: 40_000, Dim: 5, Init: keyed{}})
}

// A call of keys that nobody has accessed has their rows made ahead of it.
func TestFreshKeysAreMadeAtOnce(t *testing.T) {
	s := wide(t, 1)
	a := s.Access()
	keys := make([]godwit.Key, fillKeys)
	for i := range keys {
		keys[i] = godwit.Key(i * 7)
	}
	dst := make([]float32, 5*len(keys))
	a.Serve(wire.Pull, keys, dst)
	if len(a.filler.shards.keys) < fillKeys/4 {
		t.Errorf("rows of %d keys were made at once, want %d", len(a.filler.shards.keys), fillKeys)
	}
	for i, x := range dst {
		if want := float32(10*7*(i/5) + i%5); x != want {
			t.Fatalf("float %d is %v, want %v", i, x, want)
		}
	}
}

// Nobody who waits for a shard waits for long.
func TestAShardIsLockedForFewKeysAtATime(t *testing.T) {
	s := setOf(t, 1, godwit.Table{Name: "short", Rows: 1 << 20, Dim: 1}, godwit.Table{Name: "long", Rows: 1 << 12, Dim: 9000})
	w := s.Access()
	for name, x := range map[string]struct {
		first godwit.Key
		want  int
	}{"short": {0, holdKeys}, "long": {1 << 20, 2}} {
		keys := make([]godwit.Key, 3*holdKeys)
		for i := range keys {
			keys[i] = x.first + godwit.Key(i%4)<<9
		}
		w.filler.keys, w.filler.was = w.filler.shards.sorted(s, keys)
		for i := 0; i < len(keys); {
			end := w.hold(i, &s.tables[0])
			if end-i > x.want || end-i < x.want && end < len(keys) {
				t.Fatalf("%s rows: a shard is locked for the keys at %d … %d, want %d", name, i, end-1, x.want)
			}
			i = end
		}
	}
}

// Where the homes of the keys are here, but their rows are not, looking for rows to
// make is soon given up.
func TestAFillerThatMakesNothingIsLeftAlone(t *testing.T) {
	s := wide(t, 2)
	_, out := senderOf(s)
	here := homed(t, s, 200)
	v := s.Server(1, out)
	for _, k := range here {
		roomtest.Must(t, v.Step(out, &wire.Record{Kind: wire.Localize, Key: k, Op: 1, Origin: 1}))
		roomtest.Must(t, v.Step(out, &wire.Record{Kind: wire.Claim, Key: k, Origin: 1, Epoch: 1}))
		if got := s.Holding(k).State; got != "absent" {
			t.Fatalf("key %d is %q here, want that its row is gone", k, got)
		}
	}
	a := s.Access()
	buf := make([]float32, 5*len(here))
	tried := 0
	const calls = 40
	for range calls {
		before := a.filler.left
		if a.Serve(wire.Pull, here, buf); len(a.Miss) != 2*len(here) {
			t.Fatalf("%d of %d keys are missed", len(a.Miss)/2, len(here))
		}
		if a.filler.left > before {
			tried++
		}
	}
	if tried == 0 || tried > calls/2 {
		t.Errorf("of %d calls, %d looked for rows to make", calls, tried)
	}
}

func TestMakingRowsAllocatesNothingOfItsOwn(t *testing.T) {
	s := wide(t, 1)
	w := s.Access()
	keys := make([]godwit.Key, fillKeys)
	for i := range keys {
		keys[i] = godwit.Key(i)
	}
	dst := make([]float32, 5*len(keys))
	fill := func() {
		w.fill(keys, dst)
	}
	fill()
	if n := testing.AllocsPerRun(100, fill); n > 0 {
		t.Errorf("%v allocations a call", n)
	}
}

func TestAClosedNodeMakesNoRows(t *testing.T) {
	s := wide(t, 1)
	w := s.Access()
	s.Close()
	if floats, served := w.fill([]godwit.Key{1, 2, 3}, make([]float32, 15)); served || floats != 0 {
		t.Errorf("a closed node says that it made rows: %d floats", floats)
	}
}

// The values of rows that are made at once need no second look.
func TestRowsThatAreMadeForAPullAreServedWithIt(t *testing.T) {
	s := wide(t, 1)
	w := s.Access()
	keys := make([]godwit.Key, fillKeys)
	for i := range keys {
		keys[i] = godwit.Key(i)
	}
	dst := make([]float32, 5*len(keys))
	floats, served := w.fill(keys, dst)
	if floats != len(dst) || !served {
		t.Fatalf("%d of %d floats; served is %v", floats, len(dst), served)
	}
	want := make([]float32, len(dst))
	if ok := w.Serve(wire.Pull, keys, want); !ok || len(w.Miss) > 0 {
		t.Fatalf("%d keys are missed", len(w.Miss)/2)
	}
	if !slices.Equal(dst, want) {
		t.Error("they are others than those that a pull gets")
	}
}

// However few keys a call has: when most of them had no rows, those of the next call are made
// together.
func TestAfterACallWithoutRowsThoseOfTheNextAreMadeTogether(t *testing.T) {
	for _, n := range []int{together, step, step + 5, 100} {
		s := setOf(t, 1, godwit.Table{Name: "t", Rows: 1000, Dim: 2})
		a := s.Access()
		keys := make([]godwit.Key, n)
		for call := range 3 {
			for i := range keys {
				keys[i] = godwit.Key(call*n + i)
			}
			if a.Serve(wire.Pull, keys, make([]float32, 2*n)); len(a.Miss) > 0 || a.Served[protocol.AtOwner] != uint64(n) {
				t.Fatalf("%d keys, call %d: %v are served, %v missed", n, call, a.Served, a.Miss)
			}
			if !a.filler.on {
				t.Errorf("after call %d of %d keys without rows, rows are made one by one", call, n)
			}
		}
	}
}
