package libsvm

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"
	"unsafe"
)

var (
	errText   = errors.New("not UTF-8 text without NUL bytes, is this a text file?")
	errReturn = errors.New("a carriage return inside the line, is this a file of old line ends?")
)

// A parser takes lines apart. Its buffers hold the last example.
type parser struct {
	hashBits int
	labels   labels
	features []uint32
	values   []float32
	pairs    []pair
}

type pair struct {
	feature uint32
	value   float32
}

// line reads an example, unless the line is empty.
func (p *parser) line(line []byte) (positive, ok bool, err error) {
	if err := checkText(line); err != nil {
		return false, false, err
	}
	if i := bytes.IndexByte(line, '#'); i >= 0 {
		line = line[:i]
	}
	label, rest := field(line)
	if len(label) == 0 {
		return false, false, nil
	}
	if positive, err = p.labels.read(label); err != nil {
		return false, false, err
	}
	return positive, true, p.read(rest)
}

// checkText refuses what is no line of a text.
func checkText(line []byte) error {
	switch {
	case !utf8.Valid(line) || bytes.IndexByte(line, 0) >= 0:
		return errText
	case bytes.IndexByte(line, '\r') >= 0:
		return errReturn
	}
	return nil
}

// read reads the pairs of an example.
func (p *parser) read(rest []byte) error {
	p.pairs = p.pairs[:0]
	for {
		var text []byte
		if text, rest = field(rest); len(text) == 0 {
			return p.sort()
		}
		x, err := p.pair(text)
		if err != nil {
			return err
		}
		p.pairs = append(p.pairs, x)
	}
}

// field returns the next text between blanks, empty at the end, and the rest.
func field(line []byte) (text, rest []byte) {
	for len(line) > 0 && isBlank(line[0]) {
		line = line[1:]
	}
	n := 0
	for n < len(line) && !isBlank(line[n]) {
		n++
	}
	return line[:n], line[n:]
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

func (p *parser) pair(text []byte) (x pair, err error) {
	i := bytes.LastIndexByte(text, ':')
	if i <= 0 || i == len(text)-1 {
		return x, fmt.Errorf("%.60q is not of the form index:value", text)
	}
	if p.hashBits > 0 {
		x.feature = hash(text[:i], p.hashBits)
	} else if x.feature, err = index(text[:i]); err != nil {
		return x, err
	}
	v, err := strconv.ParseFloat(view(text[i+1:]), 32)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return x, fmt.Errorf("value %.60q of feature %.60q is not a finite number of 32 bits", text[i+1:], text[:i])
	}
	x.value = float32(v)
	return x, nil
}

func index(text []byte) (uint32, error) {
	n := uint64(0)
	for _, c := range text {
		if c < '0' || c > '9' || n > MaxFeature {
			n = MaxFeature + 1
			break
		}
		n = 10*n + uint64(c-'0')
	}
	if n > MaxFeature {
		return 0, fmt.Errorf("index %.60q is not a number of 0 … %d; features that have names can be hashed", text, uint32(MaxFeature))
	}
	return uint32(n), nil
}

// HashAbout describes in words which row a feature is hashed to, for readers of a model
// without this package.
const HashAbout = "the text before the colon, as bytes: h = FNV-1a of 64 bits; h ^= h >> 32; h = h * 0x9e3779b97f4a7c15 mod 2**64; " +
	"row = h >> (64 - bits); values of features with the same row add up"

// hash is FNV-1a with a last mixing, so that the low bits depend on all of the
// text.
func hash(text []byte, bits int) uint32 {
	h := uint64(0xcbf29ce484222325)
	for _, c := range text {
		h = (h ^ uint64(c)) * 0x100000001b3
	}
	h ^= h >> 32
	h *= 0x9e3779b97f4a7c15
	return uint32(h >> (64 - bits))
}

// sort orders the pairs by feature into features and values.
func (p *parser) sort() error {
	ascending := func(a, b pair) int { return int(int64(a.feature) - int64(b.feature)) }
	if !slices.IsSortedFunc(p.pairs, ascending) {
		slices.SortStableFunc(p.pairs, ascending)
	}
	p.features, p.values = p.features[:0], p.values[:0]
	for _, x := range p.pairs {
		switch n := len(p.features); {
		case n == 0 || p.features[n-1] != x.feature:
			p.features, p.values = append(p.features, x.feature), append(p.values, x.value)
		case p.hashBits == 0:
			return fmt.Errorf("feature %d occurs twice", x.feature)
		default:
			if p.values[n-1] += x.value; math.IsInf(float64(p.values[n-1]), 0) {
				return fmt.Errorf("values of features with the same hash, %d, add up to more than 32 bits can hold", x.feature)
			}
		}
	}
	return nil
}

// labels reads labels. Those of a scanner are 1 and -1 or 0; those of a whole file are
// any two numbers, of which it is known at its end which is the smaller one.
type labels struct {
	negative string // of a scanner: how it is written, once that is known

	any   bool
	given bool      // classes are given
	seen  []float64 // the classes, by their first appearance
	names [2]string // negative and positive, if they are given
}

func (l *labels) read(text []byte) (positive bool, err error) {
	x, err := strconv.ParseFloat(view(text), 64)
	switch {
	case err != nil || x-x != 0:
		return false, fmt.Errorf("label %.60q is not a number; want two of them, such as 1 for positive examples and -1 or 0 for negative ones", text)
	case l.any:
		return l.class(x, text)
	case x == 1:
		return true, nil
	case x != 0 && x != -1:
		return false, fmt.Errorf("label %.60q is neither 1 nor -1 or 0: only two classes can be told apart", text)
	}
	written := "-1"
	if x == 0 {
		written = "0"
	}
	if l.negative == "" {
		l.negative = written
	}
	if l.negative != written {
		return false, fmt.Errorf("label %.60q after %s: negative examples are written either -1 or 0, and only two classes can be told apart", text, l.negative)
	}
	return false, nil
}

// class returns whether a label is the second class.
func (l *labels) class(x float64, text []byte) (second bool, err error) {
	x += 0 // so that -0 is 0
	i := slices.Index(l.seen, x)
	switch {
	case i < 0 && l.given && l.seen[1] == 1 && isZeroOrMinus(x) && isZeroOrMinus(l.seen[0]):
		return false, nil // a9a has 0 to train and -1 to test
	case i < 0 && l.given:
		return false, fmt.Errorf("label %.60q is neither %s nor %s, the two classes to train", text, l.names[0], l.names[1])
	case i < 0 && len(l.seen) == 2:
		return false, fmt.Errorf("label %.60q after %v and %v: only two classes can be told apart; more classes and regression are not trained", text, l.seen[0], l.seen[1])
	case i < 0:
		i = len(l.seen)
		l.seen = append(l.seen, x)
	}
	return i == 1, nil
}

func isZeroOrMinus(x float64) bool { return x == 0 || x == -1 }

// labelsOf returns labels of given classes, negative and positive, or of any two.
func labelsOf(classes [2]string) (labels, error) {
	l := labels{any: true}
	if classes == [2]string{} {
		return l, nil
	}
	l.given, l.names = true, classes
	for _, name := range classes {
		x, err := strconv.ParseFloat(name, 64)
		if err != nil || x-x != 0 || slices.Contains(l.seen, x) {
			return l, fmt.Errorf("libsvm: the classes %q, want two different numbers", classes)
		}
		l.seen = append(l.seen, x)
	}
	return l, nil
}

// classes returns the classes, the smaller one first, and whether the second one that
// was seen is the smaller one. One alone is positive if it is above 0; the other is -1 or 1 then.
func (l *labels) classes() (names [2]string, turned bool) {
	name := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
	switch {
	case l.given:
		return l.names, false
	case len(l.seen) == 1 && l.seen[0] > 0:
		return [2]string{"-1", name(l.seen[0])}, true
	case len(l.seen) == 1:
		return [2]string{name(l.seen[0]), "1"}, false
	case l.seen[0] > l.seen[1]:
		return [2]string{name(l.seen[1]), name(l.seen[0])}, true
	}
	return [2]string{name(l.seen[0]), name(l.seen[1])}, false
}

// view is text as a string without a copy, for functions that do not keep it
// unless they fail.
func view(text []byte) string { return unsafe.String(unsafe.SliceData(text), len(text)) }
