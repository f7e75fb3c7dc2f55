package intent

import (
	"math"
	"slices"
	"testing"

	"github.com/godwit-ps/godwit"
)

// A key that was announced within so many clocks before is announced again, whatever clocks are; one that
// was announced earlier, or never, is not.
func TestKeysThatAreAnnouncedAgainAreToldApart(t *testing.T) {
	for _, first := range []godwit.Clock{0, 1, 1000, math.MaxUint32 - 2, 1 << 40} {
		var r Recent
		for _, x := range []struct {
			after       godwit.Clock
			keys, again []godwit.Key
		}{
			{0, []godwit.Key{0, 1, 2}, nil},
			{1, []godwit.Key{1, 3}, []godwit.Key{1}},
			{5, []godwit.Key{0, 1, 2, 3}, []godwit.Key{0, 1, 2, 3}},
			{11, []godwit.Key{4, 2, 0}, nil},
		} {
			again, once := r.Part(slices.Clone(x.keys), first+x.after, 5)
			if !slices.Equal(again, x.again) || len(again)+len(once) != len(x.keys) {
				t.Errorf("clock %d: keys %v are announced again, and %v once; want %v of %v", first+x.after, again, once, x.again, x.keys)
			}
		}
	}
}
