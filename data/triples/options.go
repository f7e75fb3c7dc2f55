package triples

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/godwit-ps/godwit/data/setting"
)

// Options say how the files of a graph are read.
type Options struct {
	// Columns is what the columns of a line are, separated by commas: head, relation
	// and tail, in any order, and "-" for each column that is passed over. Empty is
	// head,relation,tail, and refuses files that seem to have another order.
	Columns string
	// Header says whether the first line of a file names its columns: HeaderYes,
	// HeaderNo, or HeaderAuto, which is the same as empty and passes over a first
	// line of usual titles that are no names of the graph.
	Header string
	// Split is the shares of the facts to train, to validate and to test on, where all
	// are in one file; they add up to 1. Empty is all to train.
	Split []float64
	// Seed decides which facts are held out.
	Seed uint64
}

// The values of Options.Header.
const (
	HeaderAuto = "auto"
	HeaderYes  = "yes"
	HeaderNo   = "no"
)

// roles are the names of columns, in the order of the fields of a Triple.
var roles = [3]string{"head", "relation", "tail"}

// Check returns what is wrong with the options.
func (o Options) Check() error {
	if _, err := o.layout(); err != nil {
		return err
	}
	if !slices.Contains([]string{"", HeaderAuto, HeaderYes, HeaderNo}, o.Header) {
		return setting.Bad("triples.Options", "Header", fmt.Sprintf("%q", o.Header), "auto, yes or no")
	}
	return o.checkSplit()
}

func (o Options) checkSplit() error {
	sum := 0.0
	for _, x := range o.Split {
		if !(x >= 0 && x <= 1) {
			sum = math.NaN()
		}
		sum += x
	}
	if n := len(o.Split); n != 0 && (n != 3 || !(math.Abs(sum-1) <= 1e-6) || o.Split[0] == 0) {
		return setting.Bad("triples.Options", "Split", o.Split, "three shares, to train, validate and test, that add up to 1, the first above 0: such as 0.8,0.1,0.1")
	}
	return nil
}

// A layout says what the columns of a line are.
type layout struct {
	columns int    // how many
	at      [3]int // where head, relation and tail stand
	given   bool   // by somebody who knows
}

func (o Options) layout() (l layout, err error) {
	if o.Columns == "" {
		return layout{3, [3]int{0, 1, 2}, false}, nil
	}
	names := strings.Split(o.Columns, ",")
	l = layout{len(names), [3]int{-1, -1, -1}, true}
	for i, name := range names {
		name = strings.TrimSpace(name)
		r := slices.Index(roles[:], name)
		if name == "-" {
			continue
		}
		if r < 0 || l.at[r] >= 0 {
			return l, badColumns(o.Columns)
		}
		l.at[r] = i
	}
	if min(l.at[0], l.at[1], l.at[2]) < 0 || l.columns > maxColumns {
		return l, badColumns(o.Columns)
	}
	return l, nil
}

// maxColumns bounds the columns of a line.
const maxColumns = 1000

func badColumns(got string) error {
	return setting.Bad("triples.Options", "Columns", fmt.Sprintf("%q", got), "head, relation and tail once each, in the order of the columns, separated by commas, with - for each other column")
}

// String names the columns.
func (l layout) String() string {
	names := slices.Repeat([]string{"-"}, l.columns)
	for r, i := range l.at {
		names[i] = roles[r]
	}
	return strings.Join(names, ", ")
}
