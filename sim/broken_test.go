package sim

import (
	"context"
	"testing"

	"github.com/godwit-ps/godwit/internal/protocol"
	"github.com/godwit-ps/godwit/internal/restless"
	"github.com/godwit-ps/godwit/placement"
)

// Storms notice when a rule of the protocol is switched off, and pass where it
// is on. Rules against words that come again or very late are not here: this
// network repeats none, as TCP does not. Storms of package protocol do, and miss
// every rule.
func TestWithoutAnyOneRuleStormsFail(t *testing.T) {
	for _, m := range []struct {
		rule   string
		in     StormConfig
		broken protocol.Broken
	}{
		{"two hints at most", StormConfig{Policy: placement.RelocateAll, Nodes: 4, Workers: 3}, protocol.Broken{HintsForEver: true}},
		{"questions go on", StormConfig{Policy: placement.RelocateAll, Nodes: 5, Workers: 3}, protocol.Broken{KeepQuestion: true}},
		{"M1, freeze", StormConfig{}, protocol.Broken{DropAtSend: true}},
		{"M1, serve once", StormConfig{}, protocol.Broken{ServeFrozen: true}},
		{"M3, serve after drained", StormConfig{Policy: placement.RelocateAll}, protocol.Broken{ServeTentative: true}},
		{"M3, comings first", StormConfig{Policy: placement.RelocateAll}, protocol.Broken{AnyOrder: true}},
		{"M3, own older ones first", StormConfig{Policy: placement.RelocateAll}, protocol.Broken{OvertakeOwn: true}},
		{"M4, move on after drained", StormConfig{}, protocol.Broken{MoveTentative: true}},
		{"one update in flight", StormConfig{}, protocol.Broken{ManyInFlight: true}},
		{"R2, updates in flight stay", StormConfig{}, protocol.Broken{ForgetFlight: true}},
		{"R2, updates not sent stay", StormConfig{}, protocol.Broken{ForgetUnsent: true}},
		{"R3, no stale refresh", StormConfig{Policy: restless.Policy{}}, protocol.Broken{TakeStale: true}},
		{"R4, freshen the asker", StormConfig{}, protocol.Broken{NoFreshen: true}},
		{"L1, copies of relaxed tables only", StormConfig{Policy: placement.Adaptive}, protocol.Broken{CopyStrict: true}},
		{"R5, drain", StormConfig{Policy: placement.Adaptive}, protocol.Broken{DropEarly: true}},
		{"R5, no writes while draining", StormConfig{}, protocol.Broken{WriteDraining: true}},
		{"R6, holders first, then the move", StormConfig{Policy: restless.Policy{}}, protocol.Broken{MoveBehind: true}},
		{"R7, a set is the update in flight", StormConfig{}, protocol.Broken{LooseSet: true}},
		{"R8, copies meet as the rule has it", StormConfig{}, protocol.Broken{AddPacked: true}},
		{"WaitSync waits until updates are taken", StormConfig{}, protocol.Broken{FlushAtSend: true}},
	} {
		t.Run(m.rule, func(t *testing.T) {
			whole := m.in
			m.in.Broken = m.broken
			stormsNotice(t, 2000, whole, m.in)
		})
	}
}

// stormsNotice holds that one of the first storms fails with a rule switched off, and not without.
func stormsNotice(t *testing.T, most uint64, whole, broken StormConfig) {
	t.Helper()
	for seed := uint64(1); seed <= most; seed++ {
		r, err := Storm(context.Background(), seed, broken)
		if err == nil {
			continue
		}
		t.Logf("seed %d (%s): %.300v", seed, r.Config, err)
		if r, err := Storm(context.Background(), seed, whole); err != nil {
			t.Errorf("with the rule, too, seed %d (%s): %v", seed, r.Config, err)
		}
		return
	}
	t.Errorf("%d storms did not notice", most)
}
