package node

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit"
)

// caught returns what f panics with.
func caught(f func()) (text string) {
	defer func() {
		if x := recover(); x != nil {
			text = fmt.Sprint(x)
		}
	}()
	f()
	return ""
}

// A probe is a filter that does something, which no filter should.
type probe struct{ do func() }

func (*probe) Name() string                 { return "probe" }
func (p *probe) Filter(*godwit.FilterBatch) { p.do() }

// One goroutine waits in a call of a worker, another calls it: whatever is called
// says so, instead of losing what the first one waits for.
func TestTwoGoroutinesOnAWorkerAreNoticed(t *testing.T) {
	c := local(t, 2, Config{Model: lengths(t), Workers: 2})
	w := c.Nodes[0].Worker(0)
	ctx := context.Background()
	keys := homedAt(t, c.Nodes[0], 1, 1)
	dst := make([]float32, w.Model().Dim(keys[0]))
	done := make(chan error, 1)
	calls := map[string]func(){
		"Pull":          func() { _ = w.Pull(ctx, keys, dst) },
		"Push":          func() { _ = w.Push(ctx, keys, dst) },
		"Set":           func() { _ = w.Set(ctx, keys, dst) },
		"Localize":      func() { _ = w.Localize(ctx, keys) },
		"PullAsync":     func() { _, _ = w.PullAsync(ctx, keys, dst) },
		"PushAsync":     func() { _, _ = w.PushAsync(ctx, keys, dst) },
		"SetAsync":      func() { _, _ = w.SetAsync(ctx, keys, dst) },
		"LocalizeAsync": func() { _, _ = w.LocalizeAsync(ctx, keys) },
		"PullIfLocal":   func() { _ = w.PullIfLocal(keys[0], dst) },
		"PullAfter":     func() { _, _ = w.PullAfter(ctx, 0, keys, dst) },
		"Wait":          func() { _ = w.Wait(ctx, 1) },
		"Intent":        func() { _ = w.Intent(keys, 1, 2) },
		"Advance":       func() { w.Advance() },
		"Finish":        func() { w.Finish() },
		"Rest":          func() { w.(godwit.Cutter).Rest() },
		"OnCut":         func() { w.(godwit.Cutter).OnCut(nil) },
		"Await":         func() { _, _ = w.(godwit.Awaiter).Await(ctx, 1) },
		"AwaitAhead":    func() { _, _ = w.(godwit.Awaiter).AwaitAhead(ctx) },
		"BoundAge":      func() { w.BoundAge(1) },
		"SyncAll":       func() { _ = w.SyncAll(ctx) },
		"WaitSync":      func() { _ = w.WaitSync(ctx) },
		"Barrier":       func() { _ = w.Barrier(ctx) },
		"PrepareSample": func() { _, _ = w.PrepareSample(0, 1, 0, 1) },
		"PullSample":    func() { _ = w.PullSample(ctx, 0, keys, dst) },
		"FinishSample":  func() { w.FinishSample(0) },
		"Scan": func() {
			for range w.Scan(ctx, 0, 1, godwit.NoNode) {
				break
			}
		},
	}
	called := 0
	probe := &probe{func() { // in the middle of a push
		for name, call := range calls {
			called++
			if text := caught(call); !strings.Contains(text, "worker 0.0 is used by two goroutines") {
				t.Errorf("%s while another call is under way: panics with %q, want that it names the worker and the cause", name, text)
			}
		}
	}}
	must(t, w.Push(godwit.WithFilters(ctx, probe), keys, dst))
	if called != len(calls) {
		t.Fatalf("%d calls were made in the middle of a push, want %d", called, len(calls))
	}
	go func() { done <- w.Pull(ctx, keys, dst) }()
	must(t, <-done) // another goroutine may use it afterwards
}

// The body of a scan is the same goroutine, and may use the worker.
func TestTheBodyOfAScanUsesTheWorker(t *testing.T) {
	_, w, here, there := twoNodes(t)
	ctx := background(t)
	v := make([]float32, w.Model().Dim(there[0]))
	must(t, w.Pull(ctx, there[:1], v))
	seen := 0
	for k, err := range w.Scan(ctx, 0, godwit.Key(w.Model().Keys()), godwit.NoNode) {
		must(t, err)
		must(t, w.Pull(ctx, []godwit.Key{k}, make([]float32, w.Model().Dim(k))))
		seen++
	}
	if seen == 0 {
		t.Error("the scan listed nothing")
	}
	for _, err := range w.Scan(ctx, 1, 0, godwit.NoNode) {
		if err == nil {
			t.Error("a scan that ends before it begins")
		}
		must(t, w.Pull(ctx, here[:1], make([]float32, w.Model().Dim(here[0]))))
	}
}
