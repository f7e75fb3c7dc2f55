package history

import (
	"testing"

	"github.com/godwit-ps/godwit"
)

func oneCopy(strict bool) *History {
	return New(2, func(i int) int { return i }, func(godwit.Key) bool { return true }, strict)
}

// A push that was given up while it was issued counts once or not at all, and those
// beside it count all the same.
func TestAnUnsurePushCountsOnceAtTheMost(t *testing.T) {
	for v, ok := range map[float32]bool{0: false, 1: true, 2: true, 3: false} {
		h := oneCopy(true)
		h.PushIssued(0, key)
		h.PushComplete(0, key)
		h.PushIssued(0, key)
		h.PushUnsure(0, key)
		r := h.ReadIssued(0, key)
		for what, err := range map[string]error{"a read": h.Read(r, []float32{v, 0, 0}), "the end": h.Final(key, []float32{v, 0, 0}), "a read when all is synchronized": h.Synced(key, []float32{v, 0, 0})} {
			if (err == nil) != ok {
				t.Errorf("%s of %v: %v", what, v, err)
			}
		}
		if least, most := h.Pushes(key); least != 1 || most != 2 {
			t.Errorf("%d … %d pushes", least, most)
		}
	}
}

// A push that nobody waits for any more may come late, and comes.
func TestADroppedPushCountsInTheEnd(t *testing.T) {
	h := oneCopy(false)
	h.PushIssued(0, key)
	h.PushDropped(0, key)
	if err := h.Synced(key, []float32{0, 0, 0}); err != nil {
		t.Error(err)
	}
	if h.Final(key, []float32{0, 0, 0}) == nil || h.Synced(key, []float32{2, 0, 0}) == nil {
		t.Error("a lost push, or one that counts twice, goes unnoticed")
	}
}

// After a set that may never take effect, reads may show the one before it.
func TestAnUnsureSetMayBeSeenOrNot(t *testing.T) {
	for set, v := range []float32{0, Era, 2 * Era} {
		h := oneCopy(true)
		first := h.SetIssued(0, key)
		h.SetComplete(key, first)
		second := h.SetIssued(0, key)
		h.SetUnsure(0, key, second)
		r := h.ReadIssued(0, key)
		row := []float32{v, v, v}
		if err := h.Read(r, row); (err == nil) != (set > 0) {
			t.Errorf("a read of %v: %v", row, err)
		}
		if err := h.Final(key, row); (err == nil) != (set > 0) {
			t.Errorf("%v in the end: %v", row, err)
		}
	}
	h := oneCopy(false)
	h.SetUnsure(0, key, h.SetIssued(0, key))
	if err := h.Final(key, nil); err != nil {
		t.Error(err)
	}
}

// A read owes what is sure of a worker's pushes, and no more.
func TestClocksOweNoUnsurePush(t *testing.T) {
	c := NewClocks(2)
	for range 3 {
		c.Push(0, key)
	}
	c.PushUnsure(0, key)
	c.PushUnsure(0, key)
	c.Push(0, key)
	for w := range 2 {
		c.Advance(w)
	}
	if err := c.Read(key, []float32{2, 0}, Moment{Clock: 1}); err != nil {
		t.Error(err)
	}
	if c.Read(key, []float32{1, 0}, Moment{Clock: 1}) == nil {
		t.Error("a missing push goes unnoticed")
	}
}

// A read has no push that was not made, or that counts twice.
func TestClocksNoticeAPushThatCountsTwice(t *testing.T) {
	c := NewClocks(2)
	c.Push(0, key)
	c.Push(0, key)
	c.PushUnsure(0, key)
	if err := c.Read(key, []float32{2, 0}, Moment{}); err != nil {
		t.Error(err)
	}
	for _, v := range [][]float32{{3, 0}, {2, 1}} {
		if c.Read(key, v, Moment{}) == nil {
			t.Errorf("%v goes unnoticed, of which worker 0 pushed 2 and worker 1 none", v)
		}
	}
}

// A read whose bound says that all workers are at a clock must not return before they are.
func TestClocksNoticeAReadThatDidNotWait(t *testing.T) {
	c := NewClocks(2)
	c.Advance(0)
	if c.Read(key, []float32{0, 0}, Moment{Clock: 1}) == nil {
		t.Error("a read goes unnoticed that returns while a worker is before the clock that it must contain")
	}
	c.Barrier(1)
	if err := c.Read(key, []float32{0, 0}, Moment{Clock: 1}); err != nil {
		t.Error(err)
	}
}

// What was held back counts when it was flushed, unless a set that is under way may have overwritten it.
func TestASetUnderWayMayOverwriteWhatWasHeldBack(t *testing.T) {
	for set, want := range []int{1, 0} {
		h := oneCopy(false).Holds(func(godwit.Key) bool { return true })
		h.PushIssued(0, key)
		h.PushComplete(0, key)
		done := h.Completed(0, key)
		if set > 0 {
			h.SetIssued(0, key)
		}
		if sure := h.Flushed(0, key, done); done[0] != 1 || sure[0] != want {
			t.Errorf("with %d sets under way, %d of %d pushes are sure, want %d", set, sure[0], done[0], want)
		}
	}
}
