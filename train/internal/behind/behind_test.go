package behind

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/godwit-ps/godwit"
)

// worker notes what it is asked, in order. Pushes of key 9 are complete at once.
type worker struct {
	godwit.Worker
	last   godwit.Handle
	waited []godwit.Handle
	fails  error
}

func (w *worker) PushAsync(_ context.Context, keys []godwit.Key, _ []float32) (godwit.Handle, error) {
	if w.last++; keys[0] == 9 {
		return 0, nil
	}
	return w.last, nil
}

func (w *worker) Wait(_ context.Context, hs ...godwit.Handle) error {
	w.waited = append(w.waited, hs...)
	return w.fails
}

func TestTheOldestPushIsWaitedForIfThereAreTooMany(t *testing.T) {
	var p Pushes
	w := &worker{}
	push := func(k godwit.Key) error { return p.Push(t.Context(), w, []godwit.Key{k}, []float32{1}) }
	for _, k := range []godwit.Key{1, 9, 2, 3, 4, 5, 6, 7, 8, 10, 11} { // the second one is complete at once
		if err := push(k); err != nil {
			t.Fatal(err)
		}
	}
	if want := []godwit.Handle{1, 3}; !slices.Equal(w.waited, want) {
		t.Errorf("waited for %v behind ten pushes, want %v", w.waited, want)
	}
	for range 2 {
		if err := p.Flush(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	if want := []godwit.Handle{1, 3, 4, 5, 6, 7, 8, 9, 10, 11}; !slices.Equal(w.waited, want) {
		t.Errorf("waited for %v in all, want %v", w.waited, want)
	}
	w.fails = errors.New("lost")
	var errs error
	for range most + 1 {
		errs = errors.Join(errs, push(1))
	}
	if !errors.Is(errs, w.fails) {
		t.Errorf("the pushes have the error %v, want that of the first", errs)
	}
}
