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
