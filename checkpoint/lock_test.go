package checkpoint

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	one = Holder{Run: "one", Host: "h", PID: 1, Since: time.Unix(0, 0)}
	two = Holder{Run: "two", Host: "h", PID: 2, Since: time.Unix(0, 0)}
)

// lockedFolder returns a folder that the run one has locked, and the lock, where the system has locks of files.
func lockedFolder(t *testing.T) (*Folder, *Lock) {
	t.Helper()
	s := folder(t)
	if !canLock(s) {
		t.Skip("this system has no locks of files")
	}
	l, err := Acquire(t.Context(), s, one)
	if err != nil {
		t.Fatal(err)
	}
	return s, l
}

func TestASecondRunInAFolderIsRefused(t *testing.T) {
	ctx := t.Context()
	s, l := lockedFolder(t)
	if _, err := Acquire(ctx, s, two); !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), "the run one, process 1 of h") {
		t.Errorf("a second run got %v", err)
	}
	if err := errors.Join(l.Check(), l.Release()); err != nil {
		t.Fatal(err)
	}
	l, err := Acquire(ctx, s, two)
	if err != nil {
		t.Fatalf("after the first one: %v", err)
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
}

// A folder that is moved takes the lock along. What is in its place is locked anew, unless another run has it or had it: else the checkpoints of two runs were
// in one place, and each run removed the other's.
func TestAFolderThatWasMovedIsLockedWhereTheRunWrites(t *testing.T) {
	ctx := t.Context()
	s, l := lockedFolder(t)
	defer l.Release()
	moved := s.dir + "-moved"
	if err := os.Rename(s.dir, moved); err != nil {
		t.Fatal(err)
	}
	if err := l.Check(); err != nil {
		t.Fatalf("nothing is in its place: %v", err)
	}
	if _, err := Acquire(ctx, s, two); !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), "the run one, process 1 of h") {
		t.Errorf("where it writes now, a second run got %v", err)
	}
	if err := errors.Join(os.RemoveAll(s.dir), os.CopyFS(s.dir, os.DirFS(moved)), l.Check()); err != nil {
		t.Errorf("a copy is in its place: %v", err)
	}
	if err := os.RemoveAll(s.dir); err != nil {
		t.Fatal(err)
	}
	other, err := Acquire(ctx, s, two)
	if err != nil {
		t.Fatal(err)
	}
	for _, when := range []string{"another run has it", "another run had it"} {
		if err := l.Check(); !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), "the run two, process 2 of h") || !strings.Contains(err.Error(), "was moved") {
			t.Errorf("%s: %v", when, err)
		}
		if err := other.Release(); err != nil {
			t.Error(err)
		}
	}
	if err := errors.Join(os.RemoveAll(s.dir), os.Rename(moved, s.dir), l.Check(), l.Release()); err != nil {
		t.Errorf("it was moved back: %v", err)
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
	if err := k.check(); !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), "the run two, process 2 of h") {
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

// Who empties a place, or removes the lease by hand, lets another run in. The former one notices, and leaves the other's lease alone.
func TestALeaseThatWasRemovedIsTheNextRuns(t *testing.T) {
	ctx, s := t.Context(), unlockable(t)
	first := func() *keeper {
		return &keeper{store: s, number: 1, ttl: time.Hour, renewed: time.Now(), state: leaseState{Holder: one, Word: "first"}}
	}
	k := first()
	if err := k.put(ctx, k.state); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(ctx, leaseName(1)); err != nil {
		t.Fatal(err)
	}
	if k.renew(ctx); k.check() != nil {
		t.Errorf("nobody came meanwhile: %v", k.check())
	}
	if err := s.Remove(ctx, leaseName(1)); err != nil {
		t.Fatal(err)
	}
	l, err := lease(ctx, s, two, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	k.renew(ctx)
	if err := k.check(); !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), "the run two, process 2 of h") || !strings.Contains(err.Error(), "lock-1 was removed") {
		t.Errorf("the first holder was told %v", err)
	}
	if err := first().release(); err != nil { // which has not noticed yet
		t.Error(err)
	}
	if state, err := readLease(ctx, s, 1); err != nil || state.Released || state.Run != "two" {
		t.Errorf("the lease is %+v, %v", state, err)
	}
	if err := errors.Join(l.Check(), l.Release()); err != nil {
		t.Error(err)
	}
}

// deaf is a store that answers nothing but errors.
type deaf struct{ Store }

var errDeaf = errors.New("the store does not answer")

func (deaf) Size(context.Context, string) (int64, error) { return 0, errDeaf }
func (deaf) Put(context.Context, string, []byte) error   { return errDeaf }

// After an outage the lease is renewed before it counts as lost.
func TestALeaseIsNotLostByAnOutage(t *testing.T) {
	s := unlockable(t)
	long := func(s Store) *keeper { // since it was renewed
		return &keeper{store: s, number: 1, ttl: time.Hour, renewed: time.Now().Add(-2 * time.Hour), state: leaseState{Holder: one}}
	}
	if err := long(deaf{s}).check(); !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), "perhaps") {
		t.Errorf("while the store does not answer: %v", err)
	}
	k := long(s)
	if err := k.check(); err != nil {
		t.Errorf("nobody took over: %v", err)
	}
	if state, err := readLease(t.Context(), s, 1); err != nil || state.Beat != 1 {
		t.Errorf("the lease is %+v, %v", state, err)
	}
	putLease(t, s, 2, leaseState{Holder: two})
	if err := k.check(); err != nil {
		t.Errorf("the lease was renewed just now: %v", err)
	}
	if err := long(s).check(); !errors.Is(err, ErrLocked) || strings.Contains(err.Error(), "perhaps") {
		t.Errorf("another run took over: %v", err)
	}
}

// meanwhile is a store in which something else happens just before a lease is renewed, or created.
type meanwhile struct {
	Store
	put, create func()
}

func (s meanwhile) Put(ctx context.Context, name string, b []byte) error {
	if s.put != nil {
		s.put()
	}
	return s.Store.Put(ctx, name, b)
}

func (s meanwhile) Create(ctx context.Context, name string, write func(io.Writer) error) error {
	if s.create != nil {
		s.create()
	}
	return s.Store.Create(ctx, name, write)
}

// Of two runs that come at the same moment one has the lease, and the other hears which that is.
func TestWhoComesAtTheSameTimeHearsOfWhom(t *testing.T) {
	s := unlockable(t)
	_, err := lease(t.Context(), meanwhile{Store: s, create: func() { putLease(t, s, 1, leaseState{Holder: one}) }}, two, time.Hour)
	if !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), "the run one, process 1 of h") {
		t.Errorf("the second one got %v", err)
	}
}

// A lease is renewed after an outage at the moment at which another run takes it over. One of the two has it, or none.
func TestALeaseIsNotRenewedAndTakenOver(t *testing.T) {
	s := unlockable(t)
	late := func(s Store) *keeper {
		return &keeper{store: s, number: 1, ttl: time.Hour, renewed: time.Now().Add(-2 * time.Hour), state: leaseState{Holder: one}}
	}
	k := late(meanwhile{Store: s, put: func() { putLease(t, s, 2, leaseState{Holder: two}) }})
	if err := k.check(); !errors.Is(err, ErrLocked) {
		t.Errorf("who renews when another one has taken over: %v", err)
	}

	s = unlockable(t)
	putLease(t, s, 1, leaseState{Holder: one})
	k = late(s)
	_, err := lease(t.Context(), meanwhile{Store: s, create: func() {
		if err := k.check(); err != nil {
			t.Error(err)
		}
	}}, two, testTTL)
	if !errors.Is(err, ErrLocked) {
		t.Errorf("who takes over when the lease has been renewed: %v", err)
	}
	if state, err := readLease(t.Context(), s, 2); err != nil || !state.Released {
		t.Errorf("its lease is %+v, %v", state, err)
	}
}

// Of a holder that is late and a run that takes it over at the same moment, one goes on.
func TestALeaseThatIsRenewedInTheLastMomentIsKept(t *testing.T) {
	ctx, s := t.Context(), unlockable(t)
	putLease(t, s, 1, leaseState{Holder: one})
	k := &keeper{store: s, number: 1, ttl: time.Minute, state: leaseState{Holder: one, Word: "of one"}}
	_, err := lease(ctx, meanwhile{Store: s, create: func() { k.renew(ctx) }}, two, testTTL)
	if !errors.Is(err, ErrLocked) {
		t.Errorf("who takes over when the lease has been renewed: %v", err)
	}
	if k.renew(ctx); k.check() != nil {
		t.Fatalf("whose lease was not taken over: %v", k.check())
	}
	n, err := lastLease(ctx, s)
	if state, rerr := readLease(ctx, s, n); err != nil || rerr != nil || n != 3 || state.Released || state.Run != "one" {
		t.Errorf("the last lease is %d, %+v, %v, %v", n, state, err, rerr)
	}
	if err := k.release(); err != nil {
		t.Fatal(err)
	}
	if state, err := readLease(ctx, s, 3); err != nil || !state.Released {
		t.Errorf("the last lease is %+v, %v", state, err)
	}
}

// A holder that was late waits for what becomes of a run that is about to take over.
func TestALateHolderWaitsForWhoIsAboutToTakeOver(t *testing.T) {
	for _, yields := range []bool{true, false} {
		s := unlockable(t)
		puts := 0
		k := &keeper{number: 1, ttl: time.Minute, state: leaseState{Holder: one, Word: "of one"}, store: meanwhile{Store: s, put: func() {
			if puts++; puts <= 2 {
				next := leaseState{Holder: two, Unsure: puts == 1}
				next.Yielded, next.Released = puts == 2 && yields, puts == 2 && yields
				putLease(t, s, 2, next)
			}
		}}}
		if err := k.check(); (err == nil) != yields || !yields && (!errors.Is(err, ErrLocked) || strings.Contains(err.Error(), "perhaps")) {
			t.Errorf("when the other one has yielded (%v): %v", yields, err)
		}
		if puts < 2 {
			t.Errorf("it was looked at %d times", puts)
		}
	}
}

// Behind a run that yielded, the one that creates the next lease has it: this one, whatever it was told, or a third.
func TestTheLeaseBehindOneThatYieldedIsOfWhoCreatesIt(t *testing.T) {
	for run, lost := range map[string]bool{"of one": false, "of a third": true} {
		s := unlockable(t)
		k := &keeper{store: s, number: 1, ttl: time.Hour, state: leaseState{Holder: one, Word: "of one"}}
		putLease(t, s, 2, leaseState{Holder: two, Released: true, Yielded: true})
		putLease(t, s, 3, leaseState{Word: run})
		if err := k.check(); errors.Is(err, ErrLocked) != lost || !lost && k.number != 3 {
			t.Errorf("the lease %s: number %d, %v", run, k.number, err)
		}
	}
}

// Two runs may have the same name and process number on hosts without a name.
func TestNoTwoLeasesAreAlike(t *testing.T) {
	ctx := t.Context()
	var words []string
	for range 2 {
		s := unlockable(t)
		l, err := lease(ctx, s, one, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Release(); err != nil {
			t.Fatal(err)
		}
		state, err := readLease(ctx, s, 1)
		if err != nil {
			t.Fatal(err)
		}
		words = append(words, state.Word)
	}
	if words[0] == "" || words[0] == words[1] {
		t.Errorf("the words are %q", words)
	}
}

// damage writes what is no lease in the place of one.
func damage(t *testing.T, s Store, n int, text string) {
	t.Helper()
	if err := s.Put(t.Context(), leaseName(n), []byte(text)); err != nil {
		t.Error(err)
	}
}

// A lease that is damaged, and that nobody renews, is taken over as any other.
func TestADamagedLeaseIsTakenOver(t *testing.T) {
	for _, text := range []string{"", `{"run":"one","bea`, "\x00\x00\x00"} {
		ctx, s := t.Context(), unlockable(t)
		damage(t, s, 1, text)
		l, err := lease(ctx, s, two, testTTL/4)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if err := errors.Join(l.Check(), l.Release()); err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if state, err := readLease(ctx, s, 2); err != nil || state.Run != "two" || state.Unsure || !state.Released {
			t.Errorf("%q: the lease is %+v, %v", text, state, err)
		}
	}
}

// The holder of a lease that was damaged renews it: who watches meanwhile, or has just created the next one, yields.
func TestADamagedLeaseThatIsRenewedIsRefused(t *testing.T) {
	s := unlockable(t)
	damage(t, s, 1, "{")
	k := &keeper{store: s, number: 1, ttl: time.Hour, renewed: time.Now(), state: leaseState{Holder: one, Word: "of one"}}
	_, err := lease(t.Context(), meanwhile{Store: s, create: func() { k.renew(t.Context()) }}, two, testTTL/4)
	if !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), "the run one, process 1 of h") {
		t.Errorf("who takes over when the lease has been renewed: %v", err)
	}
	if k.renew(t.Context()); k.check() != nil {
		t.Errorf("whose lease was not taken over: %v", k.check())
	}

	s = unlockable(t)
	putLease(t, s, 1, leaseState{Holder: one})
	reads := 0
	_, err = watchLease(t.Context(), seen{Store: s, read: func() {
		if reads++; reads == 2 {
			damage(t, s, 1, `{"run":`)
		}
	}}, 1, testTTL/4)
	if !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), "lock-1 has 7 bytes that are no lease") || !strings.Contains(err.Error(), "begin this one again") {
		t.Errorf("a lease that was damaged while it was watched: %v", err)
	}
}

// seen is a store in which something happens just before an object is read.
type seen struct {
	Store
	read func()
}

func (s seen) Read(ctx context.Context, name string, at, n int64) (io.ReadCloser, error) {
	s.read()
	return s.Store.Read(ctx, name, at, n)
}

// A holder whose lease cannot be renewed says why: the store's error, or the next lease, which is damaged.
func TestALeaseThatCannotBeRenewedSaysWhy(t *testing.T) {
	s := unlockable(t)
	late := func(s Store) *keeper {
		return &keeper{store: s, number: 1, ttl: time.Minute, renewed: time.Now().Add(-time.Hour), state: leaseState{Holder: one}}
	}
	if err := late(deaf{s}).check(); !errors.Is(err, ErrLocked) || !errors.Is(err, errDeaf) {
		t.Errorf("while the store does not answer: %v", err)
	}
	damage(t, s, 2, "{")
	if err := late(s).check(); !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), "lock-2 has 1 bytes that are no lease") {
		t.Errorf("while the next lease is damaged: %v", err)
	}
}

func TestAHolderThatIsNotKnownHasWords(t *testing.T) {
	if s := (Holder{}).String(); s != "a run that does not say who it is" {
		t.Errorf("%q", s)
	}
}
