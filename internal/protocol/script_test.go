package protocol

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/restless"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/placement"
)

var updateFlag = flag.Bool("update", false, "rewrite the outputs in testdata")

// A script is a scenario as text: commands, each followed by what it made the
// cluster do, indented. testdata/README explains the commands.
type script struct {
	c    *cluster
	keys map[string]godwit.Key
	name map[godwit.Key]string
	op   uint64
	last map[[2]godwit.NodeID]wire.Record // what deliver handed over
	out  strings.Builder                  // of the present command
	life *life                            // if set, judges every transition
}

func TestScenariosGoAsWritten(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 12 {
		t.Fatalf("found %d scenarios, error %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got, err := play(string(b), Broken{})
			if err != nil {
				t.Fatal(err)
			}
			if *updateFlag {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != string(b) {
				t.Errorf("%s goes otherwise (rewrite with -update, and read the difference):\n%s", file, firstDifference(string(b), got))
			}
		})
	}
}

// Scenarios show what rules are for: without the rule, they go otherwise.
func TestWithoutItsRuleAScenarioGoesWrong(t *testing.T) {
	for _, x := range []struct {
		rule, file string
		off        Broken
	}{
		{"two hints at most", "stale-hints", Broken{HintsForEver: true}},
		{"questions go on", "question-returns", Broken{KeepQuestion: true}},
		{"M1, freeze", "first-interest", Broken{DropAtSend: true}},
		{"M1, serve once", "push-during-move", Broken{ServeFrozen: true}},
		{"M2, greater epochs only", "claim-again", Broken{IgnoreEpochs: true}},
		{"M3, serve after drained", "push-during-move", Broken{ServeTentative: true}},
		{"M3, comings first", "order-of-comings", Broken{AnyOrder: true}},
		{"M4, one move at a time", "chain", Broken{MoveTentative: true}},
		{"one update in flight", "set-at-replica", Broken{ManyInFlight: true}},
		{"R1, take updates once", "late-delta", Broken{TakeTwice: true}},
		{"R1, end a replica once", "late-end", Broken{EndAny: true}},
		{"R2, updates in flight stay", "refresh-in-flight", Broken{ForgetFlight: true}},
		{"R2, updates not sent stay", "refresh-in-flight", Broken{ForgetUnsent: true}},
		{"R3, no stale refresh", "holders-first", Broken{TakeStale: true}},
		{"R3, the whole row after a move", "holders-first", Broken{KeepVersions: true}},
		{"R4, freshen the asker", "set-at-replica", Broken{NoFreshen: true}},
		{"R5, drain", "drop", Broken{DropEarly: true}},
		{"R5, no writes while draining", "drop", Broken{WriteDraining: true}},
		{"R6, holders first", "holders-first", Broken{MoveBehind: true}},
		{"R7, a set is the update in flight", "set-at-replica", Broken{LooseSet: true}},
	} {
		b, err := os.ReadFile("testdata/" + x.file + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := play(string(b), x.off); err == nil && got == string(b) {
			t.Errorf("%s goes the same without %s", x.file, x.rule)
		}
	}
}

func TestTheReadmeOfScenariosNamesAll(t *testing.T) {
	b, err := os.ReadFile("testdata/README")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		if n := strings.Count(string(b), "\n    "+name+" "); n != 1 {
			t.Errorf("testdata/README names %s %d times, want once", name, n)
		}
	}
	if len(files) < 26 {
		t.Errorf("found %d scenarios", len(files))
	}
}

func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			return fmt.Sprintf("line %d\n  want %s\n  got  %s", i+1, w[i], g[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(g), len(w))
}

// play runs a script and returns it with the outputs that it gave.
func play(text string, broken Broken) (string, error) { return playWatched(text, broken, nil) }

// playWatched plays a script while a life judges the transitions.
func playWatched(text string, broken Broken, l *life) (string, error) {
	s := &script{life: l, keys: map[string]godwit.Key{}, name: map[godwit.Key]string{}, last: map[[2]godwit.NodeID]wire.Record{}}
	var b strings.Builder
	for i, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		if strings.HasPrefix(line, "    ") {
			continue // an old output
		}
		fmt.Fprintln(&b, line)
		f := strings.Fields(line)
		if len(f) == 0 || f[0] == "#" {
			continue
		}
		s.out.Reset()
		if err := s.command(f, broken); err != nil {
			return "", fmt.Errorf("line %d, %q: %w", i+1, line, err)
		}
		for _, o := range strings.Split(strings.TrimRight(s.out.String(), "\n"), "\n") {
			if o != "" {
				fmt.Fprintf(&b, "    %s\n", o)
			}
		}
	}
	return b.String(), nil
}

func (s *script) printf(format string, a ...any) { fmt.Fprintf(&s.out, format+"\n", a...) }

func (s *script) command(f []string, broken Broken) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	switch f[0] {
	case "cluster":
		return s.cluster(f[1:], broken)
	case "key":
		return s.newKey(f[1], s.node(f[3]), len(f) > 4 && f[4] == "hot")
	case "deliver":
		return s.deliver(f[1:])
	case "again":
		return s.again(f[1])
	case "settle-but":
		return s.settleBut(f[1])
	case "settle":
		if err := s.c.settle(rand.New(rand.NewPCG(1, 1)), 1000); err != nil {
			return err
		}
		for _, n := range s.c.nodes {
			n.replies = nil
		}
		if err := s.c.check(); err != nil {
			s.printf("at rest, but %v", err)
		}
		return nil
	case "round":
		n := s.node(f[1])
		n.Round(n, false, false)
		return nil
	case "state":
		s.state(s.key(f[1]))
		return nil
	case "rows":
		rows, err := strconv.Atoi(f[1])
		s.c.rows = rows
		return err
	case "ask":
		n := s.node(f[1])
		n.AskDue(n)
		return nil
	}
	if f[0] == "use" {
		return s.use(s.node(f[1]), s.key(f[2]), f[3])
	}
	return s.worker(f[0], s.node(f[1]), s.key(f[2]), f[3:])
}

// worker does what a worker or the intents of a node do.
func (s *script) worker(verb string, n *testNode, k godwit.Key, args []string) error {
	places := map[Place]string{AtOwner: "main copy", AtReplica: "replica"}
	var vals []float32
	if len(args) > 0 && verb != "hint" {
		v, err := strconv.ParseFloat(args[0], 32)
		if err != nil {
			return err
		}
		vals = []float32{float32(v)}
	}
	s.op++
	r := &wire.Record{Key: k, Op: s.op, Vals: vals}
	switch verb {
	case "hint":
		n.dir.SetHint(k, s.node(args[0]).id)
		return nil
	case "want":
		n.Want(n, k)
		return nil
	case "unwant":
		n.Unwant(n, k)
		return nil
	case "hold":
		n.Hold(n, k)
		return nil
	case "pull":
		dst := make([]float32, 1)
		if p := n.Pull(k, dst); p != Elsewhere {
			s.printf("reads %v at its %s", dst[0], places[p])
			return nil
		}
		r.Kind = wire.Pull
	case "push":
		if p := n.Push(k, vals); p != Elsewhere {
			s.printf("written at its %s", places[p])
			return nil
		}
		r.Kind = wire.Push
	case "set":
		r.Kind = wire.Set
	case "localize":
		r.Kind = wire.Localize
	default:
		return fmt.Errorf("no such command")
	}
	before := n.Stats.Waited
	n.Request(n, r)
	if n.Stats.Waited > before {
		s.printf("waits at node %d", n.id)
	}
	return nil
}

// use has a worker of a node pull a key and push to it, some times, each time until all has
// arrived. The node learns from what is not here.
func (s *script) use(n *testNode, k godwit.Key, times string) error {
	count, err := strconv.Atoi(times)
	if err != nil {
		return err
	}
	for range count {
		for _, verb := range [][]string{{"pull"}, {"push", "1"}} {
			here := n.holding(k) != absent
			if err := s.worker(verb[0], n, k, verb[1:]); err != nil {
				return err
			}
			if !here {
				n.Missed(n, k, verb[0] == "push", 1, 8)
			}
			if err := s.command([]string{"settle"}, Broken{}); err != nil {
				return err
			}
		}
	}
	return nil
}

// chosen moves a key to node 2 when somebody asks for a copy, whoever that is. Otherwise
// it is follow.
type chosen struct{ follow }

func (chosen) Name() string { return "chosen" }
func (chosen) Decide(s placement.Situation) placement.Action {
	if s.Asked == placement.Copy && s.Self != 2 {
		return placement.Action{Verb: placement.Relocate, To: 2}
	}
	return follow{}.Decide(s)
}

func (s *script) cluster(f []string, broken Broken) error {
	n, err := strconv.Atoi(f[0])
	if err != nil {
		return err
	}
	policy, ok := map[string]placement.Policy{"restless": restless.Policy{}, "follow": follow{}, "chosen": chosen{}}[f[1]]
	if !ok {
		if policy, err = placement.ByName(f[1]); err != nil {
			return err
		}
	}
	option := func(name string) bool { return slices.Contains(f[2:], name) }
	model, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 100, Dim: 1, Relaxed: option("relaxed")})
	if err != nil {
		return err
	}
	s.c = newCluster(n, model, policy, option("hints"), broken)
	if option("idle") {
		s.c.idling()
	}
	s.c.life = s.life
	s.c.sent = func(from, to godwit.NodeID, r *wire.Record) {
		if from == to {
			s.printf("node %d: %s", to, s.record(from, r))
		} else {
			s.printf("%d>%d %s", from, to, s.record(from, r))
		}
	}
	return nil
}

// newKey names the first unnamed key with a home, hot or not.
func (s *script) newKey(name string, home *testNode, hot bool) error {
	for k := godwit.Key(0); s.c.model.Has(k); k++ {
		if _, used := s.name[k]; !used && s.c.homes.Home(k) == home.id && home.cfg.hot(k) == hot {
			s.keys[name], s.name[k] = k, name
			return nil
		}
	}
	return fmt.Errorf("no key is left")
}

// deliver hands over the oldest record from one node to another, or as many as
// the count says, and says what it was.
func (s *script) deliver(f []string) error {
	p := s.way(f[0])
	count := 1
	if len(f) > 1 {
		n, err := strconv.Atoi(f[1])
		if err != nil {
			return err
		}
		count = n
	}
	for range count {
		if len(s.c.pipes[p]) == 0 {
			return fmt.Errorf("nothing is under way")
		}
		r := s.c.pipes[p][0]
		n := s.c.nodes[p[1]]
		before := n.Stats.Waited
		s.printf("node %d takes %s", n.id, s.record(p[0], &r))
		s.last[p] = r
		if err := s.c.deliver(p); err != nil {
			return err
		}
		if n.Stats.Waited > before {
			s.printf("waits at node %d", n.id)
		}
		n.replies = nil
	}
	return nil
}

// again hands over once more what deliver handed over last.
func (s *script) again(link string) error {
	p := s.way(link)
	r := s.last[p]
	n := s.c.nodes[p[1]]
	before := n.Stats.Stale
	s.printf("node %d takes %s again", n.id, s.record(p[0], &r))
	if err := n.Step(n, p[0], &r); err != nil {
		return err
	}
	if n.Stats.Stale > before {
		s.printf("ignored")
	}
	return nil
}

func (s *script) way(link string) [2]godwit.NodeID {
	a, b, ok := strings.Cut(link, ">")
	if !ok {
		panic(fmt.Sprintf("%q, want from>to", link))
	}
	return [2]godwit.NodeID{s.node(a).id, s.node(b).id}
}

// settleBut settles everything but what is under way from one node to another.
func (s *script) settleBut(link string) error {
	p := s.way(link)
	held := s.c.pipes[p]
	delete(s.c.pipes, p)
	err := s.c.settle(rand.New(rand.NewPCG(1, 1)), 1000)
	s.c.pipes[p] = held
	return err
}

func (s *script) node(name string) *testNode {
	i, err := strconv.Atoi(name)
	if err != nil || i >= len(s.c.nodes) {
		panic(fmt.Sprintf("no node %q", name))
	}
	return s.c.nodes[i]
}

func (s *script) key(name string) godwit.Key {
	k, ok := s.keys[name]
	if !ok {
		panic(fmt.Sprintf("no key %q", name))
	}
	return k
}

// record shows a record: what it is and the fields that mean something.
func (s *script) record(from godwit.NodeID, r *wire.Record) string {
	b := fmt.Sprintf("%v %s", r.Kind, s.name[r.Key])
	add := func(show bool, format string, a ...any) {
		if show {
			b += fmt.Sprintf(format, a...)
		}
	}
	switch r.Kind {
	case wire.Refresh, wire.Ack, wire.Transfer, wire.Bid, wire.BidReply:
		add(true, " version %d", r.Version)
	}
	add(len(r.Vals) > 0, " [%v]", sum(r.Vals))
	add(r.Epoch > 0, " epoch %d", r.Epoch)
	add(r.Seq > 0, " seq %d", r.Seq)
	for _, h := range r.Holders {
		add(true, " holder %d (seq %d)", h.Node, h.Seq)
	}
	switch {
	case r.Kind <= wire.Localize || r.Kind == wire.Interest || r.Kind == wire.Wish || r.Kind == wire.Delta || r.Kind == wire.End:
		add(r.Origin != from, " of node %d", r.Origin)
		add(r.Hops > 1, " hop %d", r.Hops)
		add(r.Coming, " coming")
	case r.Kind == wire.Claim || r.Kind == wire.Release:
		add(true, " to node %d", r.Origin)
	}
	return b
}

// state shows what every node holds of a key, and what its home knows.
func (s *script) state(k godwit.Key) {
	for _, n := range s.c.nodes {
		st := n.holding(k)
		line := fmt.Sprintf("node %d: %s", n.id, st.role())
		if st.isMain() || st.isReplica() {
			line += fmt.Sprintf(" [%v]", sum(n.row(k)))
		}
		if d := n.sideAt(k); d != nil {
			switch st {
			case draining:
				line += " draining"
			case inFlight:
				line += fmt.Sprintf(", seq %d in flight", n.replicaAt(k).sent)
			case owner, tentative:
				m := n.mainAt(k)
				for h := n.firstHolder(m); h != nil; h = n.nextHolder(m, h) {
					line += fmt.Sprintf(", copy at %d", h.node)
				}
			}
			if d.queue != 0 {
				line += fmt.Sprintf(", %d wait", n.waits(d))
			}
		}
		if s.c.homes.Home(k) == n.id {
			line += ", home"
			if o, away := n.dir.Away(k); away {
				line += fmt.Sprintf(" (owner %d, epoch %d)", o.Node, o.Epoch)
			}
		}
		if st != absent || strings.Contains(line, "home") {
			s.printf("%s", line)
		}
	}
}

func sum(v []float32) (x float32) {
	for _, f := range v {
		x += f
	}
	return x
}
