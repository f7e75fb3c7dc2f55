package triples

import (
	"fmt"
	"hash/fnv"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// smallSpec has a little of everything.
func smallSpec() Spec {
	s := DefaultSpec()
	s.Entities, s.Triples = 400, 8000
	s.Noise, s.Valid, s.Test = 0.05, 0.1, 0.1
	return s
}

func generate(t testing.TB, s Spec) *Graph {
	t.Helper()
	g, err := Generate(s)
	if err != nil {
		t.Fatalf("%+v: %v", s, err)
	}
	return g
}

func TestEqualSpecsGiveEqualGraphs(t *testing.T) {
	s := smallSpec()
	a, b := generate(t, s), generate(t, s)
	if !reflect.DeepEqual(a, b) {
		t.Error("two graphs of one spec differ")
	}
	s.Seed++
	if reflect.DeepEqual(a, generate(t, s)) {
		t.Error("two seeds give one graph")
	}
}

// A change of this sum changes every figure ever reported for generated graphs.
func TestTheDefaultGraphIsTheSameForEver(t *testing.T) {
	g, h := generate(t, DefaultSpec()), fnv.New64a()
	fmt.Fprint(h, g.Entities, g.Relations, g.Train, g.Valid, g.Test)
	if got, want := h.Sum64(), uint64(0x94c0e5bf9f4d4a5c); got != want {
		t.Errorf("sum %#x, want %#x", got, want)
	}
}

func TestSplitsKeepTheirPromises(t *testing.T) {
	specs := []Spec{smallSpec(), DefaultSpec()}
	for seed := range uint64(8) {
		s := smallSpec()
		s.Seed, s.Exponent, s.Relations = 100+seed, float64(seed)/4, 1+int(seed)*4
		s.Valid, s.Test = 0.3, 0.3
		if s.Relations == 1 {
			s.Triples = 3000
		}
		specs = append(specs, s)
	}
	for _, s := range specs {
		g := generate(t, s)
		st := g.Stats()
		if st.Duplicates+st.Leaked+st.UnseenEntities+st.UnseenRelations > 0 {
			t.Errorf("%+v: %v", s, st)
		}
		if st.Entities != s.Entities || st.Relations != s.Relations || st.Train+st.Valid+st.Test != s.Triples {
			t.Errorf("%+v: %v", s, st)
		}
		for i, held := range [][]Triple{g.Valid, g.Test} {
			want := []float64{s.Valid, s.Test}[i] * float64(s.Triples)
			if math.Abs(float64(len(held))-want) > 2+0.05*want {
				t.Errorf("%+v: %s has %d triples, want about %.0f", s, splitNames[1+i], len(held), want)
			}
		}
	}
}

func TestNoHeldOutTripleIsKnownTheOtherWayRound(t *testing.T) {
	g := generate(t, smallSpec())
	where := map[Triple]int{}
	for i, ts := range g.splits() {
		for _, x := range *ts {
			where[x] = i
		}
	}
	relation := map[string]uint32{}
	for i, name := range g.Relations {
		relation[name] = uint32(i)
	}
	twins, alone := 0, 0
	for x, split := range where {
		name := g.Relations[x.R]
		switch {
		case strings.HasPrefix(name, "inverse-a"):
			name = strings.Replace(name, "-a-", "-b-", 1)
		case strings.HasPrefix(name, "inverse-b"):
			name = strings.Replace(name, "-b-", "-a-", 1)
		case !strings.HasPrefix(name, "symmetric"):
			continue
		}
		other, ok := where[Triple{x.O, relation[name], x.S}]
		switch {
		case !ok:
			alone++ // noise
		case other != split:
			t.Fatalf("%v is in %s, the same the other way round in %s", x, splitNames[split], splitNames[other])
		default:
			twins++
		}
	}
	if twins < 10*alone {
		t.Errorf("%d triples of symmetric and inverse relations hold both ways, %d do not; want the planted ones to", twins, alone)
	}
}

func TestRelationsKeepToTheirPatterns(t *testing.T) {
	s := smallSpec()
	s.Noise = 0
	g := generate(t, s)
	all := slices.Concat(g.Train, g.Valid, g.Test)
	known, heads := map[Triple]bool{}, map[[2]uint32]map[uint32]bool{}
	for _, x := range all {
		known[x] = true
		at := [2]uint32{x.R, x.O}
		if heads[at] == nil {
			heads[at] = map[uint32]bool{}
		}
		heads[at][x.S] = true
	}
	for _, x := range all {
		name := g.Relations[x.R]
		if strings.HasPrefix(name, "ordered") && known[Triple{x.O, x.R, x.S}] {
			t.Fatalf("%s holds both ways between %d and %d", name, x.S, x.O)
		}
		if strings.HasPrefix(name, "one-to-many") && len(heads[[2]uint32{x.R, x.O}]) != 1 {
			t.Fatalf("%s leads from %d entities to entity %d", name, len(heads[[2]uint32{x.R, x.O}]), x.O)
		}
	}
}

func TestPopularityFollowsTheExponent(t *testing.T) {
	for _, want := range []float64{0, 0.5, 1, 1.25} {
		s := DefaultSpec()
		s.Exponent, s.Seed = want, 3
		g := generate(t, s)
		n := make([]float64, s.Entities)
		for _, ts := range g.splits() {
			for _, x := range *ts {
				n[x.S]++
				n[x.O]++
			}
		}
		slices.SortFunc(n, func(a, b float64) int { return int(b - a) })
		// The slope of log frequency over log (rank + shift), by least squares,
		// weighted as if ranks were evenly spaced in the logarithm. The rarer half
		// is left out: its counts are small and sorting them stretches their ends.
		var w, x, y, xx, xy float64
		for i, c := range n[:s.Entities/2] {
			u, v := math.Log(float64(i+1)+s.shift()), math.Log(c)
			k := 1 / (float64(i+1) + s.shift())
			w, x, y, xx, xy = w+k, x+k*u, y+k*v, xx+k*u*u, xy+k*u*v
		}
		got := -(w*xy - x*y) / (w*xx - x*x)
		t.Logf("exponent %.2f: fitted %.3f", want, got)
		if math.Abs(got-want) > 0.15 {
			t.Errorf("fitted exponent %.3f, want %.2f ± 0.15", got, want)
		}
	}
}

func TestABadSpecIsRefusedByItsField(t *testing.T) {
	for want, change := range map[string]func(*Spec){
		"Spec.Entities is 49":  func(s *Spec) { s.Entities = 49 },
		"Spec.Relations is 0":  func(s *Spec) { s.Relations = 0 },
		"Spec.Triples is 10":   func(s *Spec) { s.Triples = 10 },
		"Spec.Exponent is NaN": func(s *Spec) { s.Exponent = math.NaN() },
		"Spec.Exponent is 2.5": func(s *Spec) { s.Exponent = 2.5 },
		"Spec.Noise is -0.1":   func(s *Spec) { s.Noise = -0.1 },
		"Spec.Valid is 0.9":    func(s *Spec) { s.Valid = 0.9 },
		"Spec.Test is +Inf":    func(s *Spec) { s.Test = math.Inf(1) },
		"too few to give each": func(s *Spec) { s.Triples = 5 * s.Entities; s.Relations = 5000 },
		"found no place among": func(s *Spec) { s.Entities, s.Relations, s.Triples = 50, 1, 3000 },
		"no place for noise":   func(s *Spec) { s.Entities, s.Relations, s.Triples, s.Noise = 50, 1, 2000, 0.5 },
	} {
		s := DefaultSpec()
		change(&s)
		if _, err := Generate(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one that says %q", err, want)
		}
	}
	if _, err := Generate(Spec{}); err == nil || !strings.Contains(err.Error(), "Spec.Entities is 0") {
		t.Errorf("the zero spec: %v", err)
	}
}

func TestTheDefaultGraphCanBeLearnedButNotGuessed(t *testing.T) {
	if testing.Short() {
		t.Skip("trains for some seconds")
	}
	g := generate(t, DefaultSpec())
	queries := g.Test[:500]
	global, local := mrr(g, queries, popularity(g, false)), mrr(g, queries, popularity(g, true))
	m := newComplEx(g, 32, 1)
	before := mrr(g, queries, m.scores)
	for range 4 {
		m.epoch(g, 15)
	}
	after := mrr(g, queries, m.scores)
	t.Logf("MRR: untrained %.4f, most popular %.3f, most popular of the relation %.3f, ComplEx after 4 epochs %.3f", before, global, local, after)
	if before > 0.01 || global > 0.15 || local > 0.15 || after < 0.5 {
		t.Error("want untrained <= 0.01, popularity <= 0.15, trained >= 0.5")
	}
}

func BenchmarkGenerate(b *testing.B) {
	for b.Loop() {
		generate(b, DefaultSpec())
	}
}
