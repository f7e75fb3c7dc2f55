package linear

import (
	"strings"
	"testing"

	"github.com/godwit-ps/godwit"
)

// done has a client begin and end an operation at once.
func done(h *History, client, node int, kind Kind, vals ...float32) {
	if kind == Read {
		h.End(h.Begin(client, node, Read, 1, nil), vals)
		return
	}
	h.End(h.Begin(client, node, kind, 1, vals), nil)
}

func TestAHistoryIsAtomicIfAnOrderExplainsIt(t *testing.T) {
	for _, x := range []struct {
		what string
		ops  func(h *History)
		want string // in the error; "" is none
	}{
		{"nothing", func(*History) {}, ""},
		{"a read of what was pushed and set", func(h *History) {
			done(h, 0, 0, Read, 0, 0)
			done(h, 0, 0, Push, 1, 0)
			done(h, 1, 1, Set, 5, 5)
			done(h, 1, 1, Push, 0, 1)
			done(h, 0, 0, Read, 5, 6)
		}, ""},
		{"a read that overlaps a push", func(h *History) {
			p := h.Begin(0, 0, Push, 1, []float32{1, 0})
			done(h, 1, 1, Read, 1, 0)
			h.End(p, nil)
		}, ""},
		{"a push that never returned and was seen", func(h *History) {
			h.Begin(0, 0, Push, 1, []float32{1, 0})
			done(h, 1, 1, Read, 0, 0)
			done(h, 1, 1, Read, 1, 0)
		}, ""},
		{"a stale read", func(h *History) {
			done(h, 0, 0, Push, 1, 0)
			done(h, 1, 1, Read, 0, 0)
		}, "no order explains"},
		{"two reads that go back", func(h *History) {
			h.Begin(0, 0, Push, 1, []float32{1, 0})
			done(h, 1, 1, Read, 1, 0)
			done(h, 2, 1, Read, 0, 0)
		}, "no order explains"},
		{"a lost push", func(h *History) {
			p := h.Begin(0, 0, Push, 1, []float32{1, 0})
			done(h, 1, 1, Push, 0, 1)
			h.End(p, nil)
			done(h, 1, 1, Read, 0, 1)
		}, "no order explains"},
		{"a push taken twice", func(h *History) {
			done(h, 0, 0, Push, 1, 0)
			done(h, 0, 0, Read, 2, 0)
		}, "no order explains"},
		{"a set that was overtaken by an older one", func(h *History) {
			done(h, 0, 0, Set, 1, 1)
			done(h, 0, 0, Set, 2, 2)
			done(h, 1, 1, Read, 1, 1)
		}, "no order explains"},
	} {
		h := &History{}
		x.ops(h)
		switch err := h.Atomic(godwit.Add{}); {
		case x.want == "" && err != nil:
			t.Errorf("%s: %v", x.what, err)
		case x.want != "" && (err == nil || !strings.Contains(err.Error(), x.want)):
			t.Errorf("%s: %v, want an error with %q", x.what, err, x.want)
		}
	}
}

func TestReplicatedKeysAreInOrderIfOthersPushesOnlyComeLater(t *testing.T) {
	for _, x := range []struct {
		what string
		ops  func(h *History)
		want string
	}{
		{"another node's push comes later", func(h *History) {
			done(h, 0, 0, Push, 1, 0, 0)
			done(h, 1, 1, Read, 0, 0, 0)
			done(h, 1, 1, Read, 1, 0, 0)
		}, ""},
		{"nodes see pushes in different orders", func(h *History) {
			done(h, 0, 0, Push, 1, 0, 0)
			done(h, 1, 1, Push, 0, 1, 0)
			done(h, 0, 0, Read, 1, 0, 0)
			done(h, 1, 1, Read, 0, 1, 0)
		}, ""},
		{"the own push is missing", func(h *History) {
			done(h, 0, 0, Push, 1, 0, 0)
			done(h, 0, 0, Read, 0, 0, 0)
		}, "key 1 of client 0"},
		{"a push of the same node is missing", func(h *History) {
			done(h, 0, 0, Push, 1, 0, 0)
			done(h, 2, 0, Read, 0, 0, 0)
		}, "key 1 at node 0"},
		{"another node's push goes away", func(h *History) {
			done(h, 0, 0, Push, 1, 0, 0)
			done(h, 1, 1, Read, 1, 0, 0)
			done(h, 1, 1, Read, 0, 0, 0)
		}, "key 1 of client 1"},
		{"a push that another client of the node read goes away", func(h *History) {
			done(h, 1, 1, Push, 0, 1, 0)
			done(h, 2, 0, Read, 0, 1, 0)
			done(h, 0, 0, Read, 0, 0, 0)
		}, "key 1 at node 0"},
		{"overlapping reads of a node that no order explains", func(h *History) {
			h.Begin(1, 1, Push, 1, []float32{0, 1, 0})
			late := h.Begin(2, 0, Read, 1, nil)
			done(h, 0, 0, Push, 1, 0, 0)
			done(h, 0, 0, Read, 1, 0, 0)
			h.End(late, []float32{0, 1, 0})
		}, ""},
		{"a push that nobody began", func(h *History) {
			done(h, 1, 1, Read, 1, 0, 0)
		}, "had begun 0 pushes"},
		{"a set", func(h *History) {
			done(h, 0, 0, Set, 1, 1, 1)
		}, "key 1 of client 0"},
	} {
		h := &History{}
		x.ops(h)
		switch err := h.InOrder(); {
		case x.want == "" && err != nil:
			t.Errorf("%s: %v", x.what, err)
		case x.want != "" && (err == nil || !strings.Contains(err.Error(), x.want)):
			t.Errorf("%s: %v, want an error with %q", x.what, err, x.want)
		}
	}
}
