package optim

import (
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"

	"github.com/godwit-ps/godwit"
)

// Parse returns the rule that a text describes: a name, and parameters in
// brackets, such as "add", "sgd(lr=0.1)", "adagrad(lr=0.1,init=1e-6)",
// "rowadagrad(lr=0.1)" or "adam(lr=0.001, b1=0.9, b2=0.999)". The learning
// rate must be given; other parameters have defaults. Parse reads what Name
// writes. The error says what was found and what is allowed.
func Parse(spec string) (godwit.Rule, error) {
	name, params, err := split(spec)
	if err != nil {
		return nil, fmt.Errorf("optim: rule %q: %w", spec, err)
	}
	parse, ok := rules[name]
	if !ok {
		return nil, fmt.Errorf("optim: rule %q: there is no rule %q, want one of %s", spec, name, strings.Join(ruleNames(), ", "))
	}
	r := parse(params)
	err = params.end()
	if c, ok := r.(godwit.Checker); ok && err == nil {
		err = c.Check()
	}
	if err != nil {
		return nil, fmt.Errorf("optim: rule %q: %w", spec, err)
	}
	return r, nil
}

// RateOf returns the learning rate in a text that Parse reads, and whether there is one.
func RateOf(spec string) (lr float32, ok bool) {
	_, params, err := split(spec)
	if err != nil {
		return 0, false
	}
	return params.take("lr")
}

var rules = map[string]func(*params) godwit.Rule{
	"add":     func(*params) godwit.Rule { return godwit.Add{} },
	"counter": func(*params) godwit.Rule { return Counter{} },
	"max":     func(*params) godwit.Rule { return Max{} },
	"min":     func(*params) godwit.Rule { return Min{} },
	"set":     func(*params) godwit.Rule { return Set{} },
	"sgd":     func(p *params) godwit.Rule { return SGD{LR: p.rate()} },
	"adagrad": func(p *params) godwit.Rule {
		return AdaGrad{LR: p.rate(), Eps: p.eps(AdaGradEps), Init: p.init()}
	},
	"rowadagrad": func(p *params) godwit.Rule {
		return RowAdaGrad{LR: p.rate(), Eps: p.eps(AdaGradEps), Init: p.init()}
	},
	"adam": func(p *params) godwit.Rule {
		return Adam{LR: p.rate(), B1: p.decay("b1", AdamB1), B2: p.decay("b2", AdamB2), Eps: p.eps(AdamEps)}
	},
	"momentum": func(p *params) godwit.Rule {
		return Momentum{LR: p.rate(), Decay: p.decay("decay", MomentumDecay)}
	},
	"ftrl": func(p *params) godwit.Rule {
		return FTRL{LR: p.rate(), Beta: p.beta(), L1: p.penalty("l1"), L2: p.penalty("l2")}
	},
	"ratedsgd": func(*params) godwit.Rule { return RatedSGD{} },
	"ratedadagrad": func(p *params) godwit.Rule {
		return RatedAdaGrad{AdaGrad{Eps: p.eps(AdaGradEps), Init: p.init()}}
	},
	"ratedrowadagrad": func(p *params) godwit.Rule {
		return RatedRowAdaGrad{RowAdaGrad{Eps: p.eps(AdaGradEps), Init: p.init()}}
	},
	"ratedadam": func(p *params) godwit.Rule {
		return RatedAdam{Adam{B1: p.decay("b1", AdamB1), B2: p.decay("b2", AdamB2), Eps: p.eps(AdamEps)}}
	},
	"sparseadam": func(p *params) godwit.Rule {
		return SparseAdam{B1: p.decay("b1", AdamB1), B2: p.decay("b2", AdamB2), Eps: p.eps(AdamEps)}
	},
	"proxsgd": func(p *params) godwit.Rule {
		return ProximalSGD{LR: p.rate(), L1: p.penalty("l1"), L2: p.penalty("l2")}
	},
	"proxadagrad": func(p *params) godwit.Rule {
		return ProximalAdaGrad{LR: p.rate(), Eps: p.eps(AdaGradEps), Init: p.init(), L1: p.penalty("l1"), L2: p.penalty("l2")}
	},
}

// GradientRules returns the names of the rules that take a learning rate: those
// that step against a pushed gradient.
func GradientRules() (names []string) {
	for _, name := range ruleNames() {
		if _, err := Parse(name + "(lr=1)"); err == nil {
			names = append(names, name)
		}
	}
	return names
}

func ruleNames() []string {
	names := make([]string, 0, len(rules))
	for n := range rules {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

// split takes "name(a=1,b=2)" apart.
func split(spec string) (name string, p *params, err error) {
	s := strings.TrimSpace(spec)
	p = &params{given: map[string]float32{}}
	name, list, bracket := strings.Cut(s, "(")
	name = strings.TrimSpace(name)
	if name == "" {
		return "", nil, fmt.Errorf("the name is missing, want for example adagrad(lr=0.1)")
	}
	if !bracket {
		return name, p, nil
	}
	list, ok := strings.CutSuffix(list, ")")
	if !ok {
		return "", nil, fmt.Errorf("the closing bracket is missing at the end")
	}
	if strings.TrimSpace(list) == "" {
		return name, p, nil
	}
	for _, item := range strings.Split(list, ",") {
		if err := p.add(item); err != nil {
			return "", nil, err
		}
	}
	return name, p, nil
}

// params are the parameters of a rule that is being parsed: the rule takes each once,
// and one that was not taken is an error.
type params struct {
	given map[string]float32
	known []string
	err   error // the first
}

func (p *params) add(item string) error {
	key, text, ok := strings.Cut(item, "=")
	key, text = strings.TrimSpace(key), strings.TrimSpace(text)
	if !ok || key == "" {
		return fmt.Errorf("parameter %q is not of the form name=number", strings.TrimSpace(item))
	}
	if _, twice := p.given[key]; twice {
		return fmt.Errorf("parameter %s is given twice", key)
	}
	x, err := strconv.ParseFloat(text, 32)
	if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
		return fmt.Errorf("parameter %s=%s is not a finite number of 32 bits", key, text)
	}
	p.given[key] = float32(x)
	return nil
}

func (p *params) take(key string) (x float32, ok bool) {
	p.known = append(p.known, key)
	x, ok = p.given[key]
	delete(p.given, key)
	return x, ok
}

func (p *params) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
}

func (p *params) rate() float32 {
	x, ok := p.take("lr")
	if !ok {
		p.fail("the learning rate is missing, add lr=…")
	}
	return x
}

func (p *params) eps(def float32) float32 {
	x, ok := p.take("eps")
	if !ok {
		return def
	}
	if x <= 0 {
		p.fail("eps=%v must be above 0", x)
	}
	return x
}

func (p *params) init() float32 {
	x, _ := p.take("init")
	return x
}

func (p *params) beta() float32 {
	x, ok := p.take("beta")
	if !ok {
		return FTRLBeta
	}
	if x <= 0 {
		p.fail("beta=%v must be above 0", x)
	}
	return x
}

func (p *params) penalty(key string) float32 {
	x, _ := p.take(key)
	return x
}

func (p *params) decay(key string, def float32) float32 {
	x, ok := p.take(key)
	if !ok {
		return def
	}
	if x <= 0 || x >= 1 {
		p.fail("%s=%v must lie between 0 and 1", key, x)
	}
	return x
}

// end returns the first error of the parameters, an unknown one included.
func (p *params) end() error {
	unknown := make([]string, 0, len(p.given))
	for k := range p.given {
		unknown = append(unknown, k)
	}
	if len(unknown) > 0 {
		sort.Strings(unknown)
		if len(p.known) == 0 {
			return fmt.Errorf("it has no parameters, but %s is given", unknown[0])
		}
		return fmt.Errorf("it has no parameter %s, only %s", unknown[0], strings.Join(p.known, ", "))
	}
	return p.err
}
