package sim

import (
	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/filter"
	"github.com/godwit-ps/godwit/internal/vec"
	"github.com/godwit-ps/godwit/optim"
)

// The rows of a storm are vector clocks of its workers: a worker pushes 1 at its
// place, or, where the largest is kept, how often it has pushed. Those of the last
// table are set, too. The bits of relaxed are those of relaxed tables. Near says that some may be rounded where bytes bound the network: whole numbers up to 256 stay what
// they are. The first row of each is hot, or the nodes find out what is.
func stormModel(workers int, told bool, relaxed uint, near bool, b *stormBounds, l *stormFilters, filters ...godwit.Filter) *godwit.Model {
	var hot func(row uint64) float64
	if told {
		hot = func(row uint64) float64 {
			if row == 0 {
				return 1000
			}
			return 1
		}
	}
	tables := filter.On([]godwit.Table{
		{Name: "plain", Rows: 5, Dim: workers, Hot: hot},
		{Name: "counted", Rows: 3, Dim: workers, Rule: counting{}, Hot: hot},
		{Name: "long", Rows: 10, Dim: workers + 5, Rule: turned{}, Hot: hot},
		{Name: "most", Rows: 3, Dim: workers, Rule: optim.Max{}, Hot: hot},
		{Name: "set", Rows: 4, Dim: workers + 1, Rule: opposite{}, Hot: hot},
	}, filters...)
	tables[mostTable].Filters = nil
	for i := range tables {
		tables[i].Relaxed = relaxed>>i&1 != 0
	}
	if near {
		tables[0].Rule, tables[2].Rule = adding{}, turning{}
	}
	if l != nil {
		tables = l.on(tables)
	}
	if b != nil {
		b.bind(tables)
	}
	m, err := godwit.NewModel(tables...)
	if err != nil {
		panic(err) // never, but for filters: the numbers above are right
	}
	return m
}

const (
	mostTable   = 3
	setTable    = 4
	clockTables = 5
)

// counting is a rule with state: it counts the pushes of a row.
type counting struct{ godwit.Add }

func (counting) Name() string          { return "counting" }
func (counting) StateLen(int) int      { return 1 }
func (counting) InitState(s []float32) { s[0] = 0 }
func (c counting) Apply(v, s, p []float32) {
	c.Add.Apply(v, nil, p)
	s[0]++
}

// turned is a counting rule whose updates travel with the other sign, and
// whose copies may have older state: a row into which something came that was
// not packed, or twice, or whose state was overwritten, is wrong in the end.
type turned struct{ counting }

func (turned) Name() string { return "turned" }

func (turned) Pack(_, _, dv []float32)  { vec.Scale(dv, -1) }
func (turned) Merge(v, _, dv []float32) { vec.Sub(v, dv) }
func (turned) Fresh(dim int) int        { return dim }

// adding and turning are rules of tables that may be rounded.
type (
	adding  struct{ godwit.Add }
	turning struct{ turned }
)

func (adding) Name() string { return "adding" }
func (adding) Roundable()   {}

func (turning) Name() string { return "turning" }
func (turning) Roundable()   {}

// opposite is addition in rows that keep the opposite of their value: a pull that
// is not answered by the rule, or a set row that it did not see, is wrong.
type opposite struct{ godwit.Add }

func (opposite) Name() string              { return "opposite" }
func (opposite) Apply(v, _, p []float32)   { vec.Sub(v, p) }
func (opposite) Query(dst, v, _ []float32) { copy(dst, v); vec.Scale(dst, -1) }
func (opposite) Keep(v, _ []float32)       { vec.Scale(v, -1) }
