package folder

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func touch(t *testing.T, path ...string) {
	t.Helper()
	name := filepath.Join(path...)
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		t.Fatal(err)
	}
	f, err := Next(nil, name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Next(f, name); err == nil {
		t.Errorf("%s was made twice", name)
	}
	if err := f.Close(); err == nil {
		t.Error("the former file was left open")
	}
}

// A run is found in its folder or in the one around it, whatever that is called; of two in a folder, none is.
func TestARunIsFound(t *testing.T) {
	for _, name := range []string{"plain", "a[b]", "*", `b\?`} {
		dir := filepath.Join(t.TempDir(), name)
		run := filepath.Join(dir, "run[1]")
		touch(t, run, "node-0", "1.trace")
		touch(t, run, "events")
		for _, at := range []string{dir, run} {
			if got, err := Run(at, "events", "node-*/*.trace"); err != nil || got != run {
				t.Errorf("in %q, %q was found (%v)", at, got, err)
			}
		}
		if got, err := Glob(run, "node-*/*.trace", "events"); err != nil || len(got) != 2 || got[0] != filepath.Join(run, "events") {
			t.Errorf("in %q there are %q (%v)", run, got, err)
		}
		touch(t, dir, "other", "events")
		if got, err := Run(dir, "events", "node-*/*.trace"); err == nil || !strings.Contains(err.Error(), "several runs") {
			t.Errorf("of two runs in %q, %q was found (%v)", dir, got, err)
		}
	}
	dir := t.TempDir()
	if got, err := Run(dir, "events"); err != nil || got != dir {
		t.Errorf("in an empty folder %q was found (%v)", got, err)
	}
	if _, err := Run(filepath.Join(dir, "none"), "events"); err == nil {
		t.Error("a folder that is not there was opened")
	}
}

// Of a run that went on by itself the last part is found; a folder of another run beside it is one too many.
func TestTheLastPartOfARunIsFound(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"kge-restart2", "kge", "kge-restart10", "kge-restart1"} {
		touch(t, dir, name, "events")
	}
	last := filepath.Join(dir, "kge-restart10")
	if got, err := Run(dir, "events"); err != nil || got != last {
		t.Errorf("%q was found (%v), want %s", got, err, last)
	}
	touch(t, dir, "kge-restarted", "events")
	if got, err := Run(dir, "events"); err == nil || !strings.Contains(err.Error(), "several runs") {
		t.Errorf("beside another run, %q was found (%v)", got, err)
	}
}
