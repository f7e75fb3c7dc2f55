package capi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/checkpoint"
	"github.com/godwit-ps/godwit/optim"
)

// A Reader reads the rows of a checkpoint, without a cluster. Any number of threads may use it.
type Reader struct {
	c      *checkpoint.Checkpoint
	model  *godwit.Model
	tables []table
}

// OpenReader opens a checkpoint by its place, with a number or without: then it is the last one.
func OpenReader(place string) (*Reader, error) {
	c, err := checkpoint.OpenPlace(context.Background(), place)
	if err != nil {
		return nil, wrong("%v", err)
	}
	r := &Reader{c: c}
	list := make([]godwit.Table, len(c.Manifest().Tables))
	for i, t := range c.Manifest().Tables {
		rule, err := optim.Parse(t.Rule)
		if err != nil {
			return nil, wrong("table %q of %s has a rule of the program that wrote it: %v", t.Name, place, err)
		}
		init, err := initNamed(t.Init)
		if err != nil {
			return nil, wrong("table %q of %s: %v", t.Name, place, err)
		}
		list[i] = godwit.Table{Name: t.Name, Rows: t.Rows, Dim: t.Dim, Rule: rule, Init: init}
		_, rated := rule.(optim.Rated)
		x := table{name: t.Name, rows: int64(t.Rows), dim: t.Dim, rated: rated}
		if rated {
			x.dim--
		}
		r.tables = append(r.tables, x)
	}
	if r.model, err = godwit.NewModel(list...); err != nil {
		return nil, wrong("%s: %v", place, err)
	}
	for i := range r.tables {
		t := &r.tables[i]
		t.first, t.state = r.model.Key(i, 0), r.model.TableRowLen(i)-t.width()
	}
	return r, nil
}

// initNamed returns an initializer by its name.
func initNamed(name string) (godwit.Init, error) {
	if rest, ok := strings.CutPrefix(name, "unrated "); ok {
		of, err := initNamed(rest)
		return optim.Unrated{Of: of}, err
	}
	var a, b float32
	for _, x := range []struct {
		format string
		init   func() godwit.Init
	}{
		{"uniform(%g,%g)", func() godwit.Init { return godwit.Uniform{Lo: a, Hi: b} }},
		{"normal(%g,%g)", func() godwit.Init { return godwit.Normal{Mean: a, Std: b} }},
	} {
		if n, err := fmt.Sscanf(name, x.format, &a, &b); n == 2 && err == nil && x.init().Name() == name {
			return x.init(), nil
		}
	}
	if name == (godwit.Zero{}).Name() {
		return godwit.Zero{}, nil
	}
	return nil, fmt.Errorf("rows begin as %s, which is an initializer of the program that wrote the checkpoint", name)
}

// Describe returns what the checkpoint has, as JSON.
func (r *Reader) Describe() ([]byte, error) {
	type of struct {
		Name  string `json:"name"`
		Rows  int64  `json:"rows"`
		Dim   int    `json:"dim"`
		State int    `json:"state"`
		Rule  string `json:"rule"`
	}
	d := struct {
		Number uint64 `json:"number"`
		Run    string `json:"run"`
		Nodes  int    `json:"nodes"`
		Tables []of   `json:"tables"`
	}{r.c.Manifest().Number, r.c.Manifest().Run, r.c.Manifest().Nodes, nil}
	for i, t := range r.tables {
		d.Tables = append(d.Tables, of{t.name, t.rows, t.dim, t.state, r.model.Table(i).Rule.Name()})
	}
	return json.Marshal(d)
}

// State returns what the program kept beside the rows; nil: nothing.
func (r *Reader) State() ([]byte, error) {
	b, err := r.c.Section(context.Background(), stateSection)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return b, err
}

// Read reads parts of rows of a table. Rows that nobody had accessed are as they begin.
func (r *Reader) Read(i int, rows []int64, dst []float32, parts int) error {
	if i < 0 || i >= len(r.tables) {
		return wrong("there is no table %d, the checkpoint has tables 0 … %d", i, len(r.tables)-1)
	}
	t := &r.tables[i]
	spans, floats, err := t.spans(parts)
	if err != nil {
		return err
	}
	if len(dst) != len(rows)*floats {
		return fmt.Errorf("%w: %d floats for %d rows of table %q, which has %d in these parts of a row", errLength, len(dst), len(rows), t.name, floats)
	}
	at := make([]int, len(rows)) // positions, in the order of the rows
	row := make([]float32, r.model.TableRowLen(i))
	for j, k := range rows {
		if uint64(k) >= uint64(t.rows) {
			return fmt.Errorf("%w: row %d at position %d, table %q has rows 0 … %d", godwit.ErrKeyRange, k, j, t.name, t.rows-1)
		}
		at[j] = j
		r.first(i, k, row)
		pick(dst[j*floats:(j+1)*floats], row, spans)
	}
	slices.SortFunc(at, func(a, b int) int { return int(min(max(rows[a]-rows[b], -1), 1)) })
	from := func(row uint64) int { // the first position of the row, or of the next one
		j, _ := slices.BinarySearchFunc(at, int64(row), func(p int, row int64) int { return int(min(max(rows[p]-row, -1), 1)) })
		return j
	}
	want := func(table int, first, last uint64) bool {
		return table == i && from(first) < len(at) && uint64(rows[at[from(first)]]) <= last
	}
	return r.c.Rows(context.Background(), want, func(table int, found []uint64, vals []float32) error {
		if table != i {
			return nil
		}
		for n, k := range found {
			for j := from(k); j < len(at) && rows[at[j]] == int64(k); j++ {
				pick(dst[at[j]*floats:(at[j]+1)*floats], vals[n*len(row):(n+1)*len(row)], spans)
			}
		}
		return nil
	})
}

// first makes a row as it begins.
func (r *Reader) first(i int, row int64, dst []float32) {
	t, dim := r.model.Table(i), r.model.Table(i).Dim
	t.Init.Init(dst[:dim], r.c.Manifest().Seed, r.model.Key(i, uint64(row)))
	t.Rule.InitState(dst[dim:])
}

// pick copies parts of a row.
func pick(dst, row []float32, spans []span) {
	for _, s := range spans {
		copy(dst, row[s.at:s.at+s.n])
		dst = dst[s.n:]
	}
}

// Next returns the number of the next checkpoint in a folder.
func Next(place string) (int64, error) {
	s, err := checkpoint.OpenStore(context.Background(), place)
	if err != nil {
		return 0, wrong("%v", err)
	}
	n, err := checkpoint.Next(context.Background(), s)
	return int64(n), err
}
