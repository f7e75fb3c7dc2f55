package trace

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/godwit-ps/godwit"
)

// Usual is how many keys are traced where nobody says which: all of a model that has no more, else
// so many at random.
const Usual = 100_000

// Keys says which keys are traced: the same at all nodes of a run.
type Keys struct {
	text  string
	some  uint64       // how many were to be chosen at random
	below uint64       // keys are traced whose hash is at most that,
	all   bool         // … or all,
	named []godwit.Key // … and these, sorted
}

// ParseKeys reads which keys of a model to trace: "random=1000" for so many at random, and
// "table:row" for one row, by commas. Nothing is "random=100000".
func ParseKeys(text string, m *godwit.Model) (ks Keys, err error) {
	return parseKeys(text, TablesOf(m), uint64(m.Keys()))
}

// CheckKeys says what is wrong with the text for [ParseKeys], of any model.
func CheckKeys(text string) error {
	return eachPart(orUsual(text), func(uint64) {}, func(part string) error {
		_, _, _, err := parseRow(part)
		return err
	})
}

// orUsual returns the text, or that of what is traced where it is empty.
func orUsual(text string) string {
	if strings.TrimSpace(text) == "" {
		return fmt.Sprintf("random=%d", Usual)
	}
	return text
}

// eachPart goes over the parts of the text for [ParseKeys]: random is called with how many keys to choose, key with the text of one.
func eachPart(text string, random func(n uint64), key func(part string) error) error {
	for _, part := range strings.Split(text, ",") {
		part = strings.TrimSpace(part)
		so, many := strings.CutPrefix(part, "random=")
		if !many {
			if err := key(part); err != nil {
				return err
			}
			continue
		}
		n, err := parseCount(so)
		if err != nil {
			return err
		}
		random(n)
	}
	return nil
}

// Keys returns which keys are traced.
func (h *Header) Keys() (Keys, error) {
	n := uint64(0)
	for _, t := range h.Tables {
		n += t.Rows
	}
	return parseKeys(h.Traced, h.Tables, n)
}

func parseKeys(text string, tables []Table, n uint64) (ks Keys, err error) {
	ks.text = orUsual(text)
	err = eachPart(ks.text, func(some uint64) { ks.random(some, n) }, func(part string) error {
		k, err := ParseKey(part, tables)
		if err == nil {
			ks.named = append(ks.named, k)
		}
		return err
	})
	slices.Sort(ks.named)
	return ks, err
}

// random has n of so many keys traced.
func (ks *Keys) random(n, of uint64) {
	ks.all, ks.some = n >= of, n
	ks.below = uint64(float64(n) / float64(of) * math.MaxUint64)
}

func parseCount(text string) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, 48)
	if err != nil {
		return 0, fmt.Errorf("trace: random=%s: want how many keys to trace", text)
	}
	return n, nil
}

// parseRow reads a key's number, or a table and a row's number.
func parseRow(text string) (table string, n uint64, named bool, err error) {
	i := strings.LastIndexByte(text, ':')
	if n, err = strconv.ParseUint(text[i+1:], 10, 48); err != nil {
		err = fmt.Errorf("trace: key %q: want its number, or table:row with the row's number", text)
	}
	return text[:max(i, 0)], n, i >= 0, err
}

// ParseKey reads a key: its number, or table:row.
func ParseKey(text string, tables []Table) (godwit.Key, error) {
	name, n, named, err := parseRow(text)
	if err != nil {
		return 0, err
	}
	var have []string
	for _, t := range tables {
		switch {
		case named && t.Name == name && n < t.Rows:
			return t.First + godwit.Key(n), nil
		case named && t.Name == name:
			return 0, fmt.Errorf("trace: key %q: table %q has rows 0 … %d", text, name, t.Rows-1)
		case !named && n >= uint64(t.First) && n-uint64(t.First) < t.Rows:
			return godwit.Key(n), nil
		}
		have = append(have, t.Name)
	}
	if named {
		return 0, fmt.Errorf("trace: key %q: there is no table %q; there are %s", text, name, strings.Join(have, ", "))
	}
	return 0, fmt.Errorf("trace: key %q: the model has no key of that number", text)
}

// Has reports whether a key is traced.
func (ks *Keys) Has(k godwit.Key) bool {
	return ks.all || uint64(k+1)*0x9e3779b97f4a7c15 < ks.below || len(ks.named) > 0 && ks.names(k)
}

func (ks *Keys) names(k godwit.Key) bool {
	_, ok := slices.BinarySearch(ks.named, k)
	return ok
}

// detailed reports whether details of a traced key are written where they are those of one key of 1<<thinned.
func (ks *Keys) detailed(k godwit.Key, thinned uint32) bool {
	return thinned == 0 || uint64(k+1)*0xd6e8feb86659fd93>>(64-thinned) == 0 || len(ks.named) > 0 && ks.names(k) // another hash than Has has
}

// Most returns how many keys they may be, of a model that has as many: about as many as were to be traced at random, and those that are named.
func (ks *Keys) Most() uint64 {
	if ks.all {
		return math.MaxUint64
	}
	return ks.some + ks.some/16 + 1024 + uint64(len(ks.named))
}

// String says which keys they are, as ParseKeys reads it.
func (ks *Keys) String() string { return ks.text }
