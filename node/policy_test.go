package node

import (
	"errors"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/placement"
)

// astray is a policy that moves keys to a node that there is not.
type astray struct{ ask placement.Ask }

func (astray) Name() string                  { return "astray" }
func (a astray) OnIntent(bool) placement.Ask { return a.ask }
func (astray) Everywhere(bool) bool          { return false }
func (a astray) Decide(s placement.Situation) placement.Action {
	return placement.Action{Verb: placement.Relocate, To: 77}
}

func TestAPolicyThatMovesKeysToNoNodeEndsTheRun(t *testing.T) {
	for _, ask := range []placement.Ask{placement.Copy, placement.Move} {
		c := local(t, 2, Config{Model: lengths(t), Workers: 1, Policy: astray{ask}})
		ctx := background(t)
		w := c.Nodes[0].Worker(0)
		k := homedAt(t, c.Nodes[0], 1, 1)
		must(t, w.Intent(k, 0, 1))
		for _, n := range []*Node{c.Nodes[1], c.Nodes[0]} { // first the owner
			select {
			case <-n.Done():
			case <-ctx.Done():
				t.Fatalf("the run goes on: %v", ctx.Err())
			}
		}
		for _, want := range []string{`policy "astray"`, "key ", "to node 77", "no node of this run"} {
			if err := c.Nodes[1].Err(); !strings.Contains(err.Error(), want) {
				t.Errorf("the owner's error does not say %s: %v", want, err)
			}
		}
		err := w.Pull(ctx, k, make([]float32, w.Model().Dim(k[0])))
		if !errors.Is(err, coord.ErrFailed) || !errors.Is(err, godwit.ErrPeerLost) || !strings.Contains(err.Error(), `policy "astray"`) {
			t.Errorf("the other node's operation: %v", err)
		}
	}
}
