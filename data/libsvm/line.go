package libsvm

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"unsafe"
)

var (
	errNUL    = errors.New("a NUL byte, is this a text file?")
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
func (p *parser) line(line []byte) (label float32, ok bool, err error) {
	if err := checkText(line); err != nil {
		return 0, false, err
	}
	if i := bytes.IndexByte(line, '#'); i >= 0 {
		line = line[:i]
	}
	text, rest := field(line)
	if len(text) == 0 {
		return 0, false, nil
	}
	if label, err = p.labels.read(text); err != nil {
		return 0, false, err
	}
	return label, true, p.read(rest)
}

// checkText refuses what is no line of a text.
func checkText(line []byte) error {
	switch {
	case bytes.IndexByte(line, 0) >= 0:
		return errNUL
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

// view is text as a string without a copy, for functions that do not keep it
// unless they fail.
func view(text []byte) string { return unsafe.String(unsafe.SliceData(text), len(text)) }
