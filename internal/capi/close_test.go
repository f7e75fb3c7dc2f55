package capi

import (
	"context"
	"errors"
	"testing"
	"time"
)

// under makes a call that goes on until it is let go, whatever ends its context.
func under(t *testing.T, w *Worker) (op uint64, let func()) {
	t.Helper()
	must(t, w.enter(&push))
	goOn := make(chan struct{})
	op, err := w.beside(push, 0, nil, func(context.Context) error {
		<-goOn
		return nil
	})
	must(t, err)
	return op, func() { close(goOn) }
}

// What is closed uses no memory of callers any more, and takes no calls.
func TestCloseWaitsForCallsThatAreUnderWay(t *testing.T) {
	c := open(t, Config{Workers: 2, Tables: twoTables})
	w, other := worker(t, c, 0), worker(t, c, 1)
	_, let := under(t, w)
	if over, err := c.Close(100 * time.Millisecond); over || err != nil {
		t.Errorf("closed while a call is under way: %v, %v", over, err)
	}
	let()
	if over, err := c.Close(-1); !over || err != nil {
		t.Errorf("not closed after that: %v, %v", over, err)
	}
	for _, w := range []*Worker{w, other} {
		if _, err := w.Advance(); CodeOf(err) != Closed {
			t.Errorf("a call after that: %v", err)
		}
	}
}

// An operation is waited for while a later one has the worker, and goes on where a wait fails because another thread has it.
func TestAnOperationIsWaitedForWhileALaterOneHasTheWorker(t *testing.T) {
	c := open(t, Config{Nodes: 2, Policy: "static", Tables: twoTables})
	w := worker(t, c, 0)
	rows, dst := make([]int64, 1000), make([]float32, 4000)
	for i := range rows {
		rows[i] = int64(i)
	}
	first, err := w.Pull(0, rows, dst, 0, 0)
	must(t, err)
	if first == 0 {
		t.Skip("the values came at once")
	}
	later, let := under(t, w)
	if over, err := w.Wait(first, time.Millisecond); over || err != nil {
		t.Errorf("while a later one has the worker: over %v, %v", over, err)
	}
	let()
	done(t, w)(later, nil)
	must(t, w.enter(&pull))
	if over, err := w.Wait(first, 0); over || !errors.Is(err, ErrBusy) {
		t.Errorf("while another thread has the worker: over %v, %v", over, err)
	}
	w.leave()
	done(t, w)(first, nil)
}
