package ledger

import (
	"reflect"
	"testing"

	"github.com/godwit-ps/godwit/coord"
)

// FuzzDecodeClaim checks that bytes are refused, or are a claim that is written and
// read again alike, and does not say its own incarnation.
func FuzzDecodeClaim(f *testing.F) {
	sound := Claim{Registration: NewRegistration(coord.Config{Addr: "127.0.0.1:7", Fingerprint: "f", Nodes: 3}), Roster: 9, Sealed: true}
	f.Add(sound.Encode())
	for _, s := range []string{`{}`, `null`, `[]`, `{"addr":7}`, `{"nodes":1e99}`, `{"share":"?"}`, `{"Incarnation":5,"Registration":{}}`, "\xff", ""} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := DecodeClaim(b)
		if err != nil {
			return
		}
		if c.Incarnation != 0 {
			t.Errorf("%q says incarnation %d", b, c.Incarnation)
		}
		if again, err := DecodeClaim(c.Encode()); err != nil || !reflect.DeepEqual(c, again) {
			t.Errorf("read again: %+v (%v), want %+v", again, err, c)
		}
	})
}
