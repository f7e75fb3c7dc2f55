package libsvm

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// A Target says what the labels of a file are.
type Target string

// The targets.
const (
	// Auto takes two different labels as classes, and any labels as values if one of them is
	// no whole number. Whole numbers of more than two kinds can be either, so that is an error,
	// which asks.
	Auto Target = "auto"
	// ToClasses takes each different label as a class.
	ToClasses Target = "classes"
	// ToValues takes labels as numbers to be predicted.
	ToValues Target = "values"
)

// MaxClasses bounds how many classes a set can have.
const MaxClasses = 1 << 12

// maxClassLabel bounds the magnitude of a label that is a class: below it, float32 tells
// all whole numbers apart.
const maxClassLabel = 1 << 24

// labels reads labels. Unless classes are given, what a label means is known at the end of
// a file, so they are numbers till then.
type labels struct {
	target Target
	given  []float32 // the classes, if they are given
	names  []string  // of them

	seen     map[float32]bool // different ones, up to MaxClasses+1
	fraction bool             // one was no whole number
	third    error            // about the third one, if they are whole numbers
	large    error            // about the first one that is too large for a class
}

// labelsOf returns labels by the options.
func labelsOf(o Options) (labels, error) {
	l := labels{target: o.Target, names: o.Classes}
	if l.target == "" {
		l.target = Auto
	}
	if !slices.Contains([]Target{Auto, ToClasses, ToValues}, l.target) {
		return l, fmt.Errorf("libsvm: target %q, want %s, %s or %s", l.target, Auto, ToClasses, ToValues)
	}
	if len(o.Classes) == 0 {
		l.seen = map[float32]bool{}
		return l, nil
	}
	if len(o.Classes) == 1 || len(o.Classes) > MaxClasses || l.target == ToValues {
		return l, fmt.Errorf("libsvm: %d classes for the target %s, want 2 … %d, of classes", len(o.Classes), l.target, MaxClasses)
	}
	for _, name := range o.Classes {
		x, err := strconv.ParseFloat(name, 32)
		if err != nil || x-x != 0 || slices.Contains(l.given, float32(x)) {
			return l, fmt.Errorf("libsvm: the classes %q, want different numbers", o.Classes)
		}
		l.given = append(l.given, float32(x))
	}
	return l, nil
}

// read returns the number of a class that is given, else the label itself.
func (l *labels) read(text []byte) (float32, error) {
	wide, err := strconv.ParseFloat(view(text), 32)
	if err != nil || wide-wide != 0 {
		return 0, fmt.Errorf("label %.60q is not a finite number of 32 bits; want a number: such as 1 and -1 or 0 of two classes, 0, 1, 2 … of several, or a value to predict", text)
	}
	x := float32(wide) + 0 // so that -0 is 0
	switch {
	case l.given != nil:
		return l.class(x, text)
	case l.target == ToValues:
		return x, nil
	}
	return x, l.note(x, text)
}

// class is the number of a class that is given.
func (l *labels) class(x float32, text []byte) (float32, error) {
	i := slices.Index(l.given, x)
	switch {
	case i >= 0:
		return float32(i), nil
	case len(l.given) == 2 && l.given[1] == 1 && isZeroOrMinus(x) && isZeroOrMinus(l.given[0]):
		return 0, nil // a9a has 0 to train and -1 to test
	case len(l.given) == 2:
		return 0, fmt.Errorf("label %.60q is neither %s nor %s, the two classes to train", text, l.names[0], l.names[1])
	}
	return 0, fmt.Errorf("label %.60q is none of the %d classes to train, %s … %s", text, len(l.names), l.names[0], l.names[len(l.names)-1])
}

func isZeroOrMinus(x float32) bool { return x == 0 || x == -1 }

// note remembers a label that may be a class.
func (l *labels) note(x float32, text []byte) error {
	if l.target == Auto && x != float32(math.Trunc(float64(x))) {
		l.fraction = true
	}
	if l.seen[x] || len(l.seen) > MaxClasses {
		return nil
	}
	l.seen[x] = true
	if l.target == Auto && l.large == nil && math.Abs(float64(x)) >= maxClassLabel {
		l.large = fmt.Errorf("label %.60q is too large for a class, want below %d: if labels are numbers to be predicted, say so (--target %s)", text, maxClassLabel, ToValues)
	}
	switch n := len(l.seen); {
	case l.target == Auto && n == 3:
		l.third = fmt.Errorf("label %.60q is the third one, and all are whole numbers: say whether they are classes (--target %s) or values (--target %s)", text, ToClasses, ToValues)
	case l.target == ToClasses && n > MaxClasses:
		return fmt.Errorf("label %.60q is one more than %d classes", text, MaxClasses)
	case l.target == ToClasses && math.Abs(float64(x)) >= maxClassLabel:
		return fmt.Errorf("label %.60q is too large for a class, want below %d", text, maxClassLabel)
	}
	return nil
}

// What can be wrong with the labels of a file as a whole; third and large say where.
var (
	errUndecided = errors.New("the labels are whole numbers of more than two kinds")
	errTooLarge  = errors.New("the labels are classes, and one is too large")
)

// decide returns the classes at the end of a file, ascending, or none if the labels are
// values. One class alone is positive if it is above 0; the other is -1 or 1 then.
func (l *labels) decide() ([]string, []float32, error) {
	switch {
	case l.given != nil:
		return l.names, nil, nil
	case l.target == ToValues || l.target == Auto && len(l.seen) > 2 && l.fraction:
		return nil, nil, nil
	case l.target == Auto && len(l.seen) > 2:
		return nil, nil, errUndecided
	case l.large != nil:
		return nil, nil, errTooLarge
	}
	var xs []float32
	for x := range l.seen {
		xs = append(xs, x)
	}
	if len(xs) == 1 {
		if xs[0] > 0 {
			xs = append(xs, -1)
		} else {
			xs = append(xs, 1)
		}
	}
	slices.Sort(xs)
	names := make([]string, len(xs))
	for i, x := range xs {
		names[i] = nameOf(x)
	}
	return names, xs, nil
}

func nameOf(x float32) string { return strconv.FormatFloat(float64(x), 'g', -1, 32) }
