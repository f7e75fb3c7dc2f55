package placement

import (
	"slices"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit"
)

// The owner is node 0 in every situation.
func TestPoliciesDecide(t *testing.T) {
	const none = godwit.NoNode
	move := func(to godwit.NodeID) Action { return Action{Verb: Relocate, To: to} }
	keep, copy := Action{Verb: Keep}, Action{Verb: Replicate}
	others := func(ns ...godwit.NodeID) []godwit.NodeID { return ns }
	names := []string{"adapm", "adaptive", "adaptive-move-only", "adaptive-replicate-only", "nonuniform", "relocate", "replicate", "stale", "static"}
	foreign := func(name string) bool { return name == "quorum" } // that of the example
	if there := slices.DeleteFunc(Names(), foreign); !slices.Equal(there, names) {
		t.Fatalf("there are %v, the table is made for %v", there, names)
	}
	for _, c := range []struct {
		when string
		s    Situation
		want [9]Action // in the order of names
	}{
		{"one node wants it", Situation{Asked: Copy, Asker: 1, Others: others(1)},
			[9]Action{move(1), move(1), move(1), copy, copy, keep, copy, copy, keep}},
		{"one node wants it, which has never moved", Situation{Unmoved: true, Asked: Copy, Asker: 1, Others: others(1)},
			[9]Action{move(1), copy, move(1), copy, copy, keep, copy, copy, keep}},
		{"an update of the only copy came to a key that has never moved", Situation{Unmoved: true, Asker: none, Others: others(1)},
			[9]Action{move(1), move(1), move(1), keep, keep, keep, copy, keep, keep}},
		{"one node wants it, and so does the owner", Situation{SelfWants: true, Asked: Copy, Asker: 1, Others: others(1)},
			[9]Action{copy, copy, keep, copy, copy, keep, copy, copy, keep}},
		{"two nodes want it", Situation{Asked: Copy, Asker: 2, Others: others(1, 2)},
			[9]Action{copy, copy, keep, copy, copy, keep, copy, copy, keep}},
		{"three nodes want it", Situation{SelfWants: true, Asked: Copy, Asker: 2, Others: others(1, 2)},
			[9]Action{copy, copy, keep, copy, copy, keep, copy, copy, keep}},
		{"a hot key is wanted", Situation{Hot: true, Asked: Copy, Asker: 1, Others: others(1)},
			[9]Action{move(1), move(1), move(1), copy, copy, keep, copy, copy, keep}},
		{"a worker localizes it", Situation{Asked: Move, Asker: 1},
			[9]Action{move(1), move(1), move(1), keep, move(1), move(1), copy, keep, keep}},
		{"a worker localizes it, the owner wants it", Situation{SelfWants: true, Asked: Move, Asker: 1},
			[9]Action{keep, keep, move(1), keep, move(1), move(1), copy, keep, keep}},
		{"a worker localizes it, another node has a copy", Situation{Asked: Move, Asker: 1, Others: others(2)},
			[9]Action{move(2), move(2), move(1), keep, move(1), move(1), copy, keep, keep}},
		{"a worker localizes a hot key", Situation{Hot: true, Asked: Move, Asker: 1},
			[9]Action{move(1), move(1), move(1), keep, copy, move(1), copy, keep, keep}},
		{"an interest ended, one is left", Situation{Asker: none, Others: others(2)},
			[9]Action{move(2), move(2), move(2), keep, keep, keep, copy, keep, keep}},
		{"an interest ended, one and the owner's are left", Situation{SelfWants: true, Asker: none, Others: others(2)},
			[9]Action{keep, keep, keep, keep, keep, keep, copy, keep, keep}},
		{"an interest ended, two are left", Situation{Asker: none, Others: others(2, 3)},
			[9]Action{keep, keep, keep, keep, keep, keep, copy, keep, keep}},
		{"the last interest ended", Situation{Asker: none},
			[9]Action{keep, keep, keep, keep, keep, keep, copy, keep, keep}},
	} {
		for i, name := range names {
			p, err := ByName(name)
			if err != nil {
				t.Fatal(err)
			}
			if got := p.Decide(c.s); got != c.want[i] {
				t.Errorf("%s, %s: %+v, want %+v", name, c.when, got, c.want[i])
			}
		}
	}
}

func TestPoliciesAskAndSpread(t *testing.T) {
	for _, c := range []struct {
		name                      string
		ask, askHot               Ask
		everywhere, everywhereHot bool
	}{
		{"adapm", Copy, Copy, false, false},
		{"adaptive", Copy, Copy, false, false},
		{"adaptive-move-only", Move, Move, false, false},
		{"adaptive-replicate-only", Copy, Copy, false, false},
		{"nonuniform", Move, Nothing, false, true},
		{"relocate", Move, Move, false, false},
		{"replicate", Nothing, Nothing, true, true},
		{"stale", Copy, Copy, false, false},
		{"static", Nothing, Nothing, false, false},
	} {
		p, err := ByName(c.name)
		if err != nil {
			t.Fatal(err)
		}
		if p.Name() != c.name {
			t.Errorf("%s calls itself %s", c.name, p.Name())
		}
		if p.OnIntent(false) != c.ask || p.OnIntent(true) != c.askHot {
			t.Errorf("%s asks for %d, %d if hot, want %d, %d", c.name, p.OnIntent(false), p.OnIntent(true), c.ask, c.askHot)
		}
		if p.Everywhere(false) != c.everywhere || p.Everywhere(true) != c.everywhereHot {
			t.Errorf("%s holds everywhere: %v, %v if hot, want %v, %v", c.name, p.Everywhere(false), p.Everywhere(true), c.everywhere, c.everywhereHot)
		}
	}
}

func TestAnUnknownPolicyIsAnErrorThatListsTheKnown(t *testing.T) {
	_, err := ByName("magic")
	if err == nil || !strings.Contains(err.Error(), `"magic"`) || !strings.Contains(err.Error(), "adaptive") {
		t.Errorf("error %v", err)
	}
}

// Values are fetched for as many steps ahead as they take to come, and not for as many as somebody says.
func TestHowFarStaticFetchesAheadIsNotChosen(t *testing.T) {
	if p, err := ByName("static(ahead=5)"); err == nil || !strings.Contains(err.Error(), "ahead=5 is not 1") {
		t.Errorf("static(ahead=5) is %v, with error %v", p, err)
	}
}

func TestSomePoliciesFetchAhead(t *testing.T) {
	for name, fetches := range map[string]bool{"adaptive": true, "static(ahead=1)": true, "static": false} {
		p, err := ByName(name)
		if err != nil {
			t.Fatal(err)
		}
		if a := p.(AheadPolicy); a.FetchesAhead() != fetches || p.Name() != name {
			t.Errorf("%s, by its name %s, fetches ahead: %v", name, p.Name(), a.FetchesAhead())
		}
	}
}

func TestWhichPoliciesMakeReplicas(t *testing.T) {
	for name, want := range map[string]bool{"static": false, "relocate": false, "adaptive-move-only": false, "adaptive": true, "adaptive-replicate-only": true, "adapm": true, "replicate": true, "nonuniform": true, "stale": true} {
		p, err := ByName(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := Replicates(p); got != want {
			t.Errorf("%s makes replicas: %v, want %v", name, got, want)
		}
	}
}

// plain is a policy that knows nothing of what some policies do beside deciding.
type plain struct{ Policy }

func TestWhatAPolicyDoesNotSayItDoesNotDo(t *testing.T) {
	for name, want := range map[string]struct{ ahead, learns, reads bool }{
		"static": {}, "static(ahead=1)": {ahead: true}, "adaptive": {ahead: true, learns: true}, "stale": {reads: true}, "replicate": {},
	} {
		p, err := ByName(name)
		if err != nil {
			t.Fatal(err)
		}
		_, reads := OnRead(p)
		if got := (struct{ ahead, learns, reads bool }{FetchesAhead(p), Learns(p), reads}); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
		if keep, reads := OnRead(plain{p}); FetchesAhead(plain{p}) || Learns(plain{p}) || reads || keep != 0 {
			t.Errorf("%s, but for what it decides: it fetches ahead, learns, or asks for what it reads", name)
		}
	}
}
