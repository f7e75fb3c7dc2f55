package filter

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/named"
)

// Parse returns the filters that a text lists: names, with parameters in brackets,
// separated by commas, such as "significant(threshold=0.01),
// fixed(bytes=1), sparse, s2". It reads what their Name writes. An empty text
// lists none. The error says what was found and what is allowed.
func Parse(text string) ([]godwit.Filter, error) {
	var fs []godwit.Filter
	for _, item := range named.List(text) {
		f, err := parse(item)
		if err != nil {
			return nil, fmt.Errorf("filter %q: %w", item, err)
		}
		fs = append(fs, f)
	}
	if err := godwit.CheckFilters(fs); err != nil {
		return nil, fmt.Errorf("filters %q: %w", text, err)
	}
	return fs, nil
}

func parse(text string) (godwit.Filter, error) {
	name, p, err := named.Parse(text)
	if err != nil {
		return nil, err
	}
	of := filters[name]
	if of == nil {
		return nil, fmt.Errorf("there is no filter %q, want %s", name, strings.Join(Names(), ", "))
	}
	f := of(p)
	if err := p.End(); err != nil {
		return nil, err
	}
	if c, ok := f.(interface{ Check() error }); ok {
		return f, c.Check()
	}
	return f, nil
}

// Names lists the filters that Parse knows, in alphabetical order. (Active has no text,
// because it has a function of the program.)
func Names() []string { return slices.Sorted(maps.Keys(filters)) }

// On returns the tables with the filters appended to their own, but for those that they have.
func On(tables []godwit.Table, fs ...godwit.Filter) []godwit.Table {
	tables = slices.Clone(tables)
	for i := range tables {
		own := tables[i].Filters
		tables[i].Filters = slices.Clip(own)
		for _, f := range fs {
			if !slices.ContainsFunc(own, func(o godwit.Filter) bool { return o.Name() == f.Name() }) {
				tables[i].Filters = append(tables[i].Filters, f)
			}
		}
	}
	return tables
}

var filters = map[string]func(*named.Params) godwit.Filter{
	"fixed": func(p *named.Params) godwit.Filter {
		return Fixed{Bytes: p.Int("bytes"), Answers: p.Flag("answers"), Forget: p.Flag("forget")}
	},
	"bf16": func(p *named.Params) godwit.Filter {
		return BF16{Answers: p.Flag("answers"), Forget: p.Flag("forget")}
	},
	"significant": func(p *named.Params) godwit.Filter {
		return Significant{Threshold: p.Float("threshold"), Decay: p.Float("decay")}
	},
	"skip":   func(p *named.Params) godwit.Filter { return Skip{P: p.Float("p")} },
	"noise":  func(p *named.Params) godwit.Filter { return Noise{Std: p.Float("std")} },
	"sparse": func(*named.Params) godwit.Filter { return Sparse{} },
	"s2":     func(*named.Params) godwit.Filter { return Compress{S2} },
	"zstd":   func(*named.Params) godwit.Filter { return Compress{Zstd} },
}
