package optim

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit"
)

// A rule is refused, as a struct and as a text, whichever of its parameters is out of its range.
func TestParametersByWhichNothingIsLearnedAreRefused(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	rates, others, decays := []float32{0, -1, nan, inf, -inf}, []float32{-1, nan, inf, -inf}, []float32{-0.1, 1, 2, nan, inf, -inf}
	for name, x := range map[string]struct {
		bad  []float32
		make func(x float32) godwit.Checker
	}{
		"sgd lr":               {rates, func(x float32) godwit.Checker { return SGD{LR: x} }},
		"momentum lr":          {rates, func(x float32) godwit.Checker { return Momentum{LR: x, Decay: 0.9} }},
		"momentum decay":       {decays, func(x float32) godwit.Checker { return Momentum{LR: 1, Decay: x} }},
		"adagrad lr":           {rates, func(x float32) godwit.Checker { return AdaGrad{LR: x} }},
		"adagrad eps":          {others, func(x float32) godwit.Checker { return AdaGrad{LR: 1, Eps: x} }},
		"adagrad init":         {others, func(x float32) godwit.Checker { return AdaGrad{LR: 1, Init: x} }},
		"rowadagrad lr":        {rates, func(x float32) godwit.Checker { return RowAdaGrad{LR: x} }},
		"rowadagrad eps":       {others, func(x float32) godwit.Checker { return RowAdaGrad{LR: 1, Eps: x} }},
		"rowadagrad init":      {others, func(x float32) godwit.Checker { return RowAdaGrad{LR: 1, Init: x} }},
		"adam lr":              {rates, func(x float32) godwit.Checker { return Adam{LR: x} }},
		"adam b1":              {decays, func(x float32) godwit.Checker { return Adam{LR: 1, B1: x} }},
		"adam b2":              {decays, func(x float32) godwit.Checker { return Adam{LR: 1, B2: x} }},
		"adam eps":             {others, func(x float32) godwit.Checker { return Adam{LR: 1, Eps: x} }},
		"ftrl lr":              {rates, func(x float32) godwit.Checker { return FTRL{LR: x} }},
		"ftrl beta":            {others, func(x float32) godwit.Checker { return FTRL{LR: 1, Beta: x} }},
		"ftrl l1":              {others, func(x float32) godwit.Checker { return FTRL{LR: 1, L1: x} }},
		"ftrl l2":              {others, func(x float32) godwit.Checker { return FTRL{LR: 1, L2: x} }},
		"proxsgd lr":           {rates, func(x float32) godwit.Checker { return ProximalSGD{LR: x} }},
		"proxsgd l1":           {others, func(x float32) godwit.Checker { return ProximalSGD{LR: 1, L1: x} }},
		"proxsgd l2":           {others, func(x float32) godwit.Checker { return ProximalSGD{LR: 1, L2: x} }},
		"proxadagrad lr":       {rates, func(x float32) godwit.Checker { return ProximalAdaGrad{LR: x} }},
		"proxadagrad eps":      {others, func(x float32) godwit.Checker { return ProximalAdaGrad{LR: 1, Eps: x} }},
		"proxadagrad l1":       {others, func(x float32) godwit.Checker { return ProximalAdaGrad{LR: 1, L1: x} }},
		"ratedadagrad eps":     {others, func(x float32) godwit.Checker { return RatedAdaGrad{AdaGrad{Eps: x}} }},
		"sparseadam b1":        {decays, func(x float32) godwit.Checker { return SparseAdam{B1: x} }},
		"sparseadam eps":       {others, func(x float32) godwit.Checker { return SparseAdam{Eps: x} }},
		"ratedadam b2":         {decays, func(x float32) godwit.Checker { return RatedAdam{Adam{B2: x}} }},
		"ratedrowadagrad init": {others, func(x float32) godwit.Checker { return RatedRowAdaGrad{RowAdaGrad{Init: x}} }},
	} {
		if err := x.make(0.9).Check(); err != nil {
			t.Errorf("%s = 0.9: %v", name, err)
		}
		for _, v := range x.bad {
			r := x.make(v)
			err := r.Check()
			_, param, _ := strings.Cut(name, " ")
			if err == nil || !strings.Contains(err.Error(), param) || !strings.Contains(err.Error(), fmt.Sprint(v)) {
				t.Errorf("%s = %v: %v, want an error that names both", name, v, err)
			}
			if _, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 1, Dim: 2, Rule: r}); err == nil {
				t.Errorf("%s = %v: a model has the rule", name, v)
			}
			if text := r.Name(); strings.Contains(text, fmt.Sprint(v)) {
				if _, err := Parse(text); err == nil {
					t.Errorf("%s is read", text)
				}
			}
		}
	}
	if err := (Adam{LR: 1, B1: 0.8, B2: 0.7}).Check(); err != nil {
		t.Errorf("b1 below the root of b2: %v", err)
	}
	if err := (Adam{LR: 1, B1: 0.5, B2: 0.25}).Check(); err == nil {
		t.Error("a b1 at the root of b2 is taken")
	}
}
