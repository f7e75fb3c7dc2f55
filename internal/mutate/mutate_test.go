package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A toy is a module whose mutants are known. Of each operator, its test notices one
// mutant (functions Seen…) and misses one (functions Missed…).
var toy = map[string]string{
	"go.mod": "module toy\n\ngo 1.25.0\n",
	"toy.go": `package toy

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

type box struct {
	n     int
	Stats struct{ calls int }
	mu    sync.Mutex
}

func SeenNegate(a int) string { // on one line
	if a > 5 { return "large" }
	return "small"
}

func SeenBound(a, b time.Duration) bool { x := a <= b; return x }
func MissedBound(a, b uint8) bool { x := a <= b; return x }

func SeenEqual(a, b string) bool { x := a == b; return x }
func MissedEqual(a, b string) bool { x := a != b; return x }

func SeenLogic(a, b bool) bool { x := a && b; return x }
func MissedLogic(a, b bool) bool { x := a || b; return x }

func (b *box) SeenRemove() { b.n = 7 }
func (b *box) MissedRemove() { b.n++ }

func SeenResult() bool { return true }
func MissedResult() bool { return false }

func SeenZero(xs []int) int { return xs[0] }
func MissedZero(xs []int) int { return xs[1] }

func SeenSign(a, b float32) float32 { return a + b }
func MissedSign(a int64) int64 { a -= 3; return a }

func SeenElse(a bool) (n int) {
	if a { n = 2 } else { n = 3 }
	return n
}

func MissedElse(a bool) (n int) {
	if a { n = 2 } else { n = 3 }
	return n
}

func SeenExit(a bool) int {
	if a { return 2 }
	return 3
}

func MissedExit(as []bool) (n int) {
	for _, a := range as {
		if a { continue }
		n += 2
	}
	return n
}

// Nothing of this is a place.
func (b *box) String() string { return fmt.Sprint(b.n + 1) }
func (b *box) none(s string) error {
	b.mu.Lock()
	b.Stats.calls++
	x := 1 << 3
	const y = 0
	_, _ = x, make([]int, 2, 10)
	b.mu.Unlock()
	return errors.New("none: " + fmt.Sprint(len(s) + 1))
}

// All of this is, and within each other.
func nested(a, b int) bool {
	return (a < b && b-a < 2) || a > b
}

func endless(n int) int {
	for n > 5 {
		n--
	}
	return n
}
`,
	"toy_test.go": `package toy

import "testing"

func TestToy(t *testing.T) {
	var b box
	b.SeenRemove()
	b.MissedRemove()
	MissedBound(1, 1)
	MissedEqual("", "")
	MissedLogic(true, false)
	MissedResult()
	MissedZero([]int{3, 4})
	MissedSign(1)
	MissedElse(false)
	MissedExit([]bool{true})
	for i, ok := range []bool{
		SeenNegate(5) == "small", SeenBound(1, 1), SeenEqual("a", "a"), SeenLogic(true, true), !SeenLogic(true, false),
		b.n >= 7, SeenResult(), SeenZero([]int{5, 6}) == 5, SeenSign(1, 2) == 3, SeenElse(false) == 3, SeenExit(true) == 2,
		nested(1, 2), !nested(1, 1), nested(2, 1), !nested(1, 3), endless(7) == 5,
	} {
		if !ok {
			t.Error(i)
		}
	}
}

func TestFails(t *testing.T) { t.Error("always") }
`,
}

func makeToy(t *testing.T) (root string, ps []*pkg) {
	t.Helper()
	root = t.TempDir()
	for name, text := range toy {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ps, err := load(root, []string{"."})
	if err != nil {
		t.Fatal(err)
	}
	return root, ps
}

func TestMutantsOfAToyAreKilledWhereItsTestLooks(t *testing.T) {
	root, ps := makeToy(t)
	drawn, of := draw(ps, 1, 1)
	if len(drawn) != of {
		t.Fatalf("%d of %d places are drawn, want all", len(drawn), of)
	}
	work := t.TempDir()
	overlay, err := writeOverlay(work, root, "toy", ps, drawn)
	if err != nil {
		t.Fatal(err)
	}
	bins, err := build(t.Context(), root, overlay, work, []string{"."}, nil)
	if err != nil {
		t.Fatal(err)
	}
	tr := &trial{bins: bins, budget: time.Hour}
	if err := tr.measure(t.Context(), 4*time.Minute); err != nil {
		t.Fatal(err)
	}
	rs := map[string]result{}
	ops := map[string]bool{}
	for _, s := range drawn {
		if s.Func == "endless" {
			continue // see below
		}
		r, err := tr.try(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		rs[s.Name()] = r
		op := strings.ToLower(strings.TrimPrefix(strings.TrimPrefix(s.Func[strings.Index(s.Func, ".")+1:], "Seen"), "Missed"))
		switch want := strings.Contains(s.Func, "Seen") || s.Func == "nested"; {
		case s.Func != "nested" && s.Op != op:
		case r.Killed != want:
			t.Errorf("%s: killed is %v, want %v: %s", s.Name(), r.Killed, want, s.diff(root))
		default:
			ops[s.Op] = true
		}
		if strings.Contains(s.Func, "none") || strings.Contains(s.Func, "String") {
			t.Errorf("%s is a place: %s", s.Name(), s.diff(root))
		}
	}
	if want := []string{"bound", "else", "equal", "exit", "logic", "negate", "remove", "result", "sign", "zero"}; len(ops) != len(want) {
		t.Errorf("operators %v were tried, want %v", ops, want)
	}
	var out bytes.Buffer
	if report(&out, root, drawn, rs, nil) {
		t.Error("the report finds survivors, and nothing wrong")
	}
	if !strings.Contains(out.String(), "MissedZero zero 1: no test notices it\n    toy.go:37: 1 in: func MissedZero") {
		t.Errorf("the report does not show a survivor:\n%s", out.String())
	}
}

// The sources that are compiled have the lines of the tree, and without a mutant do
// what the tree does.
func TestTheTreeIsNotChanged(t *testing.T) {
	root, ps := makeToy(t)
	drawn, _ := draw(ps, 1, 1)
	work := t.TempDir()
	if _, err := writeOverlay(work, root, "toy", ps, drawn); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(toy) {
		t.Errorf("the folder has %v, want what was there", files)
	}
	for name, want := range toy {
		if got, err := os.ReadFile(filepath.Join(root, name)); err != nil || string(got) != want {
			t.Errorf("%s is another one: %v", name, err)
		}
	}
	changed, err := os.ReadFile(filepath.Join(work, "1.go"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := bytes.Count(changed, []byte("\n")), strings.Count(toy["toy.go"], "\n"); got != want {
		t.Errorf("the changed source has %d lines, want %d", got, want)
	}
}

// What is drawn depends on the seed and on the function of a place, and on nothing
// else in the sources.
func TestADrawIsStable(t *testing.T) {
	_, ps := makeToy(t)
	names := func(seed uint64, fraction float64) (ns []string) {
		drawn, _ := draw(ps, seed, fraction)
		for _, s := range drawn {
			ns = append(ns, s.Name())
		}
		return ns
	}
	half := names(1, 0.5)
	if all := names(1, 1); len(half) < len(all)/4 || len(half) > 3*len(all)/4 {
		t.Errorf("%d of %d places are drawn, want about half", len(half), len(all))
	}
	for _, n := range names(1, 0.25) {
		if !slices.Contains(half, n) {
			t.Errorf("%s is drawn in a quarter and not in half", n)
		}
	}
	if slices.Equal(half, names(2, 0.5)) {
		t.Error("another seed draws the same")
	}
	before := toy["toy.go"]
	defer func() { toy["toy.go"] = before }()
	toy["toy.go"] = strings.Replace(before, "func SeenNegate", "func another(a, b int) bool { return a < b && b > 0 }\n\nfunc SeenNegate", 1)
	_, ps = makeToy(t)
	if again := slices.DeleteFunc(names(1, 0.5), func(n string) bool { return strings.Contains(n, "another") }); !slices.Equal(again, half) {
		t.Errorf("with another function in front, drawn are\n%v\nand were\n%v", again, half)
	}
}

func TestAMutantThatDoesNotEndIsKilled(t *testing.T) {
	root, ps := makeToy(t)
	drawn, _ := draw(ps, 1, 1)
	drawn = slices.DeleteFunc(drawn, func(s *site) bool { return s.Func != "endless" || s.Op != "remove" })
	if len(drawn) != 1 {
		t.Fatalf("%d places, want n--", len(drawn))
	}
	work := t.TempDir()
	overlay, err := writeOverlay(work, root, "toy", ps, drawn)
	if err != nil {
		t.Fatal(err)
	}
	bins, err := build(t.Context(), root, overlay, work, []string{"."}, nil)
	if err != nil {
		t.Fatal(err)
	}
	tr := &trial{bins: bins, budget: time.Hour}
	if err := tr.measure(t.Context(), 4*time.Minute); err != nil {
		t.Fatal(err)
	}
	if r, err := tr.try(t.Context(), drawn[0]); err != nil || !r.Killed || !strings.Contains(r.By, "does not end") {
		t.Errorf("%+v, %v: want that its test does not end", r, err)
	}
}

func TestArguedMutantsAreReadFromATable(t *testing.T) {
	name := filepath.Join(t.TempDir(), "mutants.md")
	text := fmt.Sprintf("# Mutants\n\n| mutant | why |\n| --- | --- |\n| `%s` | it is only slower |\n", "wire f remove 1")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := readArgued(name)
	if err != nil || len(got) != 1 || !got["wire f remove 1"] {
		t.Errorf("read %v, %v", got, err)
	}
}

// Nothing is tried then: the context has ended.
func TestArgumentsThatAreNoFlagsAreRefused(t *testing.T) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := (&options{list: true, args: []string{"kge"}}).main(ended)
	if err == nil || !strings.Contains(err.Error(), `unexpected argument "kge"`) {
		t.Errorf("%v, want the argument named", err)
	}
}
