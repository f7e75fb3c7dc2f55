package sim

import (
	"context"
	"testing"

	"github.com/godwit-ps/godwit/internal/restless"
	"github.com/godwit-ps/godwit/protocol"
	"github.com/godwit-ps/godwit/protocol/placement"
)

// Storms notice when a rule of the protocol is switched off, and pass where it
// is on. Rules against repeated records are not here: the network repeats none.
func TestWithoutAnyOneRuleStormsFail(t *testing.T) {
	if racing {
		t.Skip("storms have one goroutine each")
	}
	for _, m := range []struct {
		rule   string
		in     Weather
		broken protocol.Broken
	}{
		{"M1, freeze", Weather{}, protocol.Broken{DropAtSend: true}},
		{"M3, serve after drained", Weather{}, protocol.Broken{ServeTentative: true}},
		{"M3, comings first", Weather{Policy: placement.RelocateAll}, protocol.Broken{AnyOrder: true}},
		{"R2, updates in flight stay", Weather{}, protocol.Broken{ForgetFlight: true}},
		{"R3, no stale refresh", Weather{Policy: restless.Policy{}}, protocol.Broken{TakeStale: true}},
		{"R4, freshen the asker", Weather{}, protocol.Broken{NoFreshen: true}},
		{"R5, drain", Weather{Policy: placement.Adaptive}, protocol.Broken{DropEarly: true}},
		{"R5, no writes while draining", Weather{}, protocol.Broken{WriteDraining: true}},
		{"R6, flush before a move", Weather{Policy: restless.Policy{}}, protocol.Broken{MoveBehind: true}},
		{"questions go on", Weather{Policy: placement.RelocateAll, Nodes: 5, Workers: 2, Steps: 100}, protocol.Broken{KeepQuestion: true}},
	} {
		t.Run(m.rule, func(t *testing.T) {
			const most = 2000
			whole := m.in
			m.in.Broken = m.broken
			for seed := uint64(1); seed <= most; seed++ {
				r, err := Storm(context.Background(), seed, m.in)
				if err == nil {
					continue
				}
				t.Logf("seed %d (%s): %.300v", seed, r.Weather, err)
				if r, err := Storm(context.Background(), seed, whole); err != nil {
					t.Errorf("with the rule, too, seed %d (%s): %v", seed, r.Weather, err)
				}
				return
			}
			t.Errorf("%d storms did not notice", most)
		})
	}
}
