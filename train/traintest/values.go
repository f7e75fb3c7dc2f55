package traintest

import (
	"testing"

	"github.com/godwit-ps/godwit"
)

// Values returns all values of a worker's model, in the order of the keys.
func Values(t testing.TB, w godwit.Worker) []float32 {
	t.Helper()
	m := w.Model()
	var all []float32
	for k := range m.Keys() {
		x := make([]float32, m.Dim(godwit.Key(k)))
		if err := w.Pull(t.Context(), []godwit.Key{godwit.Key(k)}, x); err != nil {
			t.Fatal(err)
		}
		all = append(all, x...)
	}
	return all
}
