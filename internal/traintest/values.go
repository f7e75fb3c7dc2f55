package traintest

import (
	"testing"

	"github.com/godwit-ps/godwit"
)

// Values returns all values of a worker's model, in the order of the keys.
func Values(t testing.TB, w godwit.Worker) []float32 {
	t.Helper()
	m := w.Model()
	n, err := m.RangeFloats(0, godwit.Key(m.Keys()))
	if err != nil {
		t.Fatal(err)
	}
	all := make([]float32, n)
	if err := godwit.PullRange(t.Context(), w, 0, godwit.Key(m.Keys()), all); err != nil {
		t.Fatal(err)
	}
	return all
}
