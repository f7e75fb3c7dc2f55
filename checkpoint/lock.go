package checkpoint

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"sync"
	"time"
)

// ErrLocked is wrapped by the error of [Acquire] where another run writes to the store, and by
// those of [Lock.Check] and [Lock.Prune] when another one took it over.
var ErrLocked = errors.New("another run writes checkpoints there")

// A Holder is who writes to a store.
type Holder struct {
	Run   string    `json:"run"`   // its name
	Host  string    `json:"host"`  // where it runs, the leader if there are several nodes
	PID   int       `json:"pid"`   // its process there
	Since time.Time `json:"since"` // when it took the lock
}

func (h Holder) String() string {
	if h == (Holder{}) {
		return "a run that does not say who it is"
	}
	return fmt.Sprintf("the run %s, process %d of %s, since %s", h.Run, h.PID, h.Host, h.Since.Format(time.DateTime))
}

// A Lock is the right to write checkpoints to a store. It must be released.
type Lock struct {
	release func() error
	check   func() error
}

// Check returns an error, which wraps [ErrLocked], if the lock is no longer held. A lease that could not be renewed for a minute is
// renewed then, which takes up to a minute if the store still does not answer.
func (l *Lock) Check() error { return l.check() }

// Release gives the lock back.
func (l *Lock) Release() error { return l.release() }

// Acquire takes the lock of a store, or returns an error that wraps [ErrLocked] and names the holder. In a
// folder the lock ends with its process. Elsewhere it is a lease that its holder renews: where the last holder did not release it, or the lease is
// damaged, Acquire watches for a minute whether it is renewed.
func Acquire(ctx context.Context, s Store, h Holder) (*Lock, error) {
	var l *Lock
	var err error
	p, patient := s.(patientStore)
	if patient {
		s = p.Store
	}
	switch f, ok := s.(*Folder); {
	case ok && canLock(f) && patient:
		l, err = p.lock(ctx, f, h)
	case ok && canLock(f):
		l, err = lockFolder(ctx, f, h)
	case patient:
		l, err = lease(ctx, p, h, leaseTTL)
	default:
		l, err = lease(ctx, s, h, leaseTTL)
	}
	if err != nil {
		return nil, fmt.Errorf("checkpoint: the lock of %s: %w", s, err)
	}
	return l, nil
}

const (
	lockName  = "lock"
	leaseTTL  = time.Minute // a holder that did not renew for so long is gone
	renewals  = 4           // within that time
	maxHolder = 1 << 16     // bytes
)

// held is the error where another run holds the lock.
func held(h Holder) error { return fmt.Errorf("%w: %v", ErrLocked, h) }

// held is the error where a lease was renewed, or else written to, while it was watched.
func (l *leaseState) held() error {
	if l.damage == nil {
		return held(l.Holder)
	}
	return fmt.Errorf("%w, perhaps: while this one watched its lease, that was written to and is damaged (%w). If no run writes there, begin this one again: it takes over a lease that stays as it is", ErrLocked, l.damage)
}

// A leaseState is what the object of a lease holds. Each holder has an object of its own, lock-1, lock-2, …: the
// one with the largest number is the holder. To take over from a holder that is gone, the next one is created, which
// the store allows once. So nothing is ever removed or changed that somebody else may have changed meanwhile. Who takes over is not
// sure of it until it has seen that the former holder has not come back meanwhile. If that has, it yields, and the former holder creates the one
// behind that.
type leaseState struct {
	Holder
	Word     string `json:"word"` // a random one: no two holders create the same object
	Beat     int    `json:"beat"` // grows with each renewal
	Released bool   `json:"released"`
	Unsure   bool   `json:"unsure,omitempty"`  // its holder does not know yet whether it takes over
	Yielded  bool   `json:"yielded,omitempty"` // it did not, and released it

	text   string // the object, as it was read
	damage error  // why that cannot be read; nil: it can
}

// changed reports whether who holds a lease renewed it since it was read. Each renewal writes all of the object, whatever was there.
func (l *leaseState) changed(before *leaseState) bool {
	if l.damage != nil || before.damage != nil {
		return l.text != before.text
	}
	return l.Beat != before.Beat
}

// who says who holds a lease.
func (l *leaseState) who() string {
	if l.damage != nil {
		return fmt.Sprintf("whose lease is damaged: %v", l.damage)
	}
	return l.Holder.String()
}

func leaseName(n int) string { return fmt.Sprintf("%s-%d", lockName, n) }

// lease takes the lock by a lease.
func lease(ctx context.Context, s Store, h Holder, ttl time.Duration) (*Lock, error) {
	n, err := lastLease(ctx, s)
	if err != nil {
		return nil, err
	}
	var before leaseState
	if n > 0 {
		if before, err = watchLease(ctx, s, n, ttl); err != nil {
			return nil, err
		}
	}
	state := leaseState{Holder: h, Word: rand.Text(), Unsure: n > 0 && !before.Released}
	err = createLease(ctx, s, n+1, state)
	if errors.Is(err, fs.ErrExist) {
		faster, err := readLease(ctx, s, n+1)
		if err != nil {
			return nil, fmt.Errorf("%w: it came at the same time as this one (which it is, is not known: %w)", ErrLocked, err)
		}
		return nil, fmt.Errorf("%w; it came at the same time as this one", held(faster.Holder))
	}
	if err != nil {
		return nil, err
	}
	k := &keeper{store: s, number: n + 1, state: state, ttl: ttl, renewed: time.Now()}
	if state.Unsure {
		err := stillLeft(ctx, s, n, before)
		k.state.Unsure, k.state.Released, k.state.Yielded = false, err != nil, err != nil
		if err := errors.Join(err, k.put(ctx, k.state)); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var done sync.WaitGroup
	done.Go(func() { k.keep(ctx) })
	release := sync.OnceValue(func() error {
		cancel()
		done.Wait()
		return k.release()
	})
	return &Lock{release: release, check: k.check}, nil
}

// IsLock reports whether an object of such a name is of the lock of a place.
func IsLock(name string) bool {
	_, ok := leaseNumber(name)
	return ok || name == lockName
}

// leaseNumber returns the number of the lease of such a name.
func leaseNumber(name string) (n int, ok bool) {
	_, err := fmt.Sscanf(name, lockName+"-%d", &n)
	return n, err == nil && leaseName(n) == name
}

// lastLease returns the largest number of a lease; 0: none.
func lastLease(ctx context.Context, s Store) (n int, err error) {
	objects, err := s.List(ctx, lockName+"-")
	if err != nil {
		return 0, err
	}
	for _, o := range objects {
		if i, ok := leaseNumber(o.Name); ok {
			n = max(n, i)
		}
	}
	more, err := unlisted(ctx, s, func(i int) string { return leaseName(n + i) })
	return n + more, err
}

// watchLease returns a lease once it is given back or was not renewed for the time ttl, by
// this process's clock.
func watchLease(ctx context.Context, s Store, n int, ttl time.Duration) (now leaseState, err error) {
	first, err := seeLease(ctx, s, n)
	if err != nil {
		return now, err
	}
	if !first.Released {
		wait := ttl / renewals * (renewals + 1)
		slog.Warn(fmt.Sprintf("checkpoint: %s may still be written to by another run (%v): watching its lease for up to %v before this run begins", s, first.who(), wait))
	}
	tick := time.NewTicker(ttl / renewals)
	defer tick.Stop()
	now = first
	for range renewals + 1 {
		if now.Released {
			return now, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return now, context.Cause(ctx)
		}
		if now, err = seeLease(ctx, s, n); err != nil {
			return now, err
		}
		if now.changed(&first) {
			return now, now.held()
		}
	}
	return now, nil
}

// stillLeft returns an error if a lease was renewed since it was read. It is called when the next one has been created, which who renews looks for
// afterwards: so one of the two sees the other.
func stillLeft(ctx context.Context, s Store, n int, before leaseState) error {
	now, err := seeLease(ctx, s, n)
	if err == nil && now.changed(&before) {
		err = now.held()
	}
	return err
}

// createLease creates the object of a lease. The error wraps fs.ErrExist if there is one of the number.
func createLease(ctx context.Context, s Store, n int, l leaseState) error {
	b, err := json.Marshal(l)
	if err != nil {
		return err
	}
	return s.Create(ctx, leaseName(n), func(w io.Writer) error { _, err := w.Write(b); return err })
}

// readLease reads the object of a lease. It is an error if that is damaged.
func readLease(ctx context.Context, s Store, n int) (leaseState, error) {
	l, err := seeLease(ctx, s, n)
	return l, errors.Join(err, l.damage)
}

// seeLease reads the object of a lease, which may be damaged. A run that holds it renews it all the same, so that who watches it need not know
// what it says.
func seeLease(ctx context.Context, s Store, n int) (l leaseState, err error) {
	b, err := readAll(ctx, s, leaseName(n), maxHolder)
	if err != nil {
		return l, fmt.Errorf("%s: %w", leaseName(n), err)
	}
	if err := json.Unmarshal(b, &l); err != nil {
		l = leaseState{damage: fmt.Errorf("%s has %d bytes that are no lease: %w", leaseName(n), len(b), err)}
	}
	l.text = string(b)
	return l, nil
}

// A keeper renews a lease.
type keeper struct {
	store  Store
	number int
	ttl    time.Duration

	renewing sync.Mutex // held while the lease is renewed

	mu      sync.Mutex // guards what follows
	state   leaseState
	renewed time.Time
	unsure  bool // another run is about to take over
	lost    error
	why     error // of the last renewal that failed; nil: the last one did not
}

// keep renews the lease until ctx ends.
func (k *keeper) keep(ctx context.Context) {
	tick := time.NewTicker(k.ttl / renewals)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		limited, cancel := context.WithTimeout(ctx, k.ttl/2)
		k.renew(limited)
		cancel()
	}
}

// renew renews the lease, or notes that another run took it over. If the store does not answer,
// the next renewal may be in time.
func (k *keeper) renew(ctx context.Context) {
	k.renewing.Lock()
	defer k.renewing.Unlock()
	began := time.Now()
	k.mu.Lock()
	k.state.Beat++
	state := k.state
	k.mu.Unlock()
	failed := k.own(ctx)
	if failed == nil {
		failed = k.put(ctx, state)
	}
	next, err := k.rival(ctx) // behind the renewal: see stillLeft
	k.mu.Lock()
	defer k.mu.Unlock()
	alone := errors.Is(err, fs.ErrNotExist)
	if k.why = failed; failed == nil && !alone {
		k.why = err
	}
	k.unsure = next.Unsure || k.unsure && err != nil && !alone
	switch {
	case errors.Is(failed, ErrLocked):
		k.lost = failed
	case k.unsure: // the next renewal tells
	case err == nil:
		what := ErrLocked
		if !next.Yielded { // else it was a third one
			what = held(next.Holder)
		}
		k.lost = fmt.Errorf("%w; it took over from this one, which did not renew its lease for %v", what, k.ttl)
	case failed == nil && alone:
		k.renewed = began
	}
}

// rival reads the next lease, which another run has created; the error wraps fs.ErrNotExist if none has. If that run has yielded, it creates the one
// behind it, and returns such an error, as if there had been no other run.
func (k *keeper) rival(ctx context.Context) (next leaseState, err error) {
	next, err = readLease(ctx, k.store, k.number+1)
	if err != nil || !next.Yielded {
		return next, err
	}
	err = createLease(ctx, k.store, k.number+2, k.state)
	if errors.Is(err, fs.ErrExist) {
		if last, rerr := readLease(ctx, k.store, k.number+2); rerr != nil || last.Word != k.state.Word {
			return next, rerr // nil: a third run was faster
		}
		err = nil // it is this one's, and the answer was lost
	}
	if err == nil {
		k.number += 2
		err = fs.ErrNotExist
	}
	return next, err
}

// own returns an error if the object of the lease is another run's. Somebody has removed it then, perhaps with all of the place, before that run began.
func (k *keeper) own(ctx context.Context) error {
	now, err := seeLease(ctx, k.store, k.number)
	if err != nil || now.damage != nil || now.Word == "" || now.Word == k.state.Word {
		return nil // to renew it tells, or mends it
	}
	return fmt.Errorf("%w; this one's lease %s was removed before", held(now.Holder), leaseName(k.number))
}

func (k *keeper) put(ctx context.Context, state leaseState) error {
	b, err := json.Marshal(state)
	if err != nil {
		return err
	}
	return k.store.Put(ctx, leaseName(k.number), b)
}

// overdue reports whether nobody knows whether the lease is still held.
func (k *keeper) overdue() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.lost == nil && time.Since(k.renewed) > k.ttl
}

// undecided reports whether another run is about to take over, or to yield.
func (k *keeper) undecided() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.lost == nil && k.unsure
}

// check judges by the last renewal. If that is too long ago, it renews the lease first: the store may answer again. If another run is about to
// take over, it waits for what becomes of that.
func (k *keeper) check() error {
	if k.overdue() {
		ctx, cancel := context.WithTimeout(context.Background(), k.ttl/renewals)
		defer cancel()
		k.renew(ctx)
		for k.undecided() && ctx.Err() == nil {
			select {
			case <-time.After(k.ttl / renewals / 64):
				k.renew(ctx)
			case <-ctx.Done():
			}
		}
	}
	late := k.overdue()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.lost == nil && late {
		err := fmt.Errorf("%w, perhaps: the lease could not be renewed for %v", ErrLocked, k.ttl)
		if k.why != nil {
			err = fmt.Errorf("%w: %w", err, k.why)
		}
		return err
	}
	return k.lost
}

func (k *keeper) release() error {
	if k.check() != nil {
		return nil // it is no longer this run's
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaseTTL/renewals)
	defer cancel()
	k.renewing.Lock() // so that this is the last word
	defer k.renewing.Unlock()
	if k.own(ctx) != nil {
		return nil
	}
	k.mu.Lock()
	k.state.Released = true
	state := k.state
	k.mu.Unlock()
	return k.put(ctx, state)
}
