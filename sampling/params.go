package sampling

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// params are the parameters in the name of a scheme: whole numbers from 1, as 0
// stands for "the default" in the schemes' fields. The scheme takes each of
// its own; what nobody took is an error.
type params struct {
	given map[string]int
	known []string
}

// split takes "name(a=1,b=2)" apart.
func split(text string) (name string, p *params, err error) {
	p = &params{given: map[string]int{}}
	name, list, bracket := strings.Cut(strings.TrimSpace(text), "(")
	name = strings.TrimSpace(name)
	if !bracket {
		return name, p, nil
	}
	list, ok := strings.CutSuffix(list, ")")
	if !ok {
		return "", nil, fmt.Errorf("the closing bracket is missing at the end")
	}
	for item := range strings.SplitSeq(list, ",") {
		key, number, _ := strings.Cut(item, "=")
		key = strings.TrimSpace(key)
		n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 32)
		if err != nil || n < 1 || key == "" {
			return "", nil, fmt.Errorf("parameter %q is not of the form name=number with a whole number from 1", strings.TrimSpace(item))
		}
		if _, twice := p.given[key]; twice {
			return "", nil, fmt.Errorf("parameter %s is given twice", key)
		}
		p.given[key] = int(n)
	}
	return name, p, nil
}

// take returns a parameter, 0 if it is not given.
func (p *params) take(key string) int {
	p.known = append(p.known, key)
	n := p.given[key]
	delete(p.given, key)
	return n
}

// end reports a parameter that nobody took.
func (p *params) end() error {
	if len(p.given) == 0 {
		return nil
	}
	unknown := slices.Sorted(maps.Keys(p.given))[0]
	if len(p.known) == 0 {
		return fmt.Errorf("it has no parameters, but %s is given", unknown)
	}
	return fmt.Errorf("it has no parameter %s, only %s", unknown, strings.Join(p.known, ", "))
}

// named writes a scheme's name with the parameters that are not 0, given as
// pairs of name and number.
func named(name string, pairs ...any) string {
	var list []string
	for i := 0; i < len(pairs); i += 2 {
		if n := pairs[i+1].(int); n != 0 {
			list = append(list, fmt.Sprintf("%s=%d", pairs[i], n))
		}
	}
	if len(list) == 0 {
		return name
	}
	return name + "(" + strings.Join(list, ",") + ")"
}
