package ledger

import (
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
