package godwit_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/godwit-ps/godwit"

// A room is a package of the project as its sources show it, for all platforms
// and without its tests.
type room struct {
	imports    map[string]string // path → a file that imports it
	globalRand []string          // uses of math/rand's global generator, by position
}

// ours returns the rooms that r imports, by their path in the project.
func (r *room) ours() []string {
	var rooms []string
	for p := range r.imports {
		if p == module {
			rooms = append(rooms, ".")
		} else if rest, ok := strings.CutPrefix(p, module+"/"); ok {
			rooms = append(rooms, rest)
		}
	}
	slices.Sort(rooms)
	return rooms
}

// readRooms parses all packages of the module in the folder root.
func readRooms(t *testing.T, root string) map[string]*room {
	t.Helper()
	rooms := map[string]*room{}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if file == root {
				return nil
			}
			_, err := os.Stat(filepath.Join(file, "go.mod"))
			if err == nil || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") || strings.HasPrefix(d.Name(), "_") {
				return filepath.SkipDir // another module, or not Go
			}
			return nil
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		rel, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			return err
		}
		name := filepath.ToSlash(rel)
		if rooms[name] == nil {
			rooms[name] = &room{imports: map[string]string{}}
		}
		return rooms[name].read(file)
	})
	if err != nil {
		t.Fatal(err)
	}
	return rooms
}

func (r *room) read(file string) error {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, file, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, spec := range f.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return err
		}
		r.imports[p] = file
		if p == "math/rand" || p == "math/rand/v2" {
			name := "rand"
			if spec.Name != nil {
				name = spec.Name.Name
			}
			for _, pos := range globalRand(f, name) {
				r.globalRand = append(r.globalRand, fset.Position(pos).String())
			}
		}
	}
	return nil
}

// globalRand finds where f uses a function of the package math/rand, imported
// as name, other than to make a generator. A dot import is a use as a whole.
func globalRand(f *ast.File, name string) (at []token.Pos) {
	if name == "." {
		return []token.Pos{f.Name.Pos()}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		pkg, ok := s.X.(*ast.Ident)
		if !ok || pkg.Name != name || strings.HasPrefix(s.Sel.Name, "New") {
			return true
		}
		switch s.Sel.Name {
		case "Rand", "Source", "Source64", "PCG", "ChaCha8", "Zipf": // types
		default:
			at = append(at, s.Pos())
		}
		return true
	})
	return at
}

// within reports whether a room is one of patterns: a path, or a path and all
// below it ("internal/protocol/...").
func within(name string, patterns ...string) bool {
	for _, p := range patterns {
		tree, ok := strings.CutSuffix(p, "/...")
		if name == p || ok && (name == tree || strings.HasPrefix(name, tree+"/")) {
			return true
		}
	}
	return false
}

// reach returns the rooms that a room imports, over others or itself, and it.
func reach(rooms map[string]*room, from string) []string {
	seen := map[string]bool{}
	var visit func(string)
	visit = func(name string) {
		if r := rooms[name]; r != nil && !seen[name] {
			seen[name] = true
			for _, next := range r.ours() {
				visit(next)
			}
		}
	}
	visit(from)
	return slices.Sorted(maps.Keys(seen))
}

// A direction says what some rooms may import.
type direction struct {
	rooms []string // patterns of the rooms that it binds
	ours  []string // patterns of all the rooms that they may import; nil: any
	never []string // other packages that they must not import, themselves
	reach []string // nor over other rooms of ours
	pure  bool     // no use of the global random numbers
	why   string
}

var directions = []direction{
	{
		rooms: []string{"."},
		ours:  []string{},
		why:   "the words are what everything else is written against",
	},
	{
		rooms: []string{"internal/protocol/...", "placement", "internal/store"},
		ours:  []string{".", "internal/protocol/...", "placement", "internal/store", "internal/wire", "internal/vec", "optim", "internal/named", "internal/hint", "internal/preempt", "internal/histogram"},
		never: []string{"sync"},
		reach: []string{"time", "net", "os"},
		pure:  true,
		why:   "the protocol is a function of its inputs: the shell brings locks and time, the simulator its own",
	},
	{
		rooms: []string{"internal/protocol/...", "placement"},
		never: []string{"sync/atomic"},
		why:   "the shell brings locks; only the store's index is looked into without one",
	},
	{
		rooms: []string{"internal/wire", "internal/vec", "optim"},
		ours:  []string{".", "internal/wire", "internal/vec/...", "optim"},
		reach: []string{"time", "net", "os"},
		pure:  true,
		why:   "the protocol is built on them",
	},
	{
		rooms: []string{"sampling"},
		ours:  []string{".", "internal/named"},
		reach: []string{"time", "net", "os"},
		pure:  true,
		why:   "a run is replayed from its seeds",
	},
	{
		rooms: []string{"filter"},
		ours:  []string{".", "internal/named"},
		reach: []string{"time", "net", "os"},
		pure:  true,
		why:   "a run is replayed from its seeds",
	},
	{
		rooms: []string{"schedule"},
		ours:  []string{},
		never: []string{"sync", "sync/atomic"},
		reach: []string{"time", "net", "os"},
		pure:  true,
		why:   "who trains what is a function of what nodes report",
	},
	{
		rooms: []string{"train/..."},
		ours:  []string{".", "internal/plural", "internal/vec", "optim", "filter", "data/...", "sampling", "schedule", "train/..."},
		pure:  true,
		why:   "a task cannot tell a node of a cluster from a simulated one",
	},
	{
		rooms: []string{"checkpoint", "job/...", "node/..."},
		reach: []string{"gocloud.dev/blob"},
		why:   "programs of others do not link the clients of object stores that they do not use",
	},
	{
		rooms: []string{"telemetry", "telemetry/trace", "telemetry/internal/folder"},
		ours:  []string{".", "internal/plural", "telemetry/internal/folder"},
		pure:  true,
		why:   "what was written is read without the run",
	},
	{
		rooms: []string{"telemetry/record", "telemetry/diagnose", "telemetry/curve"},
		ours:  []string{".", "internal/plural", "telemetry", "telemetry/trace", "telemetry/record", "telemetry/internal/folder"},
		pure:  true,
		why:   "what was written is read without the run",
	},
	{
		rooms: []string{"dashboard/..."},
		ours:  []string{".", "internal/plural", "dashboard/...", "telemetry/..."},
		pure:  true,
		why:   "a run is shown from its files, whoever wrote them",
	},
	{
		rooms: []string{"checkpoint"},
		ours:  []string{"."},
		pure:  true,
		why:   "files are read without the run that wrote them",
	},
	{
		rooms: []string{"node/internal/tick"},
		ours:  []string{".", "internal/preempt"},
		reach: []string{"time", "net", "os"},
		pure:  true,
		why:   "the order of ticks is a function of what workers did",
	},
	{
		rooms: []string{"node/internal/latch"},
		ours:  []string{"internal/hint", "internal/preempt"},
		never: []string{"context", "net", "os"},
		why:   "a lock knows nothing of what it guards",
	},
	{
		rooms: []string{"node/internal/link"},
		ours:  []string{".", "filter", "transport", "internal/host", "internal/packing", "internal/preempt", "internal/wire"},
		never: []string{"time"},
		pure:  true,
		why:   "who sends knows neither rows nor operations",
	},
	{
		rooms: []string{"node/internal/shards"},
		ours: []string{".", "internal/hint", "internal/host", "internal/preempt", "internal/protocol", "internal/store", "internal/wire",
			"node/internal/latch", "node/internal/link"},
		never: []string{"context", "time", "net", "os"},
		pure:  true,
		why:   "rows know nothing of who accesses them, nor of the time",
	},
	{
		rooms: []string{"node/internal/operation"},
		ours:  []string{".", "transport", "internal/hint", "internal/histogram", "internal/host", "internal/preempt", "internal/wire", "node/internal/link", "node/internal/tick"},
		never: []string{"context", "time"},
		pure:  true,
		why:   "operations are begun and completed by others, and touch no row",
	},
	{
		rooms: []string{"node/internal/watch"},
		ours:  []string{".", "internal/histogram", "internal/preempt", "internal/protocol", "internal/protocol/intent", "placement", "telemetry/trace"},
		never: []string{"context", "time", "net", "os"},
		pure:  true,
		why:   "who watches changes nothing",
	},
	{
		rooms: []string{"node/internal/samplers"},
		ours:  []string{".", "sampling"},
		never: []string{"time", "net", "os", "sync"},
		pure:  true,
		why:   "samplers read and announce by the worker",
	},
	{
		rooms: []string{"node/internal/ahead"},
		ours: []string{".", "internal/host", "internal/protocol/intent", "node/internal/link", "node/internal/operation", "node/internal/planner",
			"node/internal/shards", "node/internal/tick"},
		never: []string{"net", "os"},
		pure:  true,
		why:   "the worker asks and waits itself",
	},
	{
		rooms: []string{"node/internal/round"},
		ours: []string{".", "internal/host", "internal/preempt", "internal/protocol/intent", "internal/wire",
			"node/internal/link", "node/internal/shards", "node/internal/tick"},
		never: []string{"context", "net", "os"},
		pure:  true,
		why:   "what else takes place in rounds is a stage",
	},
	{
		rooms: []string{"node/internal/staleness"},
		ours: []string{".", "placement", "internal/host", "internal/preempt", "internal/protocol", "internal/virtual", "internal/wire",
			"node/internal/link", "node/internal/operation", "node/internal/shards", "node/internal/tick"},
		never: []string{"time", "net", "os"},
		pure:  true,
		why:   "a bound follows from clocks and what nodes tell each other, not from the time",
	},
	{
		rooms: []string{"node/internal/receive"},
		ours: []string{".", "transport", "internal/host", "internal/packing", "internal/wire", "node/internal/ask", "node/internal/cut", "node/internal/link", "node/internal/liveness",
			"node/internal/operation", "node/internal/round", "node/internal/run", "node/internal/scan", "node/internal/shards", "node/internal/staleness"},
		never: []string{"context", "net", "os"},
		pure:  true,
		why:   "records are handed to rooms, and decided nowhere on their way",
	},
	{
		rooms: []string{"node/internal/cut"},
		ours: []string{".", "internal/host", "internal/preempt", "internal/protocol", "internal/wire", "node/internal/link", "node/internal/operation",
			"node/internal/round", "node/internal/shards", "node/internal/tick"},
		never: []string{"net", "os"},
		pure:  true,
		why:   "what a cut has follows from what workers did, not from files or the network",
	},
	{
		rooms: []string{"node/internal/worker"},
		ours: []string{".", "placement", "sampling", "transport", "internal/host", "internal/protocol", "internal/wire", "node/internal/ahead", "node/internal/cut", "node/internal/filtering",
			"node/internal/hot", "node/internal/link", "node/internal/operation", "node/internal/planner", "node/internal/round", "node/internal/run",
			"node/internal/samplers", "node/internal/scan", "node/internal/shards", "node/internal/staleness", "node/internal/tick", "node/internal/watch"},
		never: []string{"net", "os"},
		pure:  true,
		why:   "a worker takes no record of a peer by itself",
	},
	{
		rooms: []string{"node/internal/filtering"},
		ours:  []string{".", "filter", "internal/vec", "internal/preempt"},
		reach: []string{"time", "net", "os"},
		pure:  true,
		why:   "what filters leave of a push follows from the push and the seed",
	},
	{
		rooms: []string{"node/internal/hot"},
		ours:  []string{".", "coord", "placement", "internal/host", "internal/preempt"},
		pure:  true,
		why:   "which keys are hot follows from what nodes counted; replicas are others' work",
	},
	{
		rooms: []string{"node/internal/liveness"},
		ours:  []string{".", "coord", "transport", "internal/host", "internal/preempt", "internal/wire", "node/internal/link"},
		pure:  true,
		why:   "who is alive is seen from what moves over connections, not from what it carries",
	},
	{
		rooms: []string{"node/internal/scan"},
		ours:  []string{".", "internal/host", "internal/preempt", "internal/protocol", "internal/wire", "node/internal/link"},
		never: []string{"time"},
		pure:  true,
		why:   "who lists keys asks their homes, and reads no row",
	},
	{
		rooms: []string{"node/internal/ask"},
		ours:  []string{".", "internal/host", "internal/preempt", "internal/wire", "node/internal/link"},
		never: []string{"time", "net", "os"},
		pure:  true,
		why:   "who asks and who answers know what is asked, and nobody else",
	},
	{
		rooms: []string{"node/internal/planner"},
		ours:  []string{".", "internal/host", "internal/preempt", "internal/protocol/intent", "node/internal/link", "node/internal/shards", "node/internal/tick"},
		never: []string{"net", "os"},
		pure:  true,
		why:   "what is announced becomes requests for rows, and nothing else",
	},
	{
		rooms: []string{"node/internal/run"},
		ours:  []string{".", "coord", "transport", "internal/host", "internal/preempt", "internal/wire", "node/internal/link"},
		pure:  true,
		why:   "how a run ends does not depend on what nodes did in it",
	},
}

// violations lists what the rooms import against the directions.
func violations(rooms map[string]*room) (found []string) {
	for _, d := range directions {
		for _, name := range slices.Sorted(maps.Keys(rooms)) {
			if within(name, d.rooms...) {
				found = append(found, d.violations(rooms, name)...)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(rooms)) {
		for _, other := range rooms[name].ours() {
			if within(other, "cmd/...") && !within(name, "cmd/...") {
				found = append(found, name+" imports "+other+": commands are imported by nobody")
			}
		}
	}
	return found
}

func (d *direction) violations(rooms map[string]*room, name string) (found []string) {
	r := rooms[name]
	complain := func(what string) { found = append(found, name+" "+what+": "+d.why) }
	for _, other := range r.ours() {
		if d.ours != nil && !within(other, d.ours...) {
			complain("imports " + other)
		}
	}
	for _, p := range d.never {
		if file, ok := r.imports[p]; ok {
			complain("imports " + p + " in " + path.Base(file))
		}
	}
	for _, other := range reach(rooms, name) {
		for _, p := range d.reach {
			if file, ok := rooms[other].imports[p]; ok {
				complain("reaches " + p + " by " + file)
			}
		}
	}
	if d.pure {
		for _, at := range r.globalRand {
			complain("uses the global random numbers at " + at)
		}
	}
	return found
}

func TestImportsPointToTheWords(t *testing.T) {
	rooms := readRooms(t, ".")
	if rooms["."] == nil || rooms["internal/wire"] == nil || rooms["sampling"] == nil {
		t.Fatalf("the module's packages were not found, only %v", slices.Sorted(maps.Keys(rooms)))
	}
	for _, v := range violations(rooms) {
		t.Error(v)
	}
}

// The checker itself: a small module that breaks each direction.
func TestBrokenDirectionsAreNoticed(t *testing.T) {
	root := t.TempDir()
	for file, text := range map[string]string{
		"types.go":                        `package godwit; import _ "github.com/godwit-ps/godwit/internal/vec"`,
		"internal/vec/vec.go":             `package vec; import _ "os"`,
		"internal/vec/vec_test.go":        `package vec; import _ "net"`,
		"internal/vec/gen/go.mod":         `module gen`,
		"internal/vec/gen/gen.go":         `package main; import _ "time"`,
		"internal/protocol/intent/due.go": `package intent; import ("sync"; "math/rand/v2"); var _ sync.Mutex; var _ = rand.Int(); var _ = rand.New(nil)`,
		"internal/store/store.go":         `package store; import _ "github.com/godwit-ps/godwit/internal/vec"`,
		"train/kge/kge.go":                `package kge; import (_ "github.com/godwit-ps/godwit/node"; _ "github.com/godwit-ps/godwit/data/triples")`,
		"node/node.go":                    `package node; import _ "github.com/godwit-ps/godwit/cmd/godwit"`,
		"sampling/sampling.go":            `package sampling; import _ "github.com/godwit-ps/godwit"`,
	} {
		file = filepath.Join(root, filepath.FromSlash(file))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, v := range violations(readRooms(t, root)) {
		what, _, _ := strings.Cut(strings.ReplaceAll(v, root+string(filepath.Separator), ""), ":")
		got = append(got, what)
	}
	want := []string{
		". imports internal/vec",
		"internal/protocol/intent imports sync in due.go",
		"internal/protocol/intent uses the global random numbers at " + filepath.FromSlash("internal/protocol/intent/due.go"),
		"internal/store reaches os by " + filepath.FromSlash("internal/vec/vec.go"),
		"internal/vec reaches os by " + filepath.FromSlash("internal/vec/vec.go"),
		"sampling reaches os by " + filepath.FromSlash("internal/vec/vec.go"),
		"train/kge imports node",
		"node imports cmd/godwit",
	}
	if !slices.Equal(got, want) {
		t.Errorf("found\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}
