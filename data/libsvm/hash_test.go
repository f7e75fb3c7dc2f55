package libsvm

import (
	"fmt"
	"hash/fnv"
	"math/bits"
	"strings"
	"testing"
)

// The words of HashAbout, in Go.
func TestFeaturesAreHashedAsIsSaid(t *testing.T) {
	for _, want := range []string{"FNV-1a of 64 bits", "h ^= h >> 32", "0x9e3779b97f4a7c15", "h >> (64 - bits)"} {
		if !strings.Contains(HashAbout, want) {
			t.Errorf("it is not said that %s", want)
		}
	}
	for _, n := range []int{1, 5, 22, MaxHashBits} {
		for i := range 100 {
			text := fmt.Sprintf("site=%d", i)
			f := fnv.New64a()
			f.Write([]byte(text))
			h := f.Sum64()
			h ^= h >> 32
			_, h = bits.Mul64(h, 0x9e3779b97f4a7c15)
			if got := hash([]byte(text), n); uint64(got) != h>>(64-n) {
				t.Errorf("%s is hashed to %d of %d bits, want %d", text, got, n, h>>(64-n))
			}
		}
	}
}
