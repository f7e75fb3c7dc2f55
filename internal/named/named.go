// Package named reads and writes names with parameters, such as
// "reuse(pool=1000,uses=64)", by which schemes and policies are chosen on
// command lines. Parameters are positive numbers; one that is left out is 0 and
// means a default.
package named

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A Param is one parameter for [Write].
type Param struct {
	Key   string
	Value float64
}

// Write writes a name with the parameters that are not 0.
func Write(name string, params ...Param) string {
	var list []string
	for _, p := range params {
		if p.Value != 0 {
			list = append(list, p.Key+"="+strconv.FormatFloat(p.Value, 'f', -1, 64))
		}
	}
	if len(list) == 0 {
		return name
	}
	return name + "(" + strings.Join(list, ",") + ")"
}

// Valid reports whether a name can stand before parameters: letters, digits and
// dashes, a letter first.
func Valid(name string) bool {
	for i := range len(name) {
		c := name[i]
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (i == 0 || c != '-' && (c < '0' || c > '9')) {
			return false
		}
	}
	return name != ""
}

// Params are the parameters of a name. Whoever has the name takes each of its
// own, and asks for errors at the End.
type Params struct {
	given map[string]string
	known []string
	err   error // the first
}

// Parse takes "name(a=1,b=2)" apart. Spaces do not count.
func Parse(text string) (name string, p *Params, err error) {
	p = &Params{given: map[string]string{}}
	name, list, bracket := strings.Cut(text, "(")
	name = strings.TrimSpace(name)
	if !bracket {
		return name, p, nil
	}
	list, ok := strings.CutSuffix(strings.TrimSpace(list), ")")
	if !ok {
		return "", nil, fmt.Errorf("the closing bracket is missing at the end")
	}
	for item := range strings.SplitSeq(list, ",") {
		key, value, ok := strings.Cut(item, "=")
		key = strings.TrimSpace(key)
		if !ok || key == "" {
			return "", nil, fmt.Errorf("parameter %q is not of the form name=number", strings.TrimSpace(item))
		}
		if _, twice := p.given[key]; twice {
			return "", nil, fmt.Errorf("parameter %s is given twice", key)
		}
		p.given[key] = strings.TrimSpace(value)
	}
	return name, p, nil
}

// List cuts a list of names at the commas outside of brackets. An empty text lists none.
func List(text string) (list []string) {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	depth, begin := 0, 0
	for i, c := range text {
		switch c {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth <= 0 {
				list = append(list, strings.TrimSpace(text[begin:i]))
				begin = i + 1
			}
		}
	}
	return append(list, strings.TrimSpace(text[begin:]))
}

func (p *Params) take(key string) (value string, ok bool) {
	p.known = append(p.known, key)
	value, ok = p.given[key]
	delete(p.given, key)
	return value, ok
}

func (p *Params) fail(key, value, want string) {
	if p.err == nil {
		p.err = fmt.Errorf("parameter %s=%s is not %s", key, value, want)
	}
}

// Int takes a whole number from 1; 0 if it is not given.
func (p *Params) Int(key string) int {
	value, ok := p.take(key)
	if !ok {
		return 0
	}
	n, err := strconv.ParseInt(value, 10, 32)
	if err != nil || n < 1 {
		p.fail(key, value, fmt.Sprintf("a whole number, 1 … %d", math.MaxInt32))
		return 0
	}
	return int(n)
}

// Flag takes what is 1 or not given, and reports whether it is given.
func (p *Params) Flag(key string) bool {
	value, ok := p.take(key)
	if ok && value != "1" {
		p.fail(key, value, "1, the only value that it takes")
	}
	return ok
}

// Float takes a finite number above 0; 0 if it is not given.
func (p *Params) Float(key string) float64 {
	value, ok := p.take(key)
	if !ok {
		return 0
	}
	x, err := strconv.ParseFloat(value, 64)
	if err != nil || !(x > 0) || math.IsInf(x, 0) {
		p.fail(key, value, "a finite number above 0")
		return 0
	}
	return x
}

// End returns the first error of the parameters: one with a wrong value, or one
// that nobody took.
func (p *Params) End() error {
	if p.err != nil || len(p.given) == 0 {
		return p.err
	}
	unknown := slices.Sorted(maps.Keys(p.given))[0]
	if len(p.known) == 0 {
		return fmt.Errorf("it has no parameters, but %s is given", unknown)
	}
	return fmt.Errorf("it has no parameter %s, only %s", unknown, strings.Join(p.known, ", "))
}
