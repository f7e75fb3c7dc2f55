package host

import (
	"cmp"
	"sync/atomic"
	"time"

	"github.com/godwit-ps/godwit/internal/preempt"
)

// A Team is how one goroutine shares its work with others where processors are free: fork and join. The goroutine takes one part after the
// other, and has a helper begin when it has done much and more is left. A helper does the same. So the work is done by as many
// goroutines as the moment allows. Where all processors are busy that is the one alone, as nobody waits for a helper that has not begun.
//
// Do is for one goroutine, the team's first member. Helpers are goroutines of the host, and have ended, or will take no part any more, when Do returns.
type Team struct {
	host  *Host
	duty  Duty
	size  int
	share int // keys, after which a member has a helper begin
	do    func(member, part int) (keys int)
	last  int // keys of the last time

	next  atomic.Int64 // the part that is taken next
	parts int64
	left  chan struct{} // has a token when the last helper has left

	mu   preempt.Mutex
	open bool  // there may be parts left
	free []int // members that nobody is
	come bool  // a helper is to come
	in   int   // helpers that take parts
	sum  did   // of those that have left

	helped atomic.Uint64 // parts that helpers took, ever
}

// did is what members did.
type did struct {
	keys int
	cost time.Duration
}

// NewTeam returns a team for a duty, of at most one member a processor, and no more than most, of which each calls do for the parts that it takes. Do says how many keys
// it handled. Members are 0 … Size-1, and one of them is not in two calls at a time. After so many keys as the share (Limits.Share), a member has a helper begin.
func NewTeam(h *Host, d Duty, share, most int, do func(member, part int) (keys int)) *Team {
	t := &Team{host: h, duty: d, size: max(1, min(h.Processors(), most)), share: cmp.Or(share, Usual.Share), do: do, left: make(chan struct{}, 1)}
	for i := t.size - 1; i > 0; i-- {
		t.free = append(t.free, i)
	}
	return t
}

// Size returns how many members there may be.
func (t *Team) Size() int { return t.size }

// Helped returns how many parts helpers have taken so far. Any goroutine may ask.
func (t *Team) Helped() uint64 { return t.helped.Load() }

// Do has each of so many parts done, once. It returns the processor time that helpers took for them; for that of the caller, it measures itself.
func (t *Team) Do(parts int) (cost time.Duration) {
	t.next.Store(0)
	t.mu.Lock()
	t.parts, t.open, t.sum = int64(parts), true, did{}
	t.mu.Unlock()
	keys := t.take(0, t.last >= t.share)
	t.mu.Lock()
	t.open = false
	wait := t.in > 0
	t.mu.Unlock()
	if wait {
		t.host.Wait(t.left, nil, nil) // they have a part each at the most, and wait for nobody
	}
	t.last = keys + t.sum.keys
	return t.sum.cost
}

// take does parts until none is left. If help is set, there is enough for a helper from the begin.
func (t *Team) take(member int, help bool) (keys int) {
	before := 0 // of the keys, whose time has passed
	for {
		if help {
			t.help()
		}
		part := t.next.Add(1) - 1
		if part >= t.parts {
			break
		}
		keys += t.do(member, int(part))
		if member > 0 {
			t.helped.Add(1)
		}
		if help = keys-before >= t.share; help {
			t.host.Worked(t.duty, keys-before)
			before = keys
		}
	}
	if keys > before {
		t.host.Worked(t.duty, keys-before)
	}
	return keys
}

// help has a helper begin, if parts are left and none is to come already.
func (t *Team) help() {
	if t.next.Load() >= t.parts {
		return
	}
	t.mu.Lock()
	begin := len(t.free) > 0 && !t.come
	t.come = t.come || begin
	t.mu.Unlock()
	if begin && !t.host.Help(t.helper) {
		t.mu.Lock()
		t.come = false
		t.mu.Unlock()
	}
}

// helper is the goroutine of a helper.
func (t *Team) helper() {
	defer t.host.Panicking()
	t.mu.Lock()
	t.come = false
	n := len(t.free)
	if !t.open || n == 0 {
		t.mu.Unlock()
		return
	}
	member := t.free[n-1]
	t.free = t.free[:n-1]
	t.in++
	t.mu.Unlock()
	keys := 0
	cost := t.host.Measure(func() { keys = t.take(member, true) })
	t.mu.Lock()
	t.free = append(t.free, member)
	t.sum.keys += keys
	t.sum.cost += time.Duration(cost)
	t.in--
	over := t.in == 0 && !t.open
	t.mu.Unlock()
	if over {
		t.left <- struct{}{}
	}
}
