package triples

import "testing"

func TestGraphsThatDifferHaveOtherFingerprints(t *testing.T) {
	graph := func() *Graph {
		return &Graph{
			Entities: []string{"a", "b"}, Relations: []string{"r"},
			Train: []Triple{{0, 0, 1}, {1, 0, 0}}, Valid: []Triple{{0, 0, 0}}, Test: []Triple{{1, 0, 1}},
		}
	}
	seen := map[string]string{graph().Fingerprint(): "nothing"}
	if seen[graph().Fingerprint()] == "" {
		t.Error("equal graphs differ")
	}
	for what, change := range map[string]func(g *Graph){
		"a name":               func(g *Graph) { g.Entities[1] = "c" },
		"a relation's name":    func(g *Graph) { g.Relations[0] = "s" },
		"a head":               func(g *Graph) { g.Train[0].S = 1 },
		"a tail":               func(g *Graph) { g.Test[0].O = 0 },
		"the order":            func(g *Graph) { g.Train[0], g.Train[1] = g.Train[1], g.Train[0] },
		"a triple in no split": func(g *Graph) { g.Valid = nil },
		"another split":        func(g *Graph) { g.Train, g.Valid = append(g.Train, g.Valid...), nil },
	} {
		g := graph()
		change(g)
		if other, ok := seen[g.Fingerprint()]; ok {
			t.Errorf("changing %s and %s gives the same fingerprint", what, other)
		}
		seen[g.Fingerprint()] = what
	}
}
