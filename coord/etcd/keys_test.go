package etcd

import (
	"reflect"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/coord/internal/ledger"
)

// FuzzDecodeEntry checks that what stands at a node's key is refused with the key's
// name, or is a seat that is written and read again alike, of the lease and the
// incarnation that etcd says, whatever the value says.
func FuzzDecodeEntry(f *testing.F) {
	sound := entry{Seat: ledger.NewSeat(coord.Config{Addr: "127.0.0.1:7", Fingerprint: "f", Nodes: 3}), Roster: 9, Sealed: true}
	for _, s := range []string{sound.encode(), `{}`, `null`, `[]`, `{"addr":7}`, `{"nodes":1e99}`, `{"share":"?"}`, `{"Incarnation":5,"lease":5,"created":5}`, "\xff", ""} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		kv := &mvccpb.KeyValue{Key: []byte("godwit/r/nodes/00002"), Value: value, Lease: 11, CreateRevision: 12}
		e, err := decodeEntry(kv)
		if err != nil {
			if !strings.Contains(err.Error(), string(kv.Key)) {
				t.Errorf("the error %v names no key", err)
			}
			return
		}
		if e.lease != 11 || e.created != 12 || e.Incarnation != 12 {
			t.Errorf("%q is %+v", value, e)
		}
		kv.Value = []byte(e.encode())
		if again, err := decodeEntry(kv); err != nil || !reflect.DeepEqual(e, again) {
			t.Errorf("read again: %+v (%v), want %+v", again, err, e)
		}
	})
}
