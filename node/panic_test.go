package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/coord/mem"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/transport/tcp"
)

// faulty is a rule that panics.
type faulty struct{ godwit.Add }

func (faulty) Apply(value, _, push []float32) {
	if push[0] < 0 {
		panic("a defect of the rule")
	}
	value[0] += push[0]
}

// A rule that panics does so in the goroutine of the worker that pushes, who may go on, as may others; and the node can be closed.
func TestAPanicOfARuleLocksNobodyOut(t *testing.T) {
	ctx := background(t)
	m := modelOf(t, godwit.Table{Name: "t", Rows: 10, Dim: 1, Rule: faulty{}})
	c, err := Local(ctx, 1, Config{Model: m, Workers: 2})
	must(t, err)
	a, b := c.Nodes[0].Worker(0), c.Nodes[0].Worker(1)
	k, v := []godwit.Key{3}, make([]float32, 1)
	for _, before := range []float32{0, 1} { // the row is to be made, and is there
		func() {
			defer func() {
				if p := recover(); p != "a defect of the rule" {
					t.Errorf("the push ends with %v", p)
				}
			}()
			_ = a.Push(ctx, k, []float32{-1})
		}()
		must(t, b.Pull(ctx, k, v))
		if v[0] != before {
			t.Errorf("the row is %v, want %v", v, before)
		}
		must(t, a.Push(ctx, k, []float32{1}))
	}
	short, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	must(t, c.Close(short))
}

// A slow session says that it has failed only when the test lets it.
type slowly struct {
	coord.Session
	until <-chan struct{}
}

func (h slowly) Fail(err error) {
	h.Session.Fail(err)
	select {
	case <-h.until:
	case <-time.After(patience):
	}
}

// A rule that panics at another node than the worker's ends that process. The other nodes are told which function panicked, and with what,
// and not only that a node was lost.
func TestAPanicOfARuleElsewhereIsToldToAllNodes(t *testing.T) {
	const env = "GODWIT_TEST_PANIC"
	if os.Getenv(env) == "" {
		self, err := os.Executable()
		must(t, err)
		c := exec.CommandContext(background(t), self, "-test.run=^TestAPanicOfARuleElsewhereIsToldToAllNodes$")
		c.Env = append(os.Environ(), env+"=1")
		out, err := c.CombinedOutput()
		if err == nil {
			t.Error("the process goes on")
		}
		for _, want := range []string{
			"the push ends: worker 0.0: push of key", "node 1 (", "node lost: panic in github.com/godwit-ps/godwit/node.faulty.Apply (panic_test.go:", "): a defect of the rule (the output",
			"panic: a defect of the rule", // Go's own word
		} {
			if !strings.Contains(string(out), want) {
				t.Errorf("%q is not in the output:\n%s", want, out)
			}
		}
		return
	}
	ctx := background(t)
	m := modelOf(t, godwit.Table{Name: "t", Rows: 100, Dim: 1, Rule: faulty{}})
	hub, err := mem.New(coord.Config{Run: "test", Nodes: 2})
	must(t, err)
	printed := make(chan struct{})
	nodes := make([]*Node, 2)
	var wg sync.WaitGroup
	for range nodes {
		wg.Go(func() {
			l, err := tcp.Network{}.Listen("127.0.0.1:0")
			must(t, err)
			s, err := hub.Join(ctx, l.Addr())
			must(t, err)
			n, err := Start(ctx, Config{Model: m, Policy: placement.Static, Workers: 1, Run: "test", Session: slowly{s, printed}, Network: tcp.Network{}, Listener: l})
			must(t, err)
			nodes[s.Self()] = n
		})
	}
	wg.Wait()
	err = nodes[0].Worker(0).Push(ctx, homedAt(t, nodes[0], 1, 1), []float32{-1})
	fmt.Println("the push ends:", err)
	if !errors.Is(err, godwit.ErrPeerLost) {
		t.Errorf("which is no %v", godwit.ErrPeerLost)
	}
	close(printed)
	<-ctx.Done() // the process ends before
}
