package protocol

import (
	"fmt"
	"testing"

	"github.com/godwit-ps/godwit/internal/restless"
	"github.com/godwit-ps/godwit/protocol/placement"
)

// Every rule of the package comment is needed: without it, storms fail. Rule R1
// is not here because storms hardly ever meet it; it has the scenario
// testdata/late-delta.txt.
func TestWithoutAnyOneRuleStormsFail(t *testing.T) {
	byName := func(name string) placement.Policy {
		p, err := placement.ByName(name)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	adaptive, relocate := byName("adaptive"), byName("relocate")
	for _, m := range []struct {
		rule string
		in   weather
	}{
		{"M1, freeze", weather{policy: relocate, broken: Broken{DropAtSend: true}}},
		{"M2, epochs", weather{policy: relocate, repeat: true, broken: Broken{IgnoreEpochs: true}}},
		{"M3, serve after drained", weather{policy: relocate, async: true, broken: Broken{ServeTentative: true}}},
		{"M3, comings first", weather{policy: relocate, async: true, broken: Broken{AnyOrder: true}}},
		{"R2, updates in flight stay", weather{policy: adaptive, broken: Broken{ForgetFlight: true}}},
		{"R3, no stale refresh", weather{policy: restless.Policy{}, broken: Broken{TakeStale: true}}},
		{"R4, freshen the asker", weather{policy: adaptive, broken: Broken{NoFreshen: true}}},
		{"R5, drain", weather{policy: adaptive, broken: Broken{DropEarly: true}}},
		{"R5, no writes", weather{policy: adaptive, broken: Broken{WriteDraining: true}}},
		{"R6, flush before a move", weather{policy: restless.Policy{}, broken: Broken{MoveBehind: true}}},
		{"questions go on", weather{policy: relocate, hints: true, broken: Broken{KeepQuestion: true}}},
	} {
		t.Run(m.rule, func(t *testing.T) {
			m.in.nodes = 4
			const most = 2000
			for seed := uint64(1); seed <= most; seed++ {
				if err := m.in.storm(seed); err != nil {
					t.Logf("seed %d: %v", seed, err)
					whole := m.in
					whole.broken = Broken{}
					if err := whole.storm(seed); err != nil {
						t.Fatalf("with the rule, too, seed %d: %v", seed, err)
					}
					return
				}
			}
			t.Errorf("%d storms did not notice", most)
		})
	}
}

// storm runs one storm. A broken rule may also end it by a panic.
func (w weather) storm(seed uint64) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return newStorm(seed, w).run()
}
