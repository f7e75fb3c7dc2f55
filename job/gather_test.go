package job

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/node"
)

// FuzzIntroduced checks that what a node says of itself is refused with the node's
// name, or taken as far as the node may say it.
func FuzzIntroduced(f *testing.F) {
	for _, s := range []string{`{"host":"here","pid":7,"workers":2}`, `{"workers":0}`, `{"id":9,"addr":"there","workers":1}`, `[]`, `null`, ``} {
		f.Add([]byte(s))
	}
	m := coord.Member{ID: 3, Addr: "127.0.0.1:7"}
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := decodePeer(m, text)
		switch {
		case err != nil && !strings.Contains(err.Error(), m.String()):
			t.Errorf("the error %v does not name %v", err, m)
		case err == nil && (p.ID != m.ID || p.Addr != m.Addr || p.Workers < 1):
			t.Errorf("%v introduces itself as %+v", m, p)
		}
	})
}

// FuzzSumOf checks that stats of which one node's are any text are refused with
// the node's name, or added up.
func FuzzSumOf(f *testing.F) {
	sound, err := json.Marshal(node.Stats{Local: 5, Moves: 1, Leads: 2, LeadMs: 1})
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{string(sound), `{"local":-1}`, `{"lead_ms":1e308,"leads":18446744073709551615}`, `{}`, `"x"`, ``} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		sum, err := sumOf([][]byte{sound, text, sound})
		if err != nil {
			if !strings.Contains(err.Error(), "node 1") {
				t.Errorf("the error %v names no node", err)
			}
			return
		}
		var own node.Stats
		if err := json.Unmarshal(text, &own); err != nil || sum.Local != own.Local+10 || sum.Moves != own.Moves+2 {
			t.Errorf("%s is summed up as %+v (%v)", text, sum, err)
		}
	})
}
