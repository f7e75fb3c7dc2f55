package checkpoint

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	one = Holder{Run: "one", Host: "h", PID: 1, Since: time.Unix(0, 0)}
	two = Holder{Run: "two", Host: "h", PID: 2, Since: time.Unix(0, 0)}
)

func TestASecondRunInAFolderIsRefused(t *testing.T) {
	ctx, s := t.Context(), folder(t)
	if !canLock(s) {
		t.Skip("this system has no locks of files")
	}
	l, err := Acquire(ctx, s, one)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Acquire(ctx, s, two); !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), "the run one, process 1 of h") {
		t.Errorf("a second run got %v", err)
	}
	if err := errors.Join(l.Check(), l.Release()); err != nil {
		t.Fatal(err)
	}
	l, err = Acquire(ctx, s, two)
	if err != nil {
		t.Fatalf("after the first one: %v", err)
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
}

// unlockable is a folder whose files cannot be locked.
func unlockable(t *testing.T) *Folder {
	s := folder(t)
	s.disk = struct{ disk }{s.disk}
	return s
}

const testTTL = 400 * time.Millisecond

// putLease writes the state of a lease.
func putLease(t *testing.T, s Store, n int, state leaseState) {
	t.Helper()
	if err := (&keeper{store: s, number: n}).put(t.Context(), state); err != nil {
		t.Error(err)
	}
}

func TestALeaseThatIsRenewedIsRefused(t *testing.T) {
	s := unlockable(t)
	putLease(t, s, 1, leaseState{Holder: one})
	ended := make(chan struct{})
	var renewing sync.WaitGroup
	renewing.Go(func() {
		for beat := 1; ; beat++ {
			select {
			case <-ended:
				return
			case <-time.After(time.Millisecond):
				putLease(t, s, 1, leaseState{Holder: one, Beat: beat})
			}
		}
	})
	_, err := lease(t.Context(), s, two, 4*time.Second)
	close(ended)
	renewing.Wait()
	if !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), "the run one, process 1 of h") {
		t.Errorf("a second run got %v", err)
	}
}

func TestALeaseThatWasGivenBackIsFreeAtOnce(t *testing.T) {
	ctx, s := t.Context(), unlockable(t)
	for i := range 3 {
		l, err := lease(ctx, s, two, time.Hour) // so long it would watch
		if err != nil {
			t.Fatalf("run %d: %v", i, err)
		}
		if err := errors.Join(l.Check(), l.Release()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestALeaseThatIsTakenOverIsLost(t *testing.T) {
	ctx, s := t.Context(), unlockable(t)
	k := &keeper{store: s, number: 1, ttl: time.Hour, renewed: time.Now(), state: leaseState{Holder: one}}
	if err := k.put(ctx, k.state); err != nil {
		t.Fatal(err)
	}
	l, err := lease(ctx, s, two, testTTL) // nobody renews the first
	if err != nil {
		t.Fatal(err)
	}
	k.renew(ctx)
	if err := k.check(); !errors.Is(err, ErrLocked) {
		t.Errorf("the first holder was told %v", err)
	}
	if err := k.release(); err != nil {
		t.Error(err)
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	if state, err := readLease(ctx, s, 2); err != nil || !state.Released || state.Run != "two" {
		t.Errorf("the lease is %+v, %v", state, err)
	}
}
