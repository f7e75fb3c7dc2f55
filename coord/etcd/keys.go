package etcd

import (
	"encoding/json"
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

func (k keys) config() string                          { return string(k) + "config" }
func (k keys) nodes() string                           { return string(k) + "nodes/" }
func (k keys) words() string                           { return string(k) + "words/" }
func (k keys) node(id godwit.NodeID) string            { return fmt.Sprintf("%s%05d", k.nodes(), id) }
func (k keys) word(id godwit.NodeID) string            { return fmt.Sprintf("%s%05d", k.words(), id) }
func (k keys) isNode(key []byte) (godwit.NodeID, bool) { return idIn(key, k.nodes()) }
func (k keys) isWord(key []byte) (godwit.NodeID, bool) { return idIn(key, k.words()) }

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
	ledger.Seat
	Roster int64 `json:"roster,omitempty"` // the full roster that the node confirms
	Sealed bool  `json:"sealed,omitempty"` // the node has seen the seal

	lease   int64 // of the key
	created int64 // revision of the key
}

func (e entry) encode() string {
	b, err := json.Marshal(e)
	if err != nil {
		panic(fmt.Sprintf("etcd: %v", err)) // strings and numbers only: cannot be
	}
	return string(b)
}

func decodeEntry(kv *mvccpb.KeyValue) (entry, error) {
	var e entry
	if err := json.Unmarshal(kv.Value, &e); err != nil {
		return e, fmt.Errorf("coord: the value of %s is no seat of a node: %w", kv.Key, err)
	}
	e.lease, e.created = kv.Lease, kv.CreateRevision
	e.Incarnation = uint64(kv.CreateRevision)
	return e, nil
}
