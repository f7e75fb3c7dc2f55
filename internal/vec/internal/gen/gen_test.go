package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheFilesOfPackageVecAreWhatTheGeneratorWrites(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{"neon": "kernels_arm64.s", "out": "kernels_amd64.s", "stubs": "kernels.go"}
	for name, file := range files {
		set(t, name, filepath.Join(dir, file))
	}
	set(t, "pkg", "vec")
	main()
	for _, file := range files {
		got, want := kernelsOf(t, filepath.Join(dir, file)), kernelsOf(t, filepath.Join("../..", file))
		if !bytes.Equal(got, want) {
			t.Errorf("vec/%s is not what the generator writes: run \"go generate\" in vec, and never edit it", file)
		}
	}
}

func set(t *testing.T, name, value string) {
	t.Helper()
	if err := flag.Set(name, value); err != nil {
		t.Fatal(err)
	}
}

// kernelsOf is a file without its first line, which tells the command.
func kernelsOf(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := bytes.Cut(text, []byte("\n"))
	if !found || len(rest) < 1000 {
		t.Fatalf("%s holds no kernels", file)
	}
	return rest
}

func TestWordsAreCheckedAgainstTheirText(t *testing.T) {
	if got, want := word3("fadd", 1, 2, 3), "WORD $0x4e23d441 // fadd v1.4s, v2.4s, v3.4s"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	mustPanic(t, "is fsub v0.4s, v0.4s, v0.4s, meant to be fadd", func() { word(words["fsub"], "fadd v0.4s, v0.4s, v0.4s") })
	mustPanic(t, "unknown instruction", func() { word(0xffffffff, "fadd v0.4s, v0.4s, v0.4s") })
}

func TestRegistersThatRunOutStopTheGenerator(t *testing.T) {
	mustPanic(t, "many needs more than 32 vector registers", func() {
		n := &neon{}
		n.text("many", "func(x *float32) float32", "")
		x := n.read("x")
		var sum value = n.zero()
		var values []value
		for i := range 32 {
			values = append(values, n.reg(place{x, bytesOfVector * i}))
		}
		for _, v := range values {
			sum = n.add(sum, v)
		}
		n.ret()
	})
}

func mustPanic(t *testing.T, why string, f func()) {
	t.Helper()
	defer func() {
		if r := fmt.Sprint(recover()); !strings.Contains(r, why) {
			t.Errorf("got panic %q, want one with %q", r, why)
		}
	}()
	f()
}
