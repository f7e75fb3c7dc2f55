package linear

import (
	"math"
	"slices"

	"github.com/godwit-ps/godwit/data/libsvm"
	"github.com/godwit-ps/godwit/internal/vec"
)

// A target is what a model predicts: two classes by a margin, the logit of the second
// one; several classes by a margin each, of which the softmax are their probabilities; or
// a value, by a margin in units of scale around center.
type target struct {
	classes       int // 0: a value
	center, scale float64
}

// targetOf is what the labels of the examples to train are. Values are taken around their
// mean, in units of their standard deviation, so that steps and penalties mean the same whatever
// their units; without a bias around 0, since nothing could learn the mean.
func targetOf(set *libsvm.Set, bias bool) target {
	t := target{classes: len(set.Classes), scale: 1}
	if t.classes > 0 || set.Len() == 0 {
		return t
	}
	if bias {
		for _, y := range set.Labels {
			t.center += float64(y)
		}
		t.center /= float64(set.Len())
	}
	square := 0.0
	for _, y := range set.Labels {
		square += (float64(y) - t.center) * (float64(y) - t.center)
	}
	if square > 0 {
		t.scale = math.Sqrt(square / float64(set.Len()))
	}
	return t
}

// outputs is how many margins an example has.
func (t *target) outputs() int {
	if t.classes > 2 {
		return t.classes
	}
	return 1
}

// loss is that of an example. It turns its margins into their slopes, the derivatives of
// the loss towards them.
func (t *target) loss(label float32, margins []float32) float64 {
	switch t.classes {
	case 0:
		off := margins[0] - t.unit(label)
		margins[0] = off
		return float64(off) * float64(off) / 2 * t.scale * t.scale
	case 2:
		loss, slope := logLoss(label > 0, margins[0])
		margins[0] = slope
		return loss
	}
	right := margins[int(label)]
	all := softmax(margins)
	margins[int(label)]--
	return all - float64(right)
}

// losses is the summed loss of examples, [together] at the most. It turns their margins into their slopes.
func (t *target) losses(labels, margins []float32) (sum float64) {
	if t.classes == 2 {
		return logLosses(labels, margins)
	}
	n := t.outputs()
	for i, y := range labels {
		sum += t.loss(y, margins[i*n:(i+1)*n])
	}
	return sum
}

// unit is a value as the model has it.
func (t *target) unit(value float32) float32 { return float32((float64(value) - t.center) / t.scale) }

// value is what a margin says, in the units of the labels.
func (t *target) value(margin float32) float64 { return float64(margin)*t.scale + t.center }

// predict replaces margins by probabilities, or by the value.
func (t *target) predict(margins []float32) {
	switch t.classes {
	case 0:
		margins[0] = float32(t.value(margins[0]))
	case 2:
		margins[0] = float32(1 / (1 + math.Exp(-float64(margins[0]))))
	default:
		softmax(margins)
	}
}

// logSumExp is log Σ e^x.
func logSumExp(xs []float32) float64 {
	largest, sum := slices.Max(xs), 0.0
	for _, x := range xs {
		sum += math.Exp(float64(x - largest))
	}
	return float64(largest) + math.Log(sum)
}

// softmax replaces margins by probabilities, and returns their logSumExp.
func softmax(xs []float32) float64 {
	all := logSumExp(xs)
	for i, x := range xs {
		xs[i] = float32(math.Exp(float64(x) - all))
	}
	return all
}

// toward is a number towards the positive class as one towards the right class.
func toward(positive bool, x float64) float64 {
	if positive {
		return x
	}
	return -x
}

// wrong is the probability of the class that is not the right one, 1/(1 + e^m), where m is the margin towards the right one. e is e^-|m|.
func wrong(m float64) (p, e float64) {
	e = math.Exp(-math.Abs(m))
	if m > 0 {
		return e / (1 + e), e
	}
	return 1 / (1 + e), e
}

// logLoss is log(1 + e^(-y·m)) for y = ±1, and its derivative towards the margin m.
func logLoss(positive bool, margin float32) (loss float64, slope float32) {
	ym := toward(positive, float64(margin))
	p, e := wrong(ym)
	return max(0, -ym) + math.Log(1+e), -float32(toward(positive, p)) // as exact as a sum of losses is
}

// logLosses is logLoss of examples, with an exponential of float32 and one logarithm of all.
func logLosses(labels, margins []float32) (sum float64) {
	var room [together]float32
	es := room[:len(labels)]
	for i, m := range margins[:len(es)] {
		es[i] = -float32(math.Abs(float64(m)))
	}
	vec.Exp(es, es)
	product := 1.0
	for i, e := range es {
		m, positive := margins[i], labels[i] > 0
		p := 1 / (1 + e)
		if positive == (m > 0) {
			p *= e
		} else {
			sum += math.Abs(float64(m))
		}
		product *= 1 + float64(e)
		margins[i] = p
		if positive {
			margins[i] = -p
		}
	}
	return sum + math.Log(product)
}
