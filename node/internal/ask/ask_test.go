package ask

import (
	"fmt"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/filter"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/node/internal/link"
	"github.com/godwit-ps/godwit/node/internal/roomtest"
)

func TestMain(m *testing.M) { roomtest.Main(m) }

// pair returns two nodes, and a function that hands over what they have flushed, until nothing is
// left, and returns the first error.
func pair(t *testing.T) (nodes [2]*Asks, hosts [2]*host.Host, carry func() error) {
	var flushed [2]bool
	for i := range nodes {
		hosts[i] = host.New(host.Real())
		t.Cleanup(func() { hosts[i].Halt(); hosts[i].Join() })
		ls := link.New(hosts[i], godwit.NodeID(i), 2, 1, host.Usual, filter.Compress{}, host.NewBell())
		ls.Imagine(godwit.NodeID(1-i), func() { flushed[i] = true })
		nodes[i] = New(hosts[i], ls, hosts[i].Fail)
	}
	return nodes, hosts, func() error {
		for moved := true; moved; {
			moved = false
			for i, a := range nodes {
				if !flushed[i] {
					continue
				}
				flushed[i] = false
				there := nodes[1-i]
				for f := a.links.To(godwit.NodeID(1 - i)).Take(nil); len(f) > 0; f = a.links.To(godwit.NodeID(1 - i)).Take(nil) {
					moved = true
					if err := there.Came(godwit.NodeID(i), f); err != nil {
						return err
					}
				}
				there.links.To(godwit.NodeID(i)).Flush() // as who takes frames does
			}
		}
		flushed = [2]bool{}
		return nil
	}
}

func TestQuestionsAreAnsweredInTheirOrderAlsoThoseThatCameEarly(t *testing.T) {
	nodes, _, carry := pair(t)
	var got []string
	ask := func(i int) func() error {
		wait := nodes[1].Ask(0, fmt.Appendf(nil, "q%d", i), func(a []byte) { got = append(got, string(a)) })
		return func() error { return wait(roomtest.Background(t)) }
	}
	waits := []func() error{ask(0), ask(1)}
	roomtest.Must(t, carry())
	if len(got) > 0 || nodes[1].Open() != 2 {
		t.Fatalf("%q is answered, and nobody answers", got)
	}
	nodes[0].Serve(func(node int, q []byte) []byte { return fmt.Appendf(nil, "node %d: %s", node, q) })
	roomtest.Must(t, carry())
	waits = append(waits, ask(2))
	roomtest.Must(t, carry())
	for _, wait := range waits {
		roomtest.Must(t, wait())
	}
	if fmt.Sprint(got) != "[node 1: q0 node 1: q1 node 1: q2]" || nodes[1].Open() != 0 {
		t.Errorf("the answers are %q, %d questions are open", got, nodes[1].Open())
	}
	nodes[0].Serve(nil)
	ask(3)
	roomtest.Must(t, carry())
	if len(got) != 3 {
		t.Errorf("%q is answered, and nobody answers any more", got[3:])
	}
}

// A question that waits has memory of its own, and one that was answered does not wait.
func TestAQuestionIsAnsweredOnceAndAsItCame(t *testing.T) {
	nodes, _, carry := pair(t)
	nodes[1].Ask(0, []byte("early"), func([]byte) {})
	frame := nodes[1].links.To(0).Take(nil)
	roomtest.Must(t, nodes[0].Came(1, frame))
	clear(frame)
	var got []string
	answer := func(_ int, q []byte) []byte { got = append(got, string(q)); return nil }
	nodes[0].Serve(answer)
	nodes[1].Ask(0, []byte("late"), func([]byte) {})
	roomtest.Must(t, carry())
	nodes[0].Serve(answer)
	if fmt.Sprintf("%q", got) != `["early" "late"]` {
		t.Errorf("node 0 answered %q", got)
	}
}

func TestTooManyQuestionsAndAnswersToNothingAreErrors(t *testing.T) {
	nodes, _, carry := pair(t)
	for range most {
		nodes[1].Ask(0, nil, func([]byte) {})
	}
	roomtest.Must(t, carry())
	nodes[1].Ask(0, nil, func([]byte) {})
	if carry() == nil {
		t.Errorf("more than %d questions wait", most)
	}
	for _, x := range []wire.Ask{{Answer: true, Number: 77}, {Answer: true, Number: 1}} {
		if nodes[0].Came(1, x.Frame()) == nil {
			t.Errorf("%+v is taken, and nobody asked", x)
		}
	}
}

func TestAnAnswerThatNoFrameTakesEndsTheRunWhereItIsMade(t *testing.T) {
	nodes, hosts, carry := pair(t)
	answers := 0
	for _, n := range []int{wire.MaxAsk, wire.MaxAsk + 1} {
		nodes[0].Serve(func(int, []byte) []byte { return make([]byte, n) })
		nodes[1].Ask(0, nil, func([]byte) { answers++ })
		roomtest.Must(t, carry())
		if err := hosts[0].Err(); answers != 1 || (err != nil) != (n > wire.MaxAsk) {
			t.Errorf("an answer of %d bytes: %d came, and the run ends with %v", n, answers, err)
		}
	}
}

func TestWhoWaitsForAnAnswerHearsOfTheEndOfTheRun(t *testing.T) {
	nodes, hosts, _ := pair(t)
	wait := nodes[1].Ask(0, nil, func([]byte) {})
	cause := fmt.Errorf("node 0 is lost")
	hosts[1].Fail(cause)
	if err := wait(roomtest.Background(t)); err == nil {
		t.Error("an answer came")
	}
}
