package ratings

import "testing"

// BenchmarkGenerate makes the default matrix.
func BenchmarkGenerate(b *testing.B) {
	for b.Loop() {
		if _, err := Generate(DefaultSpec()); err != nil {
			b.Fatal(err)
		}
	}
}
