package trace

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit"
)

// A key is found by its number, its row and its name, unless several have that.
func TestKeysAreFoundByTheirNames(t *testing.T) {
	dir, m := t.TempDir(), model(t)
	w := create(t, dir, 0, false)
	closed(t, w)
	names := map[int][]string{0: {"London", "", "Paris\nTexas", "twice", "same", "same"}, 1: {"twice", "9"}}
	for table, all := range names {
		if err := WriteNames(dir, table, slices.Values(all)); err != nil {
			t.Fatal(err)
		}
	}
	tr, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]godwit.Key{"London": m.Key(0, 0), "Paris Texas": m.Key(0, 2), "9": 9, "a:2": m.Key(0, 2)} {
		if k, err := tr.Find(text); err != nil || k != want {
			t.Errorf("%q is key %d, %v; want %d", text, k, err, want)
		}
	}
	for text, want := range map[string]string{"Rome": "no key has that name", "twice": "several keys", "same": "several keys", "": "no key"} {
		if _, err := tr.Find(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	got, err := tr.NamesOf([]godwit.Key{m.Key(0, 0), m.Key(0, 1), m.Key(1, 0), 1 << 40})
	if want := map[godwit.Key]string{m.Key(0, 0): "London", m.Key(1, 0): "twice"}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
}

// A disk that was full leaves a piece of a name, which is that of another row.
func TestANameThatIsNotWholeIsNone(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, NamesFile(0)), []byte("Paris\nParis Tex"), 0o666); err != nil {
		t.Fatal(err)
	}
	got := map[uint64]string{}
	err := ReadNames(dir, 0, func(row uint64, name string) bool { got[row] = name; return true })
	if want := map[uint64]string{0: "Paris"}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
}
