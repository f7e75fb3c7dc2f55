package optim

import (
	"fmt"
	"math"

	"github.com/godwit-ps/godwit"
)

// Rules with parameters check them, so that neither a model nor a parsed name has a rule
// that learns nothing or diverges.
var _ = []godwit.Checker{SGD{}, Momentum{}, AdaGrad{}, RowAdaGrad{}, Adam{}, FTRL{}, ProximalSGD{}, ProximalAdaGrad{}}

// Check returns which parameter is out of its range.
func (r SGD) Check() error { return rate(r.LR) }

// Check returns which parameter is out of its range.
func (r Momentum) Check() error { return first(rate(r.LR), decay("decay", r.Decay)) }

// Check returns which parameter is out of its range.
func (r AdaGrad) Check() error { return adagrad(r.LR, r.Eps, r.Init) }

// Check returns which parameter is out of its range.
func (r RowAdaGrad) Check() error { return adagrad(r.LR, r.Eps, r.Init) }

// Check returns which parameter is out of its range, or that B1 and B2 together give
// steps no bound.
func (r Adam) Check() error {
	if err := first(rate(r.LR), decay("b1", r.B1), decay("b2", r.B2), notNegative("eps", r.Eps)); err != nil {
		return err
	}
	b1, b2 := float64(orElse(r.B1, AdamB1)), float64(orElse(r.B2, AdamB2))
	if b1*b1 >= b2 {
		return fmt.Errorf("b1=%v and b2=%v: the square of b1 must be below b2, or steps have no bound", float32(b1), float32(b2))
	}
	return nil
}

// Check returns which parameter is out of its range.
func (r FTRL) Check() error {
	return first(rate(r.LR), notNegative("beta", r.Beta), penalties(r.L1, r.L2))
}

// Check returns which parameter is out of its range.
func (r ProximalSGD) Check() error { return first(rate(r.LR), penalties(r.L1, r.L2)) }

// Check returns which parameter is out of its range.
func (r ProximalAdaGrad) Check() error {
	return first(adagrad(r.LR, r.Eps, r.Init), penalties(r.L1, r.L2))
}

func adagrad(lr, eps, init float32) error {
	return first(rate(lr), notNegative("eps", eps), notNegative("init", init))
}

func penalties(l1, l2 float32) error { return first(notNegative("l1", l1), notNegative("l2", l2)) }

func rate(lr float32) error {
	if !(lr > 0) || math.IsInf(float64(lr), 0) {
		return fmt.Errorf("lr=%v must be above 0, and finite", lr)
	}
	return nil
}

func notNegative(what string, x float32) error {
	if !(x >= 0) || math.IsInf(float64(x), 0) {
		return fmt.Errorf("%s=%v must not be negative or infinite", what, x)
	}
	return nil
}

func decay(what string, x float32) error {
	if !(x >= 0 && x < 1) {
		return fmt.Errorf("%s=%v must be at least 0 and below 1", what, x)
	}
	return nil
}

// first returns the first error that is not nil.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
