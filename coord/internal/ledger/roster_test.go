package ledger

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
)

func secretOf(run string, shares ...string) string {
	r := NewRoster(coord.Config{Run: run, Nodes: len(shares)})
	for id, s := range shares {
		r.Put(godwit.NodeID(id), Registration{Share: []byte(s)})
	}
	return string(r.Secret())
}

func TestTheSecretOfARunFollowsFromItsNameAndAllShares(t *testing.T) {
	want := secretOf("r", "ab", "c")
	if len(want) != coord.SecretSize || secretOf("r", "ab", "c") != want {
		t.Errorf("the same registrations make the secrets %x and %x", want, secretOf("r", "ab", "c"))
	}
	for what, other := range map[string]string{
		"another name":             secretOf("s", "ab", "c"),
		"another share of node 0":  secretOf("r", "aB", "c"),
		"another share of node 1":  secretOf("r", "ab", "d"),
		"another order":            secretOf("r", "c", "ab"),
		"another cut":              secretOf("r", "a", "bc"),
		"one node more":            secretOf("r", "ab", "c", ""),
		"the name within a share":  secretOf("", "r", "ab", "c"),
		"one node less":            secretOf("r", "ab"),
		"a share more in the name": secretOf("rab", "c"),
	} {
		if other == want {
			t.Errorf("%s makes the same secret", what)
		}
	}
}

func TestEverySeatHasAShareOfItsOwn(t *testing.T) {
	cfg := coord.Config{Run: "r", Nodes: 2, Addr: "a:1"}
	a, b := NewRegistration(cfg), NewRegistration(cfg)
	if len(a.Share) != coord.SecretSize || string(a.Share) == string(b.Share) {
		t.Errorf("two registrations have the shares %x and %x", a.Share, b.Share)
	}
}

func TestARosterSaysWhoIsThereAndWhoWent(t *testing.T) {
	r := NewRoster(coord.Config{Run: "r", Nodes: 3, Addr: "me:1"})
	for id, addr := range []string{"a:1", "b:1", "c:1"} {
		r.Put(godwit.NodeID(id), Registration{Addr: addr})
	}
	if id, free := r.Free(); free || !strings.Contains(r.Complete().Error(), "no place for me:1 beside the 3") {
		t.Errorf("id %d is free: %v, %v", id, free, r.Complete())
	}
	for range 2 {
		r.Remove(1)
	}
	r.Remove(2)
	r.Put(2, Registration{Addr: "c:1"}) // it is back
	if id, free := r.Free(); id != 1 || !free {
		t.Errorf("id %d is free: %v, want 1", id, free)
	}
	err := r.Missing(" within 1s", context.DeadlineExceeded)
	if text := err.Error(); !errors.Is(err, coord.ErrMissing) || !strings.Contains(text, "2 of 3 within 1s: node 0 (a:1), node 2 (c:1) (and gone again: b:1)") {
		t.Errorf("the error is %v", err)
	}
}

func TestNodesThatDifferAreTold(t *testing.T) {
	for _, c := range []struct {
		other Registration
		says  string // empty: they do not differ
	}{
		{Registration{Fingerprint: "task: kge\nseed: 1", Nodes: 2}, ""},
		{Registration{Fingerprint: "task: kge\nseed: 2", Nodes: 2}, `the seed of this one, node 0 (a:1), is "1", and of node 1 (b:1) it is "2": start all nodes with the same seed`},
		{Registration{Fingerprint: "task: mf\nrank: 1", Nodes: 2}, `the task of this one`},
		{Registration{Fingerprint: "rank: kge\nseed: 1", Nodes: 2}, `the configuration and build of this one`}, // lines of other names
		{Registration{Fingerprint: "rank: mf\nseed: 1", Nodes: 2}, `the configuration and build of this one`},
		{Registration{Fingerprint: "task: kge\nseed: 1", Nodes: 3}, `the number of nodes of this one, node 0 (a:1), is 2, and of node 1 (b:1) it is 3`},
	} {
		r := NewRoster(coord.Config{Run: "r", Nodes: 2})
		r.Put(0, Registration{Addr: "a:1", Fingerprint: "task: kge\nseed: 1", Nodes: 2})
		c.other.Addr = "b:1"
		r.Put(1, c.other)
		err := r.Mismatch(0)
		if c.says == "" && err != nil || c.says != "" && (!errors.Is(err, coord.ErrMismatch) || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%+v: %v, want %q", c.other, err, c.says)
		}
	}
}
