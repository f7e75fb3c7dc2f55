package host

import (
	"strings"
	"testing"
)

// catching is a world whose goroutines hand over what they panic with.
type catching struct {
	World
	caught chan any
}

func (w *catching) Go(f func()) {
	go func() {
		defer func() { w.caught <- recover() }()
		f()
	}()
}

func (w *catching) Help(f func()) bool { w.Go(f); return true }

func (*catching) Processors() int { return 2 }

func outOfRange(s []int) { s[len(s)] = 1 }

// A panic of a goroutine, or of a helper, is told with the function that panicked, and goes on.
func TestAPanicIsToldAndGoesOn(t *testing.T) {
	for name, x := range map[string]struct {
		f     func(h *Host)
		where string
	}{
		"a rule":       {func(*Host) { panic("a defect") }, "host.TestAPanicIsToldAndGoesOn.func"},
		"an index":     {func(*Host) { outOfRange(nil) }, "host.outOfRange (panic_test.go:"},
		"a nil":        {func(*Host) { var h *Host; _ = h.err }, "host.TestAPanicIsToldAndGoesOn.func"},
		"nobody tells": {func(h *Host) { h.onPanic = nil; panic("quiet") }, ""},
		"no panic":     {func(*Host) {}, ""},
	} {
		for kind, begin := range map[string]func(h *Host, f func()){
			"Go": func(h *Host, f func()) { h.Go(f) },
			"Help": func(h *Host, f func()) {
				team := NewTeam(h, Rounds, 1, 2, func(int, int) int { f(); return 1 })
				team.parts, team.open = 1, true
				team.help()
			},
		} {
			w := &catching{Real(), make(chan any, 1)}
			h := New(w)
			told := ""
			h.OnPanic(func(err error) { told = err.Error() })
			begin(h, func() { x.f(h) })
			p := <-w.caught
			if (p != nil) != (name != "no panic") || (told != "") != (x.where != "") || !strings.Contains(told, x.where) {
				t.Errorf("%s, %s: panics with %v, told %q, want %q", name, kind, p, told, x.where)
			}
		}
	}
}
