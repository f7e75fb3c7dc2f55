package godwit_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/optim"
)

func TestAKeyOfARowThatDoesNotExistPanicsInWords(t *testing.T) {
	m, err := godwit.NewModel(godwit.Table{Name: "a", Rows: 100, Dim: 1}, godwit.Table{Name: "b", Rows: 100, Dim: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		table int
		row   uint64
		want  string
	}{
		{0, 100, `table "a" has no row 100, it has rows 0 … 99`},
		{0, math.MaxUint64, `table "a" has no row 18446744073709551615`},
		{1, 120, `table "b" has no row 120`},
		{2, 0, "there is no table 2, the model has 2"},
		{-1, 0, "there is no table -1"},
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, x.want) {
					t.Errorf("row %d of table %d: panics with %q, want %q", x.row, x.table, got, x.want)
				}
			}()
			m.Key(x.table, x.row)
		}()
	}
	if k := m.Key(1, 99); k != 199 {
		t.Errorf("row 99 of table 1 has key %d, want 199", k)
	}
}

func TestAModelRefusesRulesThatCannotLearn(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for want, r := range map[string]godwit.Rule{
		"lr=0 must be above 0":                 optim.SGD{},
		"lr=-1 must be above 0":                optim.AdaGrad{LR: -1},
		"lr=NaN must be above 0":               optim.RowAdaGrad{LR: nan},
		"lr=+Inf must be above 0":              optim.ProximalSGD{LR: inf},
		"eps=-1 must not be negative":          optim.AdaGrad{LR: 1, Eps: -1},
		"init=-1 must not be negative":         optim.ProximalAdaGrad{LR: 1, Init: -1},
		"l1=-1 must not be negative":           optim.FTRL{LR: 1, L1: -1},
		"l2=NaN must not be negative":          optim.ProximalSGD{LR: 1, L2: nan},
		"beta=-2 must not be negative":         optim.FTRL{LR: 1, Beta: -2},
		"decay=1 must be at least 0 and below": optim.Momentum{LR: 1, Decay: 1},
		"b2=2 must be at least 0 and below 1":  optim.Adam{LR: 1, B2: 2},
		"the square of b1 must be below b2":    optim.Adam{LR: 1, B1: 0.9, B2: 0.5},
	} {
		_, err := godwit.NewModel(godwit.Table{Name: "weights", Rows: 1, Dim: 1, Rule: r})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `table "weights"`) {
			t.Errorf("rule %s: %v, want an error of table \"weights\" that says %q", r.Name(), err, want)
		}
	}
	for _, r := range []godwit.Rule{nil, optim.SGD{LR: 0.1}, optim.Adam{LR: 1}, optim.FTRL{LR: 1, L1: 1}, optim.Momentum{LR: 1}, optim.Max{}} {
		if _, err := godwit.NewModel(godwit.Table{Name: "weights", Rows: 1, Dim: 1, Rule: r}); err != nil {
			t.Errorf("rule %v: %v", r, err)
		}
	}
}

func TestAModelRefusesValuesThatItsRuleCannotHave(t *testing.T) {
	for _, x := range []struct {
		rule      godwit.Rule
		bad, good int // lengths
	}{
		{optim.Counter{}, 3, 4},
		{optim.RatedSGD{}, 1, 2},
		{optim.RatedAdaGrad{}, 1, 2},
		{optim.RatedRowAdaGrad{}, 1, 2},
		{optim.RatedAdam{}, 1, 2},
		{optim.SparseAdam{}, 1, 2},
	} {
		_, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 1, Dim: x.bad, Rule: x.rule})
		if err == nil || !strings.Contains(err.Error(), `table "t": rule `+x.rule.Name()+`: values of`) {
			t.Errorf("%s of %d floats: %v", x.rule.Name(), x.bad, err)
		}
		if _, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 1, Dim: x.good, Rule: x.rule}); err != nil {
			t.Error(err)
		}
	}
}

// keeper is a rule that says how much it keeps of a row.
type keeper struct {
	godwit.Add
	floats int
}

func (k keeper) StateLen(int) int { return k.floats }

// unrounded is a rule with the name of another one, and nothing else of it.
type unrounded struct{ godwit.Rule }

func TestAModelRefusesRowsThatNoFrameTakes(t *testing.T) {
	for _, n := range []int{-1, 8*godwit.MaxDim - 3, math.MaxInt} {
		_, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 1, Dim: 4, Rule: keeper{floats: n}})
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("it keeps %d floats of a row of 4, want 0 …", n)) {
			t.Errorf("%d floats of state: %v", n, err)
		}
	}
	if _, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 1, Dim: 4, Rule: keeper{floats: 8*godwit.MaxDim - 4}}); err != nil {
		t.Error(err)
	}
	if _, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 1, Dim: godwit.MaxDim, Rule: optim.Adam{LR: 1}}); err != nil {
		t.Error(err)
	}
}

func TestAModelRefusesFirstValuesThatAreNoNumbers(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, x := range []godwit.Init{
		godwit.Uniform{Lo: 1}, godwit.Uniform{Lo: -inf}, godwit.Uniform{Hi: nan}, godwit.Uniform{Lo: -math.MaxFloat32, Hi: math.MaxFloat32},
		godwit.Normal{Std: -1}, godwit.Normal{Std: inf}, godwit.Normal{Mean: nan}, optim.Unrated{Of: godwit.Uniform{Lo: 1}}, optim.Unrated{},
	} {
		_, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 1, Dim: 2, Init: x})
		if err == nil || !strings.Contains(err.Error(), `table "t": first values `+x.Name()) {
			t.Errorf("%s: %v", x.Name(), err)
		}
	}
	for _, x := range []godwit.Init{godwit.Uniform{}, godwit.Uniform{Lo: -1, Hi: -1}, godwit.Normal{}, optim.Unrated{Of: godwit.Zero{}}} {
		if _, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 1, Dim: 2, Init: x}); err != nil {
			t.Error(err)
		}
	}
}

// named is a rule, and first values, of any name.
type named struct {
	godwit.Add
	godwit.Zero
	name string
}

func (n named) Name() string { return n.name }

// A checkpoint holds names as JSON, which would make others of these.
func TestAModelRefusesNamesThatFilesCannotHold(t *testing.T) {
	for want, table := range map[string]godwit.Table{
		"name":               {Name: "t\xff"},
		"rule's name":        {Name: "t", Rule: named{name: "\xff"}},
		"initializer's name": {Name: "t", Init: named{name: "\xff"}},
	} {
		table.Rows, table.Dim = 1, 1
		if _, err := godwit.NewModel(table); err == nil || !strings.Contains(err.Error(), "its "+want+", ") || !strings.Contains(err.Error(), "is not UTF-8") {
			t.Errorf("%v, want an error about its %s", err, want)
		}
	}
}

// Nodes compare rules and first values by their names, so none may be empty.
func TestAModelRefusesRulesWithoutAName(t *testing.T) {
	for want, table := range map[string]godwit.Table{
		"rule's name":        {Rule: named{}},
		"initializer's name": {Init: named{}},
	} {
		table.Name, table.Rows, table.Dim = "t", 1, 1
		if _, err := godwit.NewModel(table); err == nil || !strings.Contains(err.Error(), `table "t": its `+want+" is empty") {
			t.Errorf("%v, want an error about its %s", err, want)
		}
	}
}

// Rules of one name that differ in what a node does with them make other models.
func TestModelsThatDifferInWhatARuleIsHaveDifferentFingerprints(t *testing.T) {
	seen := map[string]string{}
	for what, table := range map[string]godwit.Table{
		"add":         {},
		"with state":  {Rule: keeper{floats: 2}},
		"rounded":     {Rule: optim.SGD{LR: 1}},
		"not rounded": {Rule: unrounded{optim.SGD{LR: 1}}},
		"with counts": {Counts: true},
	} {
		table.Name, table.Rows, table.Dim = "t", 10, 2
		m, err := godwit.NewModel(table)
		if err != nil {
			t.Fatal(err)
		}
		if other, twice := seen[m.Fingerprint()]; twice {
			t.Errorf("%s and %s have one fingerprint", what, other)
		}
		seen[m.Fingerprint()] = what
	}
}
