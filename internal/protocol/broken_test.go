package protocol

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/godwit-ps/godwit/internal/restless"
	"github.com/godwit-ps/godwit/placement"
)

// mutations are all rules that Broken can switch off, each with storms that
// meet what the rule is for.
var mutations = []struct {
	rule string
	off  Broken
	in   weather
}{
	{"routing, two hints at most", Broken{HintsForEver: true}, weather{policy: placement.RelocateAll, hints: true, async: true}},
	{"routing, questions go on", Broken{KeepQuestion: true}, weather{policy: placement.RelocateAll, hints: true, async: true, repeat: true}},
	{"M1, freeze", Broken{DropAtSend: true}, weather{policy: placement.RelocateAll}},
	{"M1, serve once", Broken{ServeFrozen: true}, weather{policy: placement.RelocateAll}},
	{"M2, claims of greater epochs only", Broken{IgnoreEpochs: true}, weather{policy: placement.RelocateAll, repeat: true}},
	{"M2, releases of this move only", Broken{AnyRelease: true}, weather{policy: placement.RelocateAll, repeat: true}},
	{"M2, ends of this move only", Broken{AnyDrained: true}, weather{policy: placement.RelocateAll, repeat: true}},
	{"M3, serve after drained", Broken{ServeTentative: true}, weather{policy: placement.RelocateAll, async: true}},
	{"M3, comings first", Broken{AnyOrder: true}, weather{policy: placement.RelocateAll, async: true}},
	{"M3, own older ones first", Broken{OvertakeOwn: true}, weather{policy: placement.RelocateAll, async: true}},
	{"M4, move on after drained", Broken{MoveTentative: true}, weather{policy: placement.RelocateAll}},
	{"one update in flight", Broken{ManyInFlight: true}, weather{policy: placement.Adaptive}},
	{"R1, take updates once", Broken{TakeTwice: true}, weather{policy: placement.Adaptive, repeat: true}},
	{"R1, end a replica once", Broken{EndAny: true}, weather{policy: placement.Adaptive, repeat: true}},
	{"R2, updates in flight stay", Broken{ForgetFlight: true}, weather{policy: placement.Adaptive}},
	{"R2, updates not sent stay", Broken{ForgetUnsent: true}, weather{policy: placement.Adaptive}},
	{"R3, no stale refresh", Broken{TakeStale: true}, weather{policy: restless.Policy{}}},
	{"R3, no refresh for a former replica", Broken{TakeFormer: true}, weather{policy: restless.Policy{}, hints: true, async: true, repeat: true}},
	{"R3, the whole row after a move", Broken{KeepVersions: true}, weather{policy: restless.Policy{}, async: true, pauses: true}},
	{"R4, freshen the asker", Broken{NoFreshen: true}, weather{policy: placement.Adaptive}},
	{"R5, drain", Broken{DropEarly: true}, weather{policy: placement.Adaptive}},
	{"R5, no writes while draining", Broken{WriteDraining: true}, weather{policy: placement.Adaptive}},
	{"R6, holders first, then the move", Broken{MoveBehind: true}, weather{policy: restless.Policy{}, pauses: true}},
	{"R7, a set is the update in flight", Broken{LooseSet: true}, weather{policy: placement.Adaptive}},
	{"R8, copies meet as the rule has it", Broken{AddPacked: true}, weather{policy: placement.Adaptive}},
	{"L1, copies of relaxed tables only", Broken{CopyStrict: true}, weather{policy: placement.Adaptive, learn: true}},
	{"WaitSync waits until updates are taken", Broken{FlushAtSend: true}, weather{policy: placement.Adaptive}},
}

// Every rule of the package comment is needed: without it, storms fail, and
// soon. With -v, the test prints the seeds for docs/simulation.md.
func TestWithoutAnyOneRuleStormsFail(t *testing.T) {
	const most = 20_000 // the rarest takes some thousands
	for _, m := range mutations {
		t.Run(m.rule, func(t *testing.T) {
			m.in.nodes = 4
			without := m.in
			without.broken = m.off
			for seed := uint64(1); seed <= most; seed++ {
				err := without.storm(seed)
				if err == nil {
					continue
				}
				t.Logf("seed %d: %.200v", seed, err)
				if err := m.in.storm(seed); err != nil {
					t.Errorf("with the rule, too, seed %d: %v", seed, err)
				}
				return
			}
			t.Errorf("%d storms did not notice", most)
		})
	}
}

func TestEveryRuleThatCanBeSwitchedOffIs(t *testing.T) {
	tested := map[string]bool{}
	for _, m := range mutations {
		off := reflect.ValueOf(m.off)
		for i := range off.NumField() {
			if off.Field(i).Bool() {
				tested[off.Type().Field(i).Name] = true
			}
		}
	}
	for i := range reflect.TypeFor[Broken]().NumField() {
		if name := reflect.TypeFor[Broken]().Field(i).Name; !tested[name] {
			t.Errorf("no storm is without the rule that Broken.%s switches off", name)
		}
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
