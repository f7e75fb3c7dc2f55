package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// alias is how changed files name package mutant.
const alias = "mutant_"

// mutantDir is where that package is, below the module: in the overlay only.
const mutantDir = "internal/mutant"

// mutantSource is what changed files call. Where a run is to be told what it
// reaches, each number is written to a file once, when it is first asked for.
const mutantSource = `// Package mutant says which mutant is active.
package mutant

import (
	"os"
	"strconv"
	"sync"
)

var (
	active, _ = strconv.Atoi(os.Getenv("GODWIT_MUTANT"))
	reached   = os.Getenv("GODWIT_REACHED")

	mu   sync.Mutex
	seen map[int]bool
)

// On reports whether a mutant is the active one.
func On(id int) bool { return id == active || reached != "" && note(id) }

//go:noinline
func note(id int) bool {
	mu.Lock()
	defer mu.Unlock()
	if seen[id] {
		return false
	}
	if seen == nil {
		seen = map[int]bool{}
	}
	seen[id] = true
	f, err := os.OpenFile(reached, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		f.WriteString(strconv.Itoa(id) + "\n")
		f.Close()
	}
	return false
}

type integer interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr
}
type number interface{ integer | ~float32 | ~float64 }
type ordered interface{ number | ~string }

func Less[T ordered](id int, a, b T) bool         { return a < b || On(id) && a == b }
func LessEqual[T ordered](id int, a, b T) bool    { return a < b || a == b && !On(id) }
func Greater[T ordered](id int, a, b T) bool      { return a > b || On(id) && a == b }
func GreaterEqual[T ordered](id int, a, b T) bool { return a > b || a == b && !On(id) }

func Plus[T number](id int, a, b T) T {
	if On(id) {
		return a - b
	}
	return a + b
}

func Minus[T number](id int, a, b T) T {
	if On(id) {
		return a + b
	}
	return a - b
}

func Sign[T number](id int, a T) T {
	if On(id) {
		return -a
	}
	return a
}

func Number[T number](id int, a, b T) T {
	if On(id) {
		return b
	}
	return a
}
`

// writeOverlay writes the changed files of packages to a folder, and returns the
// overlay that go takes instead of the tree. Sites with a number are changed.
func writeOverlay(dir, root, module string, ps []*pkg, drawn []*site) (string, error) {
	by := map[string][]edit{}
	for _, s := range drawn {
		by[s.File] = append(by[s.File], s.edits(s.id)...)
	}
	replace := map[string]string{}
	add := func(name string, src []byte) error {
		to := filepath.Join(dir, fmt.Sprintf("%d.go", len(replace)))
		replace[name] = to
		return os.WriteFile(to, src, 0o600)
	}
	if err := add(filepath.Join(root, mutantDir, "mutant.go"), []byte(mutantSource)); err != nil {
		return "", err
	}
	for _, p := range ps {
		for _, f := range p.files {
			if len(by[f.name]) == 0 {
				continue
			}
			at := p.fset.Position(f.ast.Name.End()).Offset
			imports := edit{at: at, end: at, open: fmt.Sprintf("; import %s %q", alias, module+"/"+mutantDir)}
			if err := add(f.name, apply(f.src, append(by[f.name], imports))); err != nil {
				return "", err
			}
		}
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, "overlay.json")
	return name, os.WriteFile(name, b, 0o600)
}
