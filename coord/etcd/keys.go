package etcd

import (
	"fmt"
	"strconv"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord/internal/ledger"
)

// keys are the keys of one run.
type keys string

// root is what all keys of all runs begin with.
const root = "godwit/"

func keysOf(run string) keys { return keys(root + run + "/") }

func (k keys) config() string                             { return string(k) + "config" }
func (k keys) nodes() string                              { return string(k) + "nodes/" }
func (k keys) messages() string                           { return string(k) + "words/" }
func (k keys) node(id godwit.NodeID) string               { return fmt.Sprintf("%s%05d", k.nodes(), id) }
func (k keys) message(id godwit.NodeID) string            { return fmt.Sprintf("%s%05d", k.messages(), id) }
func (k keys) isNode(key []byte) (godwit.NodeID, bool)    { return idIn(key, k.nodes()) }
func (k keys) isMessage(key []byte) (godwit.NodeID, bool) { return idIn(key, k.messages()) }

func idIn(key []byte, prefix string) (godwit.NodeID, bool) {
	s, ok := strings.CutPrefix(string(key), prefix)
	if !ok {
		return godwit.NoNode, false
	}
	id, err := strconv.ParseUint(s, 10, 16)
	return godwit.NodeID(id), err == nil && godwit.NodeID(id) != godwit.NoNode
}

// An entry is the value of a node's key.
type entry struct {
	ledger.Claim
	created int64 // revision of the key
}

func (e entry) encode() string { return string(e.Encode()) }

func decodeEntry(kv *mvccpb.KeyValue) (entry, error) {
	c, err := ledger.DecodeClaim(kv.Value)
	if err != nil {
		return entry{}, fmt.Errorf("coord: the value of %s is no registration of a node: %w", kv.Key, err)
	}
	c.Incarnation = uint64(kv.CreateRevision)
	return entry{c, kv.CreateRevision}, nil
}
