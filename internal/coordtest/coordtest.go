// Package coordtest holds the conformance suite that every implementation of
// [coord.Session] passes.
package coordtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/internal/seedtest"
)

// A Harness is a coordinator under test, for runs of any name.
type Harness struct {
	// Join makes a node of a run; it is called concurrently. It ends by itself
	// after the configuration's Join, or the suite's context ends it then.
	Join func(ctx context.Context, cfg coord.Config) (coord.Session, error)
	// Kill makes the node of a session a lost one, as by a crash. The session
	// itself is not looked at any more.
	Kill func(s coord.Session)
	// Loss is within what time the others notice it.
	Loss time.Duration
	// TTL is what the runs of the suite use: long enough for a busy machine not
	// to lose a node that nobody killed.
	TTL time.Duration
}

// brief is a TTL, or a time to join, that is waited for.
const brief = time.Second

// soon bounds waits for what should happen at once, on a busy machine.
const soon = 2 * time.Minute

// Run runs the suite. open is called once per test.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	for _, c := range []struct {
		name string
		test func(*suite)
	}{
		{"ids are dense and all nodes see the same members", (*suite).members},
		{"members share a secret that no other run has", (*suite).secret},
		{"a node alone is a run", (*suite).alone},
		{"no node passes a barrier before all have come, ever again", (*suite).barrier},
		{"barriers of different names do not disturb each other", (*suite).barrierNames},
		{"an exchange gives every node all payloads by id", (*suite).exchange},
		{"an exchange of the largest payload works and a larger one is refused", (*suite).exchangeLimit},
		{"names that cannot be are refused", (*suite).badNames},
		{"a name is waited for by one call at a time", (*suite).oneCall},
		{"a barrier that a context ended can be waited for again", (*suite).barrierAgain},
		{"an exchange that a context ended goes on with its first payload", (*suite).exchangeAgain},
		{"a call whose context is over has not come", (*suite).tooLate},
		{"the first reason to stop wins everywhere", (*suite).stop},
		{"a failure ends the run everywhere with its cause", (*suite).fail},
		{"a member that another one lost is named everywhere", (*suite).lostByAnother},
		{"a partition ends the run everywhere and blames who it names", (*suite).partition},
		{"a lost node ends the run and all waits, by name", (*suite).lost},
		{"a node that leaves is no loss", (*suite).leave},
		{"a barrier fails when a node left before it", (*suite).leaveBarrier},
		{"after close everything returns that it is closed", (*suite).closed},
		{"a node that never comes fails the join and frees its place", (*suite).missing},
		{"a node that gives up at the seal is a member or leaves nobody behind", (*suite).givesUp},
		{"nodes with different fingerprints refuse each other", (*suite).mismatch},
		{"a node too many is refused", (*suite).full},
		{"a run can be started again under its name", (*suite).again},
		{"bad configurations are refused", (*suite).badConfig},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), 2*soon)
			t.Cleanup(cancel)
			c.test(&suite{T: t, Harness: open(t), ctx: ctx})
		})
	}
}

type suite struct {
	*testing.T
	Harness
	ctx context.Context
}

func (s *suite) config(nodes, i int) coord.Config {
	return coord.Config{Run: "conformance", Nodes: nodes, Addr: fmt.Sprintf("127.0.0.1:%d", 7000+i), Fingerprint: "fp", TTL: s.TTL, Join: soon}
}

// join returns the sessions of a whole run, by id.
func (s *suite) join(n int) []coord.Session {
	s.Helper()
	byID := make([]coord.Session, n)
	var mu sync.Mutex
	s.all(n, func(i int) error {
		j, err := s.Join(s.ctx, s.config(n, i))
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if int(j.Self()) >= n || byID[j.Self()] != nil {
			return fmt.Errorf("id %d is out of range or taken", j.Self())
		}
		byID[j.Self()] = j
		return nil
	})
	s.Cleanup(func() { s.close(byID...) })
	return byID
}

func (s *suite) close(ss ...coord.Session) {
	for _, c := range ss {
		ctx, cancel := context.WithTimeout(context.Background(), soon)
		if err := c.Close(ctx); err != nil {
			s.Errorf("close: %v", err)
		}
		cancel()
	}
}

// all does f(0 … n-1) at the same time.
func (s *suite) all(n int, f func(i int) error) {
	s.Helper()
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = f(i) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		s.Fatal(err)
	}
}

// over waits for Done and returns Err.
func (s *suite) over(c coord.Session, within time.Duration) error {
	s.Helper()
	select {
	case <-c.Done():
	case <-time.After(within):
		s.Fatalf("node %d: not done within %v", c.Self(), within)
	}
	if c.Err() == nil {
		s.Fatalf("node %d: done without error", c.Self())
	}
	return c.Err()
}

// says checks the kind and the words of an error.
func (s *suite) says(err, kind error, words ...string) {
	s.Helper()
	if e := s.said(err, kind, words...); e != nil {
		s.Error(e)
	}
}

// said returns what is wrong with the kind and the words of an error.
func (s *suite) said(err, kind error, words ...string) error {
	if err == nil {
		return fmt.Errorf("no error, want %v", kind)
	}
	if kind != nil && !errors.Is(err, kind) {
		return fmt.Errorf("error %q is not %q", err, kind)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			return fmt.Errorf("error %q does not name %q", err, w)
		}
	}
	return nil
}

func (s *suite) members() {
	const n = 4
	run := s.join(n)
	for id, c := range run {
		ms := c.Members()
		if len(ms) != n {
			s.Fatalf("node %d sees %d members, want %d", id, len(ms), n)
		}
		for i, m := range ms {
			if m != run[0].Members()[i] {
				s.Errorf("node %d sees %v at %d, node 0 sees %v", id, m, i, run[0].Members()[i])
			}
			if int(m.ID) != i || m.Incarnation == 0 {
				s.Errorf("member %d is %+v", i, m)
			}
		}
		if c.View() != 1 {
			s.Errorf("node %d is in view %d, want 1", id, c.View())
		}
		if c.Err() != nil || c.StopReason() != "" {
			s.Errorf("node %d begins with error %v, reason to stop %q", id, c.Err(), c.StopReason())
		}
		ms[0].Addr = "changed"
		if c.Members()[0].Addr == "changed" {
			s.Error("changing the result of Members changes the members")
		}
	}
}

func (s *suite) secret() {
	seen := map[string]int{}
	for i, n := range []int{2, 2, 3, 1} { // the same name and addresses again
		run := s.join(n)
		want := string(run[0].Secret())
		if len(want) != coord.SecretSize {
			s.Fatalf("run %d: a secret of %d bytes, want %d", i, len(want), coord.SecretSize)
		}
		if j, ok := seen[want]; ok {
			s.Errorf("runs %d and %d have the same secret", j, i)
		}
		seen[want] = i
		for id, c := range run {
			got := c.Secret()
			if string(got) != want {
				s.Errorf("run %d: the secret of node %d is %x, of node 0 %x", i, id, got, want)
			}
			clear(got)
			if string(c.Secret()) != want {
				s.Error("changing the result of Secret changes the secret")
			}
		}
		s.close(run...)
	}
}

func (s *suite) alone() {
	c := s.join(1)[0]
	if err := c.Barrier(s.ctx, "b"); err != nil {
		s.Error(err)
	}
	got, err := c.Exchange(s.ctx, "e", []byte("x"))
	if err != nil || len(got) != 1 || string(got[0]) != "x" {
		s.Errorf("got %q, %v", got, err)
	}
}

func (s *suite) barrier() {
	const n, rounds = 3, 12
	run := s.join(n)
	var mu sync.Mutex
	arrived := make([]int, rounds)
	s.all(n, func(i int) error {
		for r := range rounds {
			mu.Lock()
			arrived[r]++
			mu.Unlock()
			if err := run[i].Barrier(s.ctx, "again"); err != nil {
				return err
			}
			mu.Lock()
			a := arrived[r]
			mu.Unlock()
			if a != n {
				return fmt.Errorf("node %d passed round %d when %d of %d had come", i, r, a, n)
			}
		}
		return nil
	})
}

func (s *suite) barrierNames() {
	run := s.join(2)
	names := []string{"a", "b/../c", "d \n\x00 ü", strings.Repeat("x", coord.MaxName)}
	s.all(2*len(names), func(i int) error {
		return run[i%2].Barrier(s.ctx, names[i/2])
	})
	// A barrier and an exchange of one name are different places.
	done := make(chan error, 1)
	go func() { done <- run[0].Barrier(s.ctx, "same") }()
	s.all(2, func(i int) error {
		_, err := run[i].Exchange(s.ctx, "same", nil)
		return err
	})
	select {
	case err := <-done:
		s.Fatalf("the barrier ended with %v because of an exchange", err)
	default:
	}
	s.all(1, func(int) error { return run[1].Barrier(s.ctx, "same") })
	if err := <-done; err != nil {
		s.Error(err)
	}
}

func (s *suite) exchange() {
	const n, rounds = 3, 6
	run := s.join(n)
	s.all(n, func(i int) error {
		for r := range rounds {
			mine := []byte(fmt.Sprintf("%d in %d\n\x00", i, r))
			if i == 1 {
				mine = nil
			}
			got, err := run[i].Exchange(s.ctx, "e", mine)
			if err != nil {
				return err
			}
			clear(mine) // ours again
			for j := range n {
				want := fmt.Sprintf("%d in %d\n\x00", j, r)
				if j == 1 {
					want = ""
				}
				if string(got[j]) != want || got[j] == nil {
					return fmt.Errorf("node %d got %q of node %d in round %d, want %q", i, got[j], j, r, want)
				}
				clear(got[j]) // ours too: no other node may notice
			}
		}
		return nil
	})
}

func (s *suite) exchangeLimit() {
	const n = 2
	run := s.join(n)
	s.all(n, func(i int) error {
		big := []byte(strings.Repeat(string(rune('a'+i)), coord.MaxPayload))
		got, err := run[i].Exchange(s.ctx, "big", big)
		if err != nil {
			return err
		}
		for j := range n {
			if len(got[j]) != coord.MaxPayload || got[j][len(got[j])-1] != byte('a'+j) {
				return fmt.Errorf("payload of node %d came with %d bytes", j, len(got[j]))
			}
		}
		return nil
	})
	_, err := run[0].Exchange(s.ctx, "bigger", make([]byte, coord.MaxPayload+1))
	s.says(err, nil, "bigger", fmt.Sprint(coord.MaxPayload))
}

func (s *suite) badNames() {
	c := s.join(1)[0]
	for _, name := range []string{"", strings.Repeat("x", coord.MaxName+1), "\xff"} {
		if err := c.Barrier(s.ctx, name); err == nil {
			s.Errorf("the name %.10q was taken", name)
		}
	}
}

func (s *suite) oneCall() {
	run := s.join(2)
	ctx, cancel := context.WithCancel(s.ctx)
	first := make(chan error, 2)
	for range 2 {
		go func() { first <- run[0].Barrier(ctx, "b") }()
	}
	s.says(<-first, nil, "barrier", "\"b\"", "another call")
	cancel()
	s.says(<-first, context.Canceled, "node 1", run[1].Members()[1].Addr)
}

func (s *suite) barrierAgain() {
	run := s.join(2)
	ctx, cancel := context.WithTimeout(s.ctx, 50*time.Millisecond)
	defer cancel()
	s.says(run[0].Barrier(ctx, "b"), context.DeadlineExceeded, "barrier \"b\"", "node 1", run[0].Members()[1].Addr, "did not arrive")
	s.all(2, func(i int) error { return run[i].Barrier(s.ctx, "b") })
	// And they count alike from here on.
	s.all(2, func(i int) error { return run[i].Barrier(s.ctx, "b") })
}

func (s *suite) exchangeAgain() {
	run := s.join(3)
	ctx, cancel := context.WithCancel(s.ctx)
	ended := make(chan error, 1)
	go func() { _, err := run[0].Exchange(ctx, "e", []byte("first")); ended <- err }()
	for here := false; !here; { // until node 0 has come, as node 1 hears when it gives up
		brief, stop := context.WithTimeout(s.ctx, 20*time.Millisecond)
		_, err := run[1].Exchange(brief, "e", []byte("1"))
		stop()
		s.says(err, context.DeadlineExceeded, run[2].Members()[2].String())
		here = err == nil || !strings.Contains(err.Error(), run[0].Members()[0].String()) || s.ctx.Err() != nil
	}
	cancel()
	s.says(<-ended, context.Canceled, "exchange \"e\"", run[2].Members()[2].String())
	s.exchangeOf(run, "later", "first")
	s.exchangeOf(run, "next", "next")
}

// exchangeOf has node 0 hand in mine, and wants all nodes to get what it is to count as.
func (s *suite) exchangeOf(run []coord.Session, mine, want string) {
	s.Helper()
	s.all(len(run), func(i int) error {
		payload := fmt.Sprint(i)
		if i == 0 {
			payload = mine
		}
		got, err := run[i].Exchange(s.ctx, "e", []byte(payload))
		if err == nil && (string(got[0]) != want || string(got[1]) != "1") {
			err = fmt.Errorf("node %d got %q, want %q of node 0", i, got, want)
		}
		return err
	})
}

func (s *suite) tooLate() {
	run := s.join(2)
	gone, cancel := context.WithCancel(s.ctx)
	cancel()
	for range 2 {
		s.says(run[0].Barrier(gone, "b"), context.Canceled, "barrier \"b\"")
		_, err := run[0].Exchange(gone, "e", []byte("too late"))
		s.says(err, context.Canceled, "exchange \"e\"")
	}
	s.exchangeOf(run, "in time", "in time")
	s.all(2, func(i int) error { return run[i].Barrier(s.ctx, "b") })
}

func (s *suite) stop() {
	run := s.join(3)
	s.all(3, func(i int) error { return run[i].RequestStop(s.ctx, fmt.Sprintf("because of %d", i)) })
	for i, c := range run {
		select {
		case <-c.Stopping():
		case <-time.After(soon):
			s.Fatalf("node %d does not stop", i)
		}
		if c.StopReason() != run[0].StopReason() || !strings.HasPrefix(c.StopReason(), "because of ") {
			s.Errorf("node %d stops %q, node 0 %q", i, c.StopReason(), run[0].StopReason())
		}
	}
	reason := run[0].StopReason()
	if err := run[1].RequestStop(s.ctx, "another"); err != nil || run[1].StopReason() != reason {
		s.Errorf("a later request: %v, reason %q", err, run[1].StopReason())
	}
	s.all(3, func(i int) error { return run[i].Barrier(s.ctx, "orderly") })
	if err := run[2].Err(); err != nil {
		s.Errorf("a stop ended the run: %v", err)
	}
}

func (s *suite) fail() {
	run := s.join(3)
	waits := make(chan error, 1)
	go func() { waits <- run[2].Barrier(s.ctx, "b") }()
	cause := errors.New("disk\nfull \xff")
	run[1].Fail(cause)
	run[0].Fail(errors.New("too late"))
	who := run[1].Members()[1].String()
	s.says(s.over(run[2], soon), coord.ErrFailed, who, "disk", "full")
	s.says(s.over(run[1], soon), cause, who)
	var m *coord.MemberError
	if !errors.As(run[2].Err(), &m) || m.Member != run[2].Members()[1] {
		s.Errorf("the error of node 2 is %#v, want one of node 1", run[2].Err())
	}
	s.says(<-waits, coord.ErrFailed, "barrier \"b\"", who)
}

func (s *suite) lostByAnother() {
	run := s.join(3)
	lost := run[0].Members()[2]
	cause := errors.New("cable cut")
	run[0].Fail(fmt.Errorf("as seen here: %w", &coord.MemberError{Member: lost, Err: fmt.Errorf("%w: %w", godwit.ErrPeerLost, cause)}))
	s.says(run[0].Err(), cause)
	for _, x := range run {
		err := s.over(x, soon)
		var m *coord.MemberError
		if !errors.As(err, &m) || m.Member != lost || !errors.Is(err, godwit.ErrPeerLost) || errors.Is(err, coord.ErrFailed) ||
			!strings.HasPrefix(err.Error(), lost.String()+": node lost: cable cut") {
			s.Errorf("node %d: over with %v, want that %v is lost and why", x.Self(), err, lost)
		}
		if told := strings.Contains(err.Error(), run[0].Members()[0].String()); told != (x != run[0]) {
			s.Errorf("node %d: %v: it says that node 0 says so: %t", x.Self(), err, told)
		}
	}
}

func (s *suite) partition() {
	ss := s.join(3)
	const text = "nodes 1 and 2 do not reach each other"
	ss[0].Fail(fmt.Errorf("as seen here: %w", &coord.PartitionError{Text: text}))
	for _, x := range ss {
		err := s.over(x, soon)
		var v *coord.PartitionError
		if !errors.As(err, &v) || v.Text != text || !errors.Is(err, godwit.ErrPeerLost) || strings.Contains(err.Error(), "node 0") {
			s.Errorf("node %d: over with %v, want the partition error that %s", x.Self(), err, text)
		}
	}
}

func (s *suite) lost() {
	run := s.join(3)
	who := run[0].Members()[1].String()
	waits := make(chan error, 2)
	go func() { waits <- run[0].Barrier(s.ctx, "epoch 3") }()
	go func() { _, err := run[2].Exchange(s.ctx, "hosts", nil); waits <- err }()
	begin := time.Now()
	s.Kill(run[1])
	for range 2 {
		select {
		case err := <-waits:
			s.says(err, godwit.ErrPeerLost, who)
		case <-time.After(s.Loss):
			s.Fatalf("a wait goes on %v after the loss", s.Loss)
		}
	}
	for _, c := range []coord.Session{run[0], run[2]} {
		s.says(s.over(c, s.Loss-time.Since(begin)), godwit.ErrPeerLost, who)
		if c.View() != 2 {
			s.Errorf("node %d is in view %d after a loss, want 2", c.Self(), c.View())
		}
	}
	s.Logf("noticed after %v", time.Since(begin).Round(time.Millisecond))
	s.says(run[0].Barrier(s.ctx, "later"), godwit.ErrPeerLost, who)
	s.says(run[0].RequestStop(s.ctx, "later"), godwit.ErrPeerLost, who)
}

func (s *suite) leave() {
	run := s.join(3)
	s.all(3, func(i int) error { return run[i].Barrier(s.ctx, "last") })
	s.close(run[1])
	s.all(2, func(i int) error {
		ctx, cancel := context.WithTimeout(s.ctx, time.Second)
		defer cancel()
		select {
		case <-run[2*i].Done():
			return fmt.Errorf("node %d sees an orderly end as %w", 2*i, run[2*i].Err())
		case <-ctx.Done():
			return nil
		}
	})
	if err := run[0].RequestStop(s.ctx, "still here"); err != nil {
		s.Error(err)
	}
}

func (s *suite) leaveBarrier() {
	run := s.join(3)
	waits := make(chan error, 2)
	go func() { waits <- run[0].Barrier(s.ctx, "b") }()
	s.close(run[2])
	s.says(<-waits, coord.ErrLeft, "barrier \"b\"", run[0].Members()[2].String())
	s.says(run[0].Barrier(s.ctx, "c"), coord.ErrLeft, run[0].Members()[2].String())
}

func (s *suite) closed() {
	run := s.join(2)
	waits := make(chan error, 1)
	begun := make(chan struct{})
	go func() { close(begun); waits <- run[0].Barrier(s.ctx, "b") }()
	<-begun
	s.close(run[0], run[0])
	s.says(<-waits, godwit.ErrClosed)
	s.says(s.over(run[0], soon), godwit.ErrClosed)
	s.says(run[0].Barrier(s.ctx, "c"), godwit.ErrClosed)
	s.says(run[0].RequestStop(s.ctx, "c"), godwit.ErrClosed)
	run[0].Fail(errors.New("after all"))
	if err := run[0].Err(); !errors.Is(err, godwit.ErrClosed) {
		s.Errorf("the error became %v", err)
	}
}

func (s *suite) missing() {
	s.patiently(func(within time.Duration) error {
		errs := make([]error, 2)
		s.all(2, func(i int) error {
			cfg := s.config(3, i)
			cfg.Join, cfg.TTL = within, 2*within
			ctx, cancel := context.WithTimeout(s.ctx, cfg.Join)
			defer cancel()
			begin := time.Now()
			_, err := s.Join(ctx, cfg)
			errs[i] = s.said(err, coord.ErrMissing, "conformance", "of 3", s.config(3, 0).Addr, s.config(3, 1).Addr)
			if d := time.Since(begin); d > within+soon {
				return fmt.Errorf("node %d waited %v", i, d)
			}
			return nil
		})
		return errors.Join(errs...)
	})
	s.join(2) // the places are free
}

// givesUp ends the wait of one of two nodes at a moment drawn at random. Where the other has a session,
// so has that one: no run is sealed with a node that does not know it.
func (s *suite) givesUp() {
	rng := seedtest.Rand(s.T)
	begin := time.Now()
	s.close(s.join(2)...)
	usual := time.Since(begin)
	for try, seals := 0, 0; seals == 0 || try < 8; try++ {
		if try == 100 {
			s.Fatal("not one of 100 runs was sealed")
		}
		cfg := s.config(2, 0)
		ctx, cancel := context.WithCancel(s.ctx)
		other, stop := context.WithCancel(s.ctx)
		got := make([]coord.Session, 2)
		after := time.Duration(rng.Int64N(int64(usual)))
		giveUp := time.AfterFunc(after, cancel)
		s.all(2, func(i int) error {
			mine := []context.Context{ctx, other}[i]
			got[i], _ = s.Join(mine, cfg)
			if i == 0 && got[0] == nil {
				time.AfterFunc(50*time.Millisecond, stop) // time for a session that should not be
			}
			return nil
		})
		giveUp.Stop()
		cancel()
		stop()
		if got[0] == nil && got[1] != nil {
			s.Errorf("given up after %v: the other node has a session of a run of two", after)
		}
		if got[0] != nil {
			seals++
		}
		s.close(slices.DeleteFunc(got, func(c coord.Session) bool { return c == nil })...)
	}
}

func (s *suite) mismatch() {
	s.all(2, func(i int) error {
		cfg := s.config(3, i)
		cfg.Fingerprint = fmt.Sprint("build ", i)
		_, err := s.Join(s.ctx, cfg)
		s.says(err, coord.ErrMismatch, s.config(3, 0).Addr, s.config(3, 1).Addr, "build 0", "build 1")
		return nil
	})
}

func (s *suite) full() {
	run := s.join(2)
	s.patiently(func(ttl time.Duration) error {
		cfg := s.config(2, 9)
		cfg.TTL = ttl // it may wait that long for remains to go
		begin := time.Now()
		_, err := s.Join(s.ctx, cfg)
		if d := time.Since(begin); d > ttl+soon {
			s.Errorf("refused after %v", d)
		}
		return s.said(err, coord.ErrComplete, "conformance", cfg.Addr, run[0].Members()[0].String(), run[0].Members()[1].String())
	})
	s.all(2, func(i int) error { return run[i].Barrier(s.ctx, "undisturbed") })
}

// patiently tries something that takes some time and fails if nobody comes to
// do his part in that time. While it fails, the next attempt gets more.
func (s *suite) patiently(attempt func(within time.Duration) error) {
	s.Helper()
	for within := brief; ; within *= 4 {
		err := attempt(within)
		switch {
		case err == nil:
			return
		case 4*within > soon:
			s.Fatal(err)
		}
		s.Logf("not within %v: %v", within, err)
	}
}

func (s *suite) again() {
	first := s.join(2)
	s.all(2, func(i int) error { return first[i].Barrier(s.ctx, "b") })
	if err := first[0].RequestStop(s.ctx, "first"); err != nil {
		s.Fatal(err)
	}
	s.close(first...)
	second := s.join(2)
	if r := second[0].StopReason(); r != "" {
		s.Errorf("the second run begins with the reason to stop %q", r)
	}
	if a, b := first[1].Members()[1].Incarnation, second[0].Members()[0].Incarnation; b <= a {
		s.Errorf("incarnation %d came after %d", b, a)
	}
	s.all(2, func(i int) error { return second[i].Barrier(s.ctx, "b") })
	for _, c := range second {
		s.Kill(c)
	}
	third := s.join(2) // over the remains
	s.all(2, func(i int) error { return third[i].Barrier(s.ctx, "b") })
}

func (s *suite) badConfig() {
	for _, change := range []func(*coord.Config){
		func(c *coord.Config) { c.Run = "" },
		func(c *coord.Config) { c.Run = "a/b" },
		func(c *coord.Config) { c.Run = strings.Repeat("x", 129) },
		func(c *coord.Config) { c.Nodes = 0 },
		func(c *coord.Config) { c.Nodes = godwit.MaxNodes + 1 },
		func(c *coord.Config) { c.Addr = "" },
		func(c *coord.Config) { c.TTL = -1 },
		func(c *coord.Config) { c.Join = -1 },
	} {
		cfg := s.config(1, 0)
		change(&cfg)
		if _, err := s.Join(s.ctx, cfg); err == nil {
			s.Errorf("%+v was taken", cfg)
		}
	}
}
