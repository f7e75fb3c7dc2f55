package protocol

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/store"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/placement"
)

// pictureFile has the state machine of a key, as a diagram and as a table of
// transitions.
const pictureFile = "../../docs/life-of-a-key.md"

// A change is a transition of a key's state at a node.
type change struct{ from, to state }

func (c change) String() string { return fmt.Sprintf("%v → %v", c.from, c.to) }

// A label is what the diagram says at an arrow.
type label struct {
	triggers []string // what comes; records have capitals
	effects  []string // the records that are sent; "nothing": perhaps none
}

var (
	diagram  = regexp.MustCompile("(?s)```mermaid\n(.*?)```")
	arrow    = regexp.MustCompile(`^ *(\w+) --> (\w+): (.+)$`)
	guard    = regexp.MustCompile(` *\[[^\]]*\]`)
	tableRow = regexp.MustCompile("(?m)^\\| ([a-z ]+) \\| ([a-z ]+) \\| `(become\\w+)` \\| [^|]+ \\| `([a-z-]+)` \\|$")
)

// picture returns the arrows of the diagram.
var picture = sync.OnceValues(func() (map[change]label, error) {
	b, err := os.ReadFile(pictureFile)
	if err != nil {
		return nil, err
	}
	m := diagram.FindSubmatch(b)
	if m == nil {
		return nil, fmt.Errorf("%s has no diagram", pictureFile)
	}
	return arrows(string(m[1]))
})

func arrows(text string) (map[change]label, error) {
	drawn := map[change]label{}
	for _, line := range strings.Split(text, "\n") {
		if !strings.Contains(line, "-->") || strings.Contains(line, "[*]") {
			continue
		}
		m := arrow.FindStringSubmatch(line)
		if m == nil {
			return nil, fmt.Errorf("%q is no arrow from a state to a state with a label", line)
		}
		from, to := statesOf(m[1]), statesOf(m[2])
		if len(from) == 0 || len(to) != 1 {
			return nil, fmt.Errorf("%q names a state that there is not", line)
		}
		coming, sent, _ := strings.Cut(guard.ReplaceAllString(m[3], ""), " / ")
		for _, f := range from {
			c := change{f, to[0]}
			if _, twice := drawn[c]; twice {
				return nil, fmt.Errorf("%v is drawn twice", c)
			}
			drawn[c] = label{words(coming), words(sent)}
		}
	}
	return drawn, nil
}

// statesOf returns the states that a name of the diagram or of the table means.
func statesOf(name string) []state {
	switch i := slices.Index(stateNames[:], strings.ReplaceAll(name, "inFlight", "in flight")); {
	case i >= 0:
		return []state{state(i)}
	case name == "replica":
		return []state{fresh, dirty, inFlight, draining}
	}
	return nil
}

func words(list string) (ws []string) {
	for _, w := range strings.Split(list, ",") {
		if w = strings.TrimSpace(w); w != "" {
			ws = append(ws, w)
		}
	}
	return ws
}

// A life compares the transitions that the shards of a cluster make with the diagram.
type life struct {
	drawn    map[change]label
	triggers map[change]map[string]bool // that certainly caused a transition
	effects  map[change]map[string]bool // that were sent at one
	err      error                      // the first transition that is not as drawn
}

func newLife() (*life, error) {
	drawn, err := picture()
	return &life{drawn, map[change]map[string]bool{}, map[change]map[string]bool{}, err}, err
}

// A call is one call of a shard: what came, and what the shard did then.
type call struct {
	cause   string
	waiting map[godwit.Key]map[string]bool // requests in queues, which the call may have served
	changes map[godwit.Key][]change
	sent    map[godwit.Key]map[string]bool
}

func put(m map[godwit.Key]map[string]bool, k godwit.Key, word string) {
	if m[k] == nil {
		m[k] = map[string]bool{}
	}
	m[k][word] = true
}

// word names a record in the diagram: in capitals, but for a request of this node.
func word(kind wire.Kind, own bool) string {
	name := kind.String()
	if own {
		return name
	}
	return strings.ToUpper(name[:1]) + name[1:]
}

// during makes a call of a shard and judges the transitions that it made.
func (n *testNode) during(cause string, keys []godwit.Key, do func()) {
	if n.c.life == nil || n.call != nil {
		do()
		return
	}
	n.call = &call{cause, map[godwit.Key]map[string]bool{}, map[godwit.Key][]change{}, map[godwit.Key]map[string]bool{}}
	for _, k := range keys {
		if d := n.sideAt(k); d != nil {
			n.each(d.queue, func(i uint32) bool {
				w := n.waiters.at(i)
				put(n.call.waiting, k, word(w.kind, w.origin == n.id))
				return true
			})
		}
	}
	do()
	for k := range n.call.changes {
		if err := n.c.life.judge(n.call, k); err != nil && n.c.life.err == nil {
			n.c.life.err = fmt.Errorf("node %d, key %d: %w", n.id, k, err)
		}
	}
	n.call = nil
}

// judge compares what a call did to a key with the diagram.
func (l *life) judge(c *call, k godwit.Key) error {
	causes := maps.Clone(c.waiting[k])
	if causes == nil {
		causes = map[string]bool{}
	}
	causes[c.cause] = true
	for _, w := range []string{"pull", "push", "set", "localize", "intent", "Pull", "Push", "Set", "Localize", "Interest"} {
		if causes[w] {
			causes["access"] = true
		}
	}
	for _, x := range c.changes[k] {
		drawn, ok := l.drawn[x]
		if !ok {
			return fmt.Errorf("%v, which is not drawn, at %v", x, slices.Sorted(maps.Keys(causes)))
		}
		if err := l.judgeTrigger(x, drawn, c.cause, causes); err != nil {
			return err
		}
		if err := l.judgeEffects(x, drawn, c.sent[k]); err != nil {
			return err
		}
		if len(c.changes[k]) > 1 || len(c.waiting[k]) > 0 {
			continue // another transition, or a request that waited, may have sent it
		}
		for _, w := range []string{"Interest", "Localize", "Transfer", "Claim", "Release", "Drained", "Delta", "End", "Set"} {
			if c.sent[k][w] && !slices.Contains(drawn.effects, w) {
				return fmt.Errorf("%v sends %s, which is not drawn", x, w)
			}
		}
	}
	return nil
}

// judgeTrigger looks for what caused a transition: what came, or else a request that
// waited.
func (l *life) judgeTrigger(x change, drawn label, came string, causes map[string]bool) error {
	var hits []string
	for _, w := range drawn.triggers {
		if w == came {
			hits = []string{w}
			break
		}
		if causes[w] {
			hits = append(hits, w)
		}
	}
	switch len(hits) {
	case 0:
		return fmt.Errorf("%v at %v, drawn is %v", x, slices.Sorted(maps.Keys(causes)), drawn.triggers)
	case 1:
		note(l.triggers, x, hits[0])
	}
	return nil
}

func (l *life) judgeEffects(x change, drawn label, sent map[string]bool) error {
	any := len(drawn.effects) == 0
	for _, w := range drawn.effects {
		if sent[w] {
			note(l.effects, x, w)
			any = true
		}
	}
	if !any && slices.Contains(drawn.effects, "nothing") {
		note(l.effects, x, "nothing")
		any = true
	}
	if !any {
		return fmt.Errorf("%v sends none of %v", x, drawn.effects)
	}
	return nil
}

func note(m map[change]map[string]bool, x change, w string) {
	if m[x] == nil {
		m[x] = map[string]bool{}
	}
	m[x][w] = true
}

// unwalked lists what is drawn and did not happen.
func (l *life) unwalked() (missing []string) {
	for x, drawn := range l.drawn {
		for _, w := range drawn.triggers {
			if !l.triggers[x][w] {
				missing = append(missing, fmt.Sprintf("%v at %s", x, w))
			}
		}
		for _, w := range drawn.effects {
			if !l.effects[x][w] {
				missing = append(missing, fmt.Sprintf("%v sends %s", x, w))
			}
		}
	}
	slices.Sort(missing)
	return missing
}

// The calls of a shard, watched.

func (n *testNode) Step(out Out, from godwit.NodeID, r *wire.Record) (err error) {
	n.during(word(r.Kind, false), []godwit.Key{r.Key}, func() { err = n.Shard.Step(out, from, r) })
	return err
}

func (n *testNode) Request(out Out, r *wire.Record) {
	n.during(word(r.Kind, true), []godwit.Key{r.Key}, func() { n.Shard.Request(out, r) })
}

func (n *testNode) Pull(k godwit.Key, dst []float32) (p Place) {
	n.during("pull", []godwit.Key{k}, func() { p = n.Shard.Pull(k, dst) })
	return p
}

func (n *testNode) Push(k godwit.Key, push []float32) (p Place) {
	n.during("push", []godwit.Key{k}, func() { p = n.Shard.Push(k, push) })
	return p
}

func (n *testNode) Want(out Out, k godwit.Key) {
	n.during("intent", []godwit.Key{k}, func() { n.Shard.Want(out, k) })
}

func (n *testNode) Missed(out Out, k godwit.Key, push bool, times, cost uint32) {
	n.during("use", []godwit.Key{k}, func() { n.Shard.Missed(out, k, push, times, cost) })
}

func (n *testNode) Hold(out Out, k godwit.Key) {
	n.during("intent", []godwit.Key{k}, func() { n.Shard.Hold(out, k) })
}

func (n *testNode) Unwant(out Out, k godwit.Key) {
	n.during("intent ends", []godwit.Key{k}, func() { n.Shard.Unwant(out, k) })
}

func (n *testNode) UnwantOwned(out Out, k godwit.Key) (ended bool) {
	n.during("intent ends", []godwit.Key{k}, func() { ended = n.Shard.UnwantOwned(out, k) })
	return ended
}

func (n *testNode) Round(out Out, all, bounded bool) (held bool) {
	n.during("round", nil, func() { held = n.Shard.Round(out, all, bounded) })
	return held
}

func (n *testNode) AskDue(out Out) {
	n.during("room", n.due, func() { n.Shard.AskDue(out) })
}

// stateNamed returns the state of a name.
func stateNamed(name string) state { return state(slices.Index(stateNames[:], name)) }

// becomes notes a transition of the call under way.
func (n *testNode) becomes(k godwit.Key, from, to state) {
	if n.call != nil {
		n.call.changes[k] = append(n.call.changes[k], change{from, to})
	}
}

// sends notes a record that the call under way sends of its own accord: passing on a
// request of another node is none.
func (n *testNode) sends(r *wire.Record) {
	request := ask(r.Kind) || r.Kind == wire.Interest || r.Kind == wire.Wish || r.Kind == wire.Delta || r.Kind == wire.End
	if n.call != nil && (!request || r.Origin == n.id) {
		put(n.call.sent, r.Key, word(r.Kind, false))
	}
}

// Every arrow of the diagram is a transition that the code makes, at each of the
// triggers and with each of the records that the diagram names, in the scenario that
// the table names; and the scenarios make no other transition.
func TestThePictureOfAKeysLifeIsTheCode(t *testing.T) {
	all, err := newLife()
	if err != nil {
		t.Fatal(err)
	}
	if len(all.drawn) < 15 {
		t.Fatalf("%d arrows are drawn: the test is vacuous", len(all.drawn))
	}
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	walked := map[string]*life{}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		one, _ := newLife()
		if _, err := playWatched(string(b), Broken{}, one); err != nil {
			t.Fatal(err)
		}
		if one.err != nil {
			t.Errorf("scenario %s: %v", name, one.err)
		}
		walked[name] = one
		for x, ws := range one.triggers {
			for w := range ws {
				note(all.triggers, x, w)
			}
		}
		for x, ws := range one.effects {
			for w := range ws {
				note(all.effects, x, w)
			}
		}
	}
	for _, w := range all.unwalked() {
		t.Errorf("%s is drawn, and no scenario walks it", w)
	}
	tableOfTransitions(t, all, walked)
}

// tableOfTransitions compares the table with the diagram: each arrow has a row, the
// scenario of the row walks it, and the function of the row is the one that leads there.
func tableOfTransitions(t *testing.T, all *life, walked map[string]*life) {
	b, err := os.ReadFile(pictureFile)
	if err != nil {
		t.Fatal(err)
	}
	inTable := map[change]bool{}
	for _, m := range tableRow.FindAllStringSubmatch(string(b), -1) {
		from, to := statesOf(m[1]), statesOf(m[2])
		if len(from) == 0 || len(to) != 1 {
			t.Errorf("the table goes from %q to %q", m[1], m[2])
			continue
		}
		for _, f := range from {
			x := change{f, to[0]}
			inTable[x] = true
			if _, ok := all.drawn[x]; !ok {
				t.Errorf("%v is in the table and not drawn", x)
			}
			if one := walked[m[4]]; one == nil || one.triggers[x] == nil {
				t.Errorf("%v does not happen in scenario %s, which the table names", x, m[4])
			}
			want := "become" + strings.ToUpper(stateIdents[x.to][:1]) + stateIdents[x.to][1:]
			if x == (change{placeholder, fresh}) {
				want = "becomeReplica"
			}
			if m[3] != want {
				t.Errorf("%v is the work of %s, the table says %s", x, want, m[3])
			}
		}
	}
	for x := range all.drawn {
		if !inTable[x] {
			t.Errorf("%v is drawn and not in the table", x)
		}
	}
}

// stateIdents are the states' names in the code.
var stateIdents = [...]string{"absent", "placeholder", "owner", "tentative", "frozen", "fresh", "dirty", "inFlight", "draining"}

// Storms make no transition that is not drawn, whatever the policy.
func TestStormsMakeNoTransitionThatIsNotDrawn(t *testing.T) {
	seen, err := newLife()
	if err != nil {
		t.Fatal(err)
	}
	all := append(weathers(), weather{nodes: 3, policy: chosen{}}, weather{nodes: 5, policy: chosen{}, hints: true, async: true})
	for _, w := range all {
		if w.nodes != 3 && w.nodes != 5 {
			continue
		}
		for seed := uint64(1); seed <= 5; seed++ {
			s := newStorm(seed, w)
			s.c.life = seen
			if err := s.run(); err != nil {
				t.Fatalf("%v, seed %d: %v", w, seed, err)
			}
		}
	}
	for x := range seen.drawn {
		if seen.triggers[x] == nil && x != (change{dirty, fresh}) { // a push of a storm makes a difference
			t.Errorf("no storm makes %v", x)
		}
	}
}

// A transition that is not drawn, one at another trigger and one that sends something
// else are noticed.
func TestALifeThatIsNotAsDrawnIsNoticed(t *testing.T) {
	b, err := os.ReadFile("testdata/drop.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		what string
		with func(map[change]label)
	}{
		{"not drawn", func(d map[change]label) { delete(d, change{draining, absent}) }},
		{"trigger", func(d map[change]label) { d[change{draining, absent}] = label{triggers: []string{"Ack"}} }},
		{"effect", func(d map[change]label) {
			d[change{dirty, draining}] = label{triggers: []string{"intent ends"}, effects: []string{"Delta"}}
		}},
		{"no effect", func(d map[change]label) { d[change{dirty, draining}] = label{triggers: []string{"intent ends"}} }},
	} {
		l, err := newLife()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := playWatched(string(b), Broken{}, l); err != nil || l.err != nil {
			t.Fatal(err, l.err)
		}
		l.drawn = maps.Clone(l.drawn)
		x.with(l.drawn)
		if _, err := playWatched(string(b), Broken{}, l); err != nil {
			t.Fatal(err)
		}
		if l.err == nil {
			t.Errorf("%s: nothing is noticed", x.what)
		}
	}
}

// Nothing but state.go changes the state of a row.
func TestOnlyTheStateMachineWritesStates(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	mayWrite := map[string]bool{"enter": true, "sideOf": true, "dropSide": true, "setWants": true, "mark": true, "setFlag": true} // three write the side's number or what stands there without a side, and two what cuts and short ways need
	calls := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(fn, func(x ast.Node) bool {
				switch x := x.(type) {
				case *ast.CallExpr:
					if sel, ok := x.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "enter" {
						calls++
						if file != "state.go" {
							t.Errorf("%s, %s: a state is entered outside of state.go", file, fn.Name.Name)
						}
					}
				case *ast.AssignStmt:
					for _, l := range x.Lhs {
						if sel, ok := l.(*ast.SelectorExpr); ok && sel.Sel.Name == "Meta" && !mayWrite[fn.Name.Name] {
							t.Errorf("%s, %s: Header.Meta is written", file, fn.Name.Name)
						}
					}
				}
				return true
			})
		}
	}
	if calls < 8 {
		t.Errorf("%d calls of enter: the test is vacuous", calls)
	}
}

// inState is a row of a shard in a state, with an empty side.
func inState(t *testing.T, st state) (*Shard, *store.Header) {
	s := bareShard(t)
	h := s.st.Header(s.create(3))
	s.sideOf(h)
	h.Meta = h.Meta&^stateMask | uint32(st)
	if st == placeholder {
		s.placeholder(h).askedOf = godwit.NoNode
	}
	return s, h
}

// fault returns what a function panics with.
func fault(do func()) (msg string) {
	defer func() {
		if p := recover(); p != nil {
			msg = fmt.Sprint(p)
		}
	}()
	do()
	return ""
}

// The functions of transitions lead from the states from which arrows are drawn, and
// from no others: anything else is a fault of the package.
func TestATransitionThatIsNotDrawnPanics(t *testing.T) {
	drawn, err := picture()
	if err != nil {
		t.Fatal(err)
	}
	become := map[state]func(*Shard, *store.Header){
		owner:     (*Shard).becomeOwner,
		frozen:    func(s *Shard, h *store.Header) { s.becomeFrozen(h, s.cfg.Self+1) },
		tentative: func(s *Shard, h *store.Header) { s.becomeTentative(h, 1, 1) },
		fresh:     (*Shard).becomeFresh,
		dirty:     func(s *Shard, h *store.Header) { s.replica(h).unsent = due; s.becomeDirty(h) },
		inFlight:  (*Shard).becomeInFlight,
		draining:  (*Shard).becomeDraining,
		absent:    (*Shard).becomeAbsent,
	}
	for to, do := range become {
		for from := placeholder; int(from) < len(stateNames); from++ {
			if _, ok := drawn[change{from, to}]; ok {
				continue
			}
			s, h := inState(t, from)
			if msg := fault(func() { do(s, h) }); !strings.HasPrefix(msg, "protocol: ") || stateOf(h) != from {
				t.Errorf("%v: %q, and the key is %v", change{from, to}, msg, stateOf(h))
			}
		}
	}
}

// What must hold before a transition is checked.
func TestATransitionBeforeItsTimePanics(t *testing.T) {
	for _, x := range []struct {
		from, to state
		but      func(*Shard, *store.Header) // what must not be
		become   func(*Shard, *store.Header)
	}{
		{owner, frozen, nil, func(s *Shard, h *store.Header) { s.becomeFrozen(h, s.cfg.Self) }},
		{absent, owner, nil, (*Shard).becomeOwner}, // a new row has no side
		{placeholder, tentative, func(s *Shard, h *store.Header) { s.placeholder(h).askedOf = 1 }, func(s *Shard, h *store.Header) { s.becomeTentative(h, 1, 1) }},
		{placeholder, fresh, nil, func(s *Shard, h *store.Header) { s.becomeReplica(h, 0, 1, 1) }}, // no Interest was sent
		{placeholder, fresh, func(s *Shard, h *store.Header) { *s.placeholder(h) = placeholderSide{first: 1, askedOf: 1} }, func(s *Shard, h *store.Header) { s.becomeReplica(h, 0, 1, 1) }},
		{dirty, fresh, func(s *Shard, h *store.Header) { s.replica(h).unsent = held }, (*Shard).becomeFresh},
		{inFlight, fresh, func(s *Shard, h *store.Header) { s.replica(h).sent = 1 }, (*Shard).becomeFresh},
		{fresh, dirty, nil, (*Shard).becomeDirty},
		{inFlight, dirty, func(s *Shard, h *store.Header) { *s.replica(h) = replicaSide{unsent: due, sent: 1} }, (*Shard).becomeDirty},
		{dirty, inFlight, func(s *Shard, h *store.Header) { s.replica(h).unsent = due }, (*Shard).becomeInFlight},
		{dirty, inFlight, func(s *Shard, h *store.Header) { s.replica(h).rest = 1 }, (*Shard).becomeInFlight},
		{fresh, draining, func(s *Shard, h *store.Header) { s.side(h).want = 1 }, (*Shard).becomeDraining},
		{frozen, absent, func(s *Shard, h *store.Header) { s.side(h).queue = 1 }, (*Shard).becomeAbsent},
		{absent, placeholder, nil, func(s *Shard, _ *store.Header) { s.becomePlaceholder(4, placement.Nothing, 0) }},
	} {
		s, h := inState(t, x.from)
		if x.but != nil {
			x.but(s, h)
		}
		if msg := fault(func() { x.become(s, h) }); !strings.Contains(msg, fmt.Sprintf("cannot become %v from %v: ", x.to, x.from)) {
			t.Errorf("%v: %q", change{x.from, x.to}, msg)
		}
	}
}
