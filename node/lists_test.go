package node

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/placement"
)

// Requests about the same keys, and the answers to them, are sent with a hash
// after they came twice, and mean the same. A request that the writer begins to
// send while it is put in travels in two parts, whose lists are others; so what
// counts is that there is a time with four hashes.
func TestTheSameKeysAgainCostFewBytes(t *testing.T) {
	const dim, per, times = 2, 200, 10_000
	c := local(t, 2, Config{Model: model(t, 10_000, dim), Policy: placement.Static, Workers: 1})
	ctx := background(t)
	w := c.Nodes[0].Worker(0)
	keys := homedAt(t, c.Nodes[0], 1, per)
	ones := make([]float32, dim*per)
	for i := range ones {
		ones[i] = float32(i)
	}
	var bytes, hits []uint64
	got := make([]float32, dim*per)
	for i := 0; ; i++ {
		before := sum(c)
		must(t, w.Push(ctx, keys, ones))
		must(t, w.Pull(ctx, keys, got))
		did := sum(c).Sub(before)
		bytes, hits = append(bytes, did.SentBytes-2*4*dim*per), append(hits, did.ListHits)
		for j, v := range got {
			if want := float32((i + 1) * j); v != want {
				t.Fatalf("after %d pushes of %d, value %d is %v, want %v", i+1, j, j, v, want)
			}
		}
		if did.ListMisses != 0 {
			t.Fatalf("%d lists were not known", did.ListMisses)
		}
		if i >= 5 && hits[i] == 4 {
			if bytes[i] > per+per/2 || did.ListSaved < 3*per-per/2 { // a byte a key in each of the four, without hashes
				t.Errorf("a push and a pull of %d keys took %d bytes beside the values, hashes saved %d", per, bytes[i], did.ListSaved)
			}
			break
		}
		if i == times {
			t.Fatalf("%d times, pushes and pulls of the same %d keys took %d… bytes beside the values, with %d… hashes", times, per, bytes[:20], hits[:20])
		}
	}
	if bytes[0] < 4*per {
		t.Errorf("the first push and pull took %d bytes beside the values: there was nothing to save", bytes[0])
	}
}

// A peer's frames wait behind one with a list that is not known here, and are
// taken in their order when the list comes; what it asks meanwhile is answered.
func TestFramesWaitForAListInTheirOrder(t *testing.T) {
	const per = 40
	m := model(t, 1000, 1)
	n := quietNode(t, Config{Model: m, Policy: placement.Static, Workers: 1, Session: lonely{nodes: 3}})
	keys := homedAt(t, n, n.self, per)
	const peer = godwit.NodeID(1)
	in := n.receiver.Inbound(peer)
	e := wire.Encoder{Lists: &wire.Sent{}}
	call := func(kind wire.Kind, op uint64, keys []godwit.Key, v float32) []byte {
		e.Reset(nil, 1)
		for i, k := range keys {
			r := wire.Record{Kind: kind, Key: k, Op: op, Index: uint32(i), Origin: peer, Hops: 1}
			if kind != wire.Pull {
				r.Vals = []float32{v}
			}
			e.Append(&r)
		}
		return slices.Clone(e.Frame())
	}
	value := func(k godwit.Key) float32 {
		var v [1]float32
		a := n.rows.Access()
		a.Read(n.rows.Table(k), k, v[:])
		return v[0]
	}
	for i := range uint64(3) {
		must(t, in.Frame(call(wire.Push, i+1, keys, 1)))
	}
	if e.Lists.Hits != 1 || value(keys[0]) != 3 {
		t.Fatalf("%d hits, value %v, want 1 and 3", e.Lists.Hits, value(keys[0]))
	}

	in.Forget()
	must(t, in.Frame(call(wire.Push, 4, keys, 10)))
	must(t, in.Frame(call(wire.Set, 5, keys[:1], 7)))
	must(t, in.Frame(call(wire.Push, 6, keys, 100)))
	if v := value(keys[0]); v != 3 || in.Waiting() != 3 {
		t.Fatalf("value %v, %d frames wait, want 3 and 3: something did not wait", v, in.Waiting())
	}
	var question []byte
	for f := []byte{0}; len(f) > 0 && !wire.Asks(question); question = f {
		f = n.links.To(peer).Take(nil)
	}
	if !wire.Asks(question) {
		t.Fatal("the list was not asked for")
	}
	answer, err := e.Lists.Answer(question)
	must(t, err)
	must(t, in.Frame(answer))
	if v, w := value(keys[0]), value(keys[1]); v != 107 || w != 113 || in.Waiting() != 0 {
		t.Errorf("values %v and %v, want 107 (set after the first push, before the second) and 113; %d frames wait", v, w, in.Waiting())
	}
	if s := n.Stats(); s.ListMisses != 1 {
		t.Errorf("%d misses, want 1", s.ListMisses)
	}

	if err := in.Frame(answer); err == nil || !strings.Contains(err.Error(), "nobody asked for") {
		t.Errorf("a second answer: %v", err)
	}
	question[wire.HeaderLen] ^= 1
	if err := in.Frame(question); err == nil || !strings.Contains(err.Error(), "was not sent") {
		t.Errorf("a question for a list of others: %v", err)
	}
	in.Forget()
	must(t, in.Frame(call(wire.Push, 7, keys, 10)))
	must(t, in.Frame(make([]byte, 100<<20))) // whatever it is: nobody looks yet
	if err := in.Frame(make([]byte, 30<<20)); err == nil || !strings.Contains(err.Error(), "does not send") {
		t.Errorf("too much behind a list: %v", err)
	}
}

// A list that is asked for and does not come ends the run, and not only when
// much waits behind it; one that comes does not.
func TestAListThatDoesNotComeEndsTheRunWithAReason(t *testing.T) {
	const peer = godwit.NodeID(1)
	session := told{lonely{nodes: 3}, make(chan error, 1)}
	n := quietNode(t, Config{Model: model(t, 1000, 1), Policy: placement.Static, Workers: 1, Session: session})
	world := &hasty{World: n.host.World, slept: make(chan time.Duration), woke: make(chan int, 1), over: make(chan struct{})}
	n.host.World = world
	in := n.receiver.Inbound(peer)
	e := wire.Encoder{Lists: &wire.Sent{}}
	push := func() {
		e.Reset(nil, 1)
		for i, k := range homedAt(t, n, n.self, 40) {
			e.Append(&wire.Record{Kind: wire.Push, Key: k, Op: 1, Index: uint32(i), Origin: peer, Hops: 1, Vals: []float32{1}})
		}
		must(t, in.Frame(slices.Clone(e.Frame())))
	}
	question := func() (q []byte) {
		for f := []byte{0}; len(f) > 0 && !wire.Asks(q); q = f {
			f = n.links.To(peer).Take(nil)
		}
		return q
	}
	for range 3 {
		push()
	}
	in.Forget()
	push()
	if d := <-world.slept; d != time.Minute {
		t.Errorf("a list is waited for for %v, want %v", d, time.Minute)
	}
	answer, err := e.Lists.Answer(question())
	must(t, err)
	must(t, in.Frame(answer))
	if i := <-world.woke; i != 0 {
		t.Errorf("a list came, and %d woke who waited for it, want 0", i)
	}
	if err := n.Err(); err != nil {
		t.Fatalf("a list that came ended the run: %v", err)
	}

	in.Forget()
	push()
	<-world.slept
	hash := fmt.Sprintf("%016x", binary.LittleEndian.Uint64(question()[wire.HeaderLen:]))
	close(world.over)
	err = <-session.failed
	n.host.Join()
	if !errors.Is(err, godwit.ErrPeerLost) {
		t.Errorf("the run ended with %v, want %v", err, godwit.ErrPeerLost)
	}
	for _, says := range []string{"node 1", time.Minute.String(), "list " + hash} {
		if !strings.Contains(err.Error(), says) {
			t.Errorf("the run ended with %q, want one that says %q", err, says)
		}
	}
	if n.Err() == nil {
		t.Error("the node goes on")
	}
}

// hasty is the world outside, but for pauses: each is told, and passes when the
// test says so. What ended it is told, too.
type hasty struct {
	host.World
	slept chan time.Duration
	woke  chan int
	over  chan struct{}
}

func (h *hasty) Sleep(d time.Duration, a, b <-chan struct{}) int {
	h.slept <- d
	i := h.Wait(a, b, h.over)
	if i == 2 {
		i = -1
	}
	h.woke <- i
	return i
}

// told is a lonely session that is told how the run ended.
type told struct {
	lonely
	failed chan error
}

func (told) Cause(lost *coord.MemberError) error { return lost }
func (t told) Fail(err error)                    { t.failed <- err }
