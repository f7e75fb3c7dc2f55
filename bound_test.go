package godwit

import (
	"strings"
	"testing"
)

// FuzzBound checks that a text is refused with what would do, or names a bound
// that is written and read again alike.
func FuzzBound(f *testing.F) {
	for _, s := range []string{"", "eventual", "0", "7", "2147483647", "2147483648", "-1", "+3", "1e3", "invalid"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		b := Within(3)
		if err := b.UnmarshalText(text); err != nil {
			if !strings.Contains(err.Error(), "eventual") || b != Within(3) {
				t.Errorf("%q is refused with %q, and leaves %v", text, err, b)
			}
			return
		}
		written, err := b.MarshalText()
		var again Bound
		if err != nil || again.UnmarshalText(written) != nil || again != b {
			t.Errorf("%q is %v, which is written as %q (%v) and read as %v", text, b, written, err, again)
		}
		if n, ok := b.Clocks(); ok && (n < 0 || n > MaxBound) {
			t.Errorf("%q is a bound of %d clocks", text, n)
		}
	})
}
