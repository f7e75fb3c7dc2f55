package history

import (
	"testing"

	"github.com/godwit-ps/godwit"
)

// Where values are fetched ahead, a worker may miss its own pushes again that it has seen while they were under way, until they are
// complete, of a key that was set as of another. It never misses one that was complete, and another worker's that it has seen.
func TestOwnPushesMayBeMissingAgainUntilTheyAreComplete(t *testing.T) {
	for _, set := range []float32{0, 1} {
		for _, x := range []struct {
			what         string
			early        bool
			then         bool // the pushes are complete when the worker reads again
			first, again []float32
			ok           bool
		}{
			{"pushes under way are missing again", true, false, []float32{3, 1, 0}, []float32{1, 1, 0}, true},
			{"one of them is", true, false, []float32{3, 1, 0}, []float32{2, 1, 0}, true},
			{"one that was complete is", true, false, []float32{3, 1, 0}, []float32{0, 1, 0}, false},
			{"another worker's is", true, false, []float32{3, 1, 0}, []float32{3, 0, 0}, false},
			{"complete ones are", true, true, []float32{3, 1, 0}, []float32{2, 1, 0}, false},
			{"they are though none was fetched ahead", false, false, []float32{3, 1, 0}, []float32{2, 1, 0}, false},
		} {
			h := New(2, func(i int) int { return i }, func(godwit.Key) bool { return false }, false).Early(x.early)
			if set > 0 {
				h.SetComplete(key, h.SetIssued(0, key))
			}
			h.PushIssued(1, key)
			h.PushIssued(0, key)
			h.PushComplete(0, key)
			h.PushIssued(0, key)
			h.PushIssued(0, key)
			read := func(v []float32) error {
				row := []float32{v[0] + set*Era, v[1] + set*Era, v[2] + set*Era}
				return h.Read(h.ReadIssued(0, key), row)
			}
			if err := read(x.first); err != nil {
				t.Fatalf("set %v, %s: the first read: %v", set, x.what, err)
			}
			if x.then {
				h.PushComplete(0, key)
				h.PushComplete(0, key)
			}
			if err := read(x.again); (err == nil) != x.ok {
				t.Errorf("set %v, %s: %v", set, x.what, err)
			}
		}
	}
}
