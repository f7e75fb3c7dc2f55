package latch

import (
	"runtime"
	"sync"
	"testing"
	"time"
)

func TestALatchIsHeldByOneAtATime(t *testing.T) {
	var l Latch
	var wg sync.WaitGroup
	n := 0
	for range 4 {
		wg.Go(func() {
			for range 20_000 {
				l.Lock()
				n++
				l.Unlock()
			}
		})
	}
	wg.Wait()
	if n != 80_000 {
		t.Errorf("%d of 80000 additions arrived", n)
	}
	if v, free := l.Word(); !free || v != 160_000 {
		t.Errorf("after 80000 locks and unlocks the word is %d, free %v", v, free)
	}
}

func TestAWordDoesNotSurviveALock(t *testing.T) {
	var l Latch
	v, _ := l.Word()
	if !l.Unchanged(v) {
		t.Error("changed without a lock")
	}
	l.Lock()
	if l.Unchanged(v) {
		t.Error("unchanged while locked")
	}
	if _, free := l.Word(); free {
		t.Error("free while locked")
	}
	l.Unlock()
	if l.Unchanged(v) {
		t.Error("unchanged after a lock")
	}
}

func TestWhoFindsItLockedWaits(t *testing.T) {
	var l Latch
	if !l.TryLock() || l.TryLock() {
		t.Error("of two who try to lock, not the first alone succeeds")
	}
	got := make(chan struct{})
	go func() {
		l.Lock()
		close(got)
	}()
	for l.queue.TryLock() { // until it waits
		l.queue.Unlock()
		runtime.Gosched()
	}
	time.Sleep(time.Millisecond)
	select {
	case <-got:
		t.Error("two hold the latch")
	default:
	}
	l.Unlock()
	<-got
	if v, free := l.Word(); free || v != 3 {
		t.Errorf("locked for the second time, the word is %d, free %v", v, free)
	}
	l.Unlock()
	if !l.TryLock() {
		t.Error("cannot be locked again")
	}
	l.Unlock()
}
