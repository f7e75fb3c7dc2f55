package host

import (
	"fmt"
	"path"
	"runtime"
	"strings"
)

// OnPanic has tell called, with an error that says what and where, when who works for the node panics, and before that ends the
// process: so the other nodes can be told. The panicking goroutine may hold any lock of the node. It is called before the node begins.
func (h *Host) OnPanic(tell func(error)) { h.onPanic = tell }

// Go is that of the world. If f panics, the node says so first.
func (h *Host) Go(f func()) {
	h.World.Go(func() {
		defer h.Panicking()
		f()
	})
}

// Panicking is deferred by who works for the node: its goroutines, and workers that take what came for it. A panic is told, once, and goes on.
// When a worker's program recovers from it, the run is over.
func (h *Host) Panicking() {
	if h.onPanic == nil {
		return
	}
	if p := recover(); p != nil {
		err := panicIn(p)
		h.panicked.Do(func() { h.onPanic(err) })
		panic(p)
	}
}

// Panicking is deferred by a goroutine of who uses a node: tell is told of its panic, which goes on.
func Panicking(tell func(error)) {
	if p := recover(); p != nil {
		tell(panicIn(p))
		panic(p)
	}
}

// panicIn is the error of a panic: which function panicked, where, and with what. Its caller is the function that recovered.
func panicIn(p any) error {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	where := "an unknown function"
	for began, more := false, true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		began = began || f.Function == "runtime.gopanic"
		if began && !strings.HasPrefix(f.Function, "runtime.") {
			where = fmt.Sprintf("%s (%s:%d)", f.Function, path.Base(f.File), f.Line)
			break
		}
	}
	return fmt.Errorf("panic in %s: %v (the output of its process has the whole stack)", where, p)
}
