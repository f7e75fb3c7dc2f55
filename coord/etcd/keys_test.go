package etcd

import (
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/coord/internal/ledger"
)

// The incarnation of a registration is the one that etcd reports, whatever the value
// contains, and a value that is no registration is refused with its key.
func TestRegistrationsAreOfTheRevisionThatEtcdReports(t *testing.T) {
	sound := entry{Claim: ledger.Claim{Registration: ledger.NewRegistration(coord.Config{Addr: "127.0.0.1:7", Nodes: 3}), Roster: 9}}
	for _, value := range []string{sound.encode(), `{}`, `{"Incarnation":5,"lease":5,"created":5}`} {
		e, err := decodeEntry(&mvccpb.KeyValue{Key: []byte("k"), Value: []byte(value), CreateRevision: 12})
		if err != nil || e.created != 12 || e.Incarnation != 12 {
			t.Errorf("%s is %+v (%v)", value, e, err)
		}
	}
	if _, err := decodeEntry(&mvccpb.KeyValue{Key: []byte("godwit/r/nodes/00002"), Value: []byte("[]")}); err == nil || !strings.Contains(err.Error(), "godwit/r/nodes/00002") {
		t.Errorf("the error %v names no key", err)
	}
}
