package optim

import (
	"math"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit"
)

func TestParseReadsEveryRule(t *testing.T) {
	for spec, want := range map[string]godwit.Rule{
		"add":                     godwit.Add{},
		"counter":                 Counter{},
		"max":                     Max{},
		"min":                     Min{},
		"set":                     Set{},
		"add()":                   godwit.Add{},
		"sgd(lr=0.1)":             SGD{LR: 0.1},
		" sgd ( lr = 1e-3 ) ":     SGD{LR: 1e-3},
		"adagrad(lr=0.1)":         AdaGrad{LR: 0.1, Eps: AdaGradEps},
		"adagrad(init=2,lr=0.1)":  AdaGrad{LR: 0.1, Eps: AdaGradEps, Init: 2},
		"rowadagrad(lr=1,eps=.5)": RowAdaGrad{LR: 1, Eps: 0.5},
		"adam(lr=0.01)":           Adam{LR: 0.01, B1: AdamB1, B2: AdamB2, Eps: AdamEps},
		"momentum(lr=0.1)":        Momentum{LR: 0.1, Decay: MomentumDecay},
		"ftrl(lr=0.1,l1=2)":       FTRL{LR: 0.1, Beta: FTRLBeta, L1: 2},
		"proxsgd(lr=1,l2=3)":      ProximalSGD{LR: 1, L2: 3},
		"proxadagrad(lr=1,l1=.5)": ProximalAdaGrad{LR: 1, Eps: AdaGradEps, L1: 0.5},
		"adam(lr=0.01,b1=0.5)":    Adam{LR: 0.01, B1: 0.5, B2: AdamB2, Eps: AdamEps},
	} {
		got, err := Parse(spec)
		if err != nil || got != want {
			t.Errorf("Parse(%q) = %#v, %v, want %#v", spec, got, err, want)
		}
	}
}

func TestParseReadsBackTheNameOfARule(t *testing.T) {
	for _, r := range []godwit.Rule{godwit.Add{}, SGD{LR: 0.1}, AdaGrad{LR: 0.3, Eps: 1e-7, Init: 0.25},
		RowAdaGrad{LR: 1e-20, Eps: 1, Init: 3}, Adam{LR: 1.0 / 3, B1: 0.1, B2: 0.2, Eps: 7},
		Momentum{LR: 1, Decay: 0.5}, FTRL{LR: 0.1, Beta: 0.5, L1: 1e-9, L2: 4}, ProximalSGD{LR: 1, L1: 2, L2: 3},
		ProximalAdaGrad{LR: 1, Eps: 2, Init: 3, L1: 4, L2: 5}} {
		got, err := Parse(r.Name())
		if err != nil || got != r {
			t.Errorf("Parse(%q) = %#v, %v, want %#v", r.Name(), got, err, r)
		}
	}
}

func TestNamesTellParametersApartAndShowDefaults(t *testing.T) {
	for _, c := range []struct {
		rule godwit.Rule
		want string
	}{
		{SGD{LR: 0.1}, "sgd(lr=0.1)"},
		{AdaGrad{LR: 0.1}, "adagrad(lr=0.1,eps=1e-10,init=0)"},
		{RowAdaGrad{LR: 0.1, Init: 2}, "rowadagrad(lr=0.1,eps=1e-10,init=2)"},
		{Momentum{LR: 1}, "momentum(lr=1,decay=0.9)"},
		{FTRL{LR: 0.1, L1: 1}, "ftrl(lr=0.1,beta=1,l1=1,l2=0)"},
		{ProximalSGD{LR: 0.1, L2: 1}, "proxsgd(lr=0.1,l1=0,l2=1)"},
		{ProximalAdaGrad{LR: 0.1, L1: 1}, "proxadagrad(lr=0.1,eps=1e-10,init=0,l1=1,l2=0)"},
		{Adam{LR: 0.001}, "adam(lr=0.001,b1=0.9,b2=0.999,eps=1e-08)"},
	} {
		if got := c.rule.Name(); got != c.want {
			t.Errorf("Name() = %q, want %q", got, c.want)
		}
	}
}

func TestGradientRulesAreThoseWithALearningRate(t *testing.T) {
	if got, want := strings.Join(GradientRules(), " "), "adagrad adam ftrl momentum proxadagrad proxsgd rowadagrad sgd"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestTheRateOfARuleIsThatOfItsText(t *testing.T) {
	for spec, want := range map[string]float32{"sgd(lr=0.1)": 0.1, "adam(b1=0.5, lr=1e-3)": 1e-3, "ratedadagrad": 0, "add": 0, "sgd(lr=0.1": 0} {
		if lr, ok := RateOf(spec); lr != want || ok != (want > 0) {
			t.Errorf("%q has the rate %v (%v), want %v", spec, lr, ok, want)
		}
	}
}

func TestParseSaysWhatIsWrong(t *testing.T) {
	for spec, want := range map[string]string{
		"":                           "the name is missing",
		"(lr=1)":                     "the name is missing",
		"sdg(lr=1)":                  `no rule "sdg", want one of adagrad, adam, add, counter, ftrl, max, min, momentum, proxadagrad, proxsgd, ratedadagrad, ratedadam, ratedrowadagrad, ratedsgd, rowadagrad, set, sgd, sparseadam`,
		"sgd":                        "add lr=",
		"sgd(lr=1":                   "closing bracket",
		"sgd(lr=1)x":                 "closing bracket",
		"sgd(0.1)":                   `"0.1" is not of the form name=number`,
		"sgd(lr=1,)":                 `"" is not of the form name=number`,
		"sgd(=1)":                    "not of the form",
		"sgd(lr=fast)":               "lr=fast is not a finite number",
		"sgd(lr=NaN)":                "lr=NaN is not a finite number",
		"sgd(lr=1e99)":               "lr=1e99 is not a finite number",
		"sgd(lr=inf)":                "lr=inf is not a finite number",
		"adagrad(lr=1,init=-inf)":    "init=-inf is not a finite number",
		"sgd(lr=1,lr=2)":             "lr is given twice",
		"sgd(lr=0)":                  "lr=0 must be above 0",
		"sgd(lr=1,eps=1)":            "no parameter eps, only lr",
		"add(lr=1)":                  "no parameters, but lr is given",
		"adagrad(lr=1,eps=0)":        "eps=0 must be above 0",
		"adagrad(lr=1,init=-1)":      "init=-1 must not be negative",
		"ftrl(lr=1,l1=-1)":           "l1=-1 must not be negative",
		"ftrl(lr=1,beta=0)":          "beta=0 must be above 0",
		"ftrl(l1=1)":                 "add lr=",
		"momentum(lr=1,decay=1)":     "decay=1 must lie between 0 and 1",
		"proxsgd(lr=1,beta=1)":       "no parameter beta, only lr, l1, l2",
		"adam(lr=1,b1=1)":            "b1=1 must lie between 0 and 1",
		"adam(lr=1,b1=.99,b2=.9)":    "the square of b1",
		"adam(lr=1,beta1=0.9,b2=.9)": "no parameter beta1, only lr, b1, b2, eps",
	} {
		r, err := Parse(spec)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%q) = %v, %v; the error should say %q", spec, r, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"add", "max", "min", "set", "sgd(lr=0.1)", "adagrad(lr=1,eps=2,init=3)", "adam(lr=1,b1=.5,b2=.6,eps=1)", "ftrl(lr=1,beta=2,l1=3,l2=4)",
		"momentum(lr=1,decay=.5)", "proxsgd(lr=1,l1=1)", "proxadagrad(lr=1,l2=1)", "x(", "sgd(lr=1e-44)"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, spec string) {
		r, err := Parse(spec)
		if err != nil {
			return
		}
		again, err := Parse(r.Name())
		if err != nil || again != r {
			t.Fatalf("%q parses to %#v, whose name %q parses to %#v, %v", spec, r, r.Name(), again, err)
		}
		x := newRow(r, make([]float32, 9)...)
		r.Apply(x.value, x.state, make([]float32, 9))
		for _, v := range x.value {
			if math.IsNaN(float64(v)) {
				t.Fatalf("%q makes a NaN of a zero gradient", spec)
			}
		}
	})
}
