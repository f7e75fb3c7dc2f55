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
	for _, m := range []struct {
		rule   string
		policy placement.Policy
		broken protocol.Broken
	}{
		{"M1, freeze", nil, protocol.Broken{DropAtSend: true}},
		{"M3, serve after drained", nil, protocol.Broken{ServeTentative: true}},
		{"M3, comings first", placement.RelocateAll, protocol.Broken{AnyOrder: true}},
		{"R2, updates in flight stay", nil, protocol.Broken{ForgetFlight: true}},
		{"R3, no stale refresh", restless.Policy{}, protocol.Broken{TakeStale: true}},
		{"R4, freshen the asker", nil, protocol.Broken{NoFreshen: true}},
		{"R5, drain", placement.Adaptive, protocol.Broken{DropEarly: true}},
		{"R5, no writes while draining", nil, protocol.Broken{WriteDraining: true}},
		{"R6, flush before a move", restless.Policy{}, protocol.Broken{MoveBehind: true}},
		{"questions go on", placement.RelocateAll, protocol.Broken{KeepQuestion: true}},
	} {
		t.Run(m.rule, func(t *testing.T) {
			const most = 2000
			for seed := uint64(1); seed <= most; seed++ {
				r, err := Storm(context.Background(), seed, Weather{Policy: m.policy, Broken: m.broken})
				if err == nil {
					continue
				}
				t.Logf("seed %d (%s): %.300v", seed, r.Weather, err)
				if r, err := Storm(context.Background(), seed, Weather{Policy: m.policy}); err != nil {
					t.Errorf("with the rule, too, seed %d (%s): %v", seed, r.Weather, err)
				}
				return
			}
			t.Errorf("%d storms did not notice", most)
		})
	}
}
