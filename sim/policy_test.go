package sim

import (
	"context"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit/placement"
)

// astray is a policy that relocates keys to a node that there is not.
type astray struct{}

func (astray) Name() string                { return "astray" }
func (astray) OnIntent(bool) placement.Ask { return placement.Copy }
func (astray) Everywhere(bool) bool        { return false }
func (astray) Decide(placement.Situation) placement.Action {
	return placement.Action{Verb: placement.Relocate, To: 77}
}

func TestAPolicyThatGoesAstrayEndsARunTheSameWayEachTime(t *testing.T) {
	said := func() string {
		_, err := Storm(context.Background(), 3, StormConfig{Policy: astray{}, Nodes: 3, Workers: 2})
		if err == nil {
			t.Fatal("the run ended well")
		}
		return err.Error()
	}
	first := said()
	if !strings.Contains(first, `policy "astray" relocates key `) || !strings.Contains(first, "to node 77") {
		t.Errorf("it ended with: %s", first)
	}
	if again := said(); again != first {
		t.Errorf("the second time it ended with: %s, the first time with: %s", again, first)
	}
}
