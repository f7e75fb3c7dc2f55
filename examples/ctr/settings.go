package main

import (
	"bufio"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"os"
	"strings"

	"github.com/godwit-ps/godwit/data/setting"
	"github.com/godwit-ps/godwit/train/task"
)

// Settings travel from the node that leads to the others, as JSON.
type Settings struct {
	Impressions       int // generated, where there are no data
	Bits, Dim, Hidden int
	Batch             int
	LR                float32
}

func defaults() *Settings {
	return &Settings{Impressions: 60_000, Bits: 16, Dim: 8, Hidden: 16, Batch: 32, LR: 0.03}
}

func (s *Settings) Name() string { return "ctr" }
func (s *Settings) Epochs() int  { return 2 }

func (s *Settings) Check() error {
	for _, x := range []struct {
		field         string
		value, lo, hi int
	}{{"Impressions", s.Impressions, 100, 1 << 30}, {"Bits", s.Bits, 1, 30}, {"Dim", s.Dim, 1, 256}, {"Hidden", s.Hidden, 1, 1024}, {"Batch", s.Batch, 1, 1 << 16}} {
		if x.value < x.lo || x.value > x.hi {
			return setting.Outside("main.Settings", x.field, x.value, x.lo, x.hi)
		}
	}
	if !(s.LR > 0) {
		return setting.Bad("main.Settings", "LR", s.LR, "a positive learning rate")
	}
	return nil
}

// Unused has the command refuse a flag that describes generated impressions where others are read.
func (s *Settings) Unused(data string) []task.Unused {
	if data == "" {
		return nil
	}
	return []task.Unused{{Why: "the impressions are read, not generated", Fields: []any{&s.Impressions}}}
}

// Load is what every node does with the settings.
func (s *Settings) Load(setup task.Setup) (task.Task, error) {
	var d *impressions
	var err error
	if setup.Data == "" {
		d = generate(s.Impressions, s.Bits)
	} else if d, err = read(setup.Data, s.Bits); err != nil {
		return nil, err
	}
	m := &model{Settings: *s, data: d, seed: setup.Seed, in: d.fields * s.Dim}
	return &loaded{task.Trained[batch]{Task: m}, m}, nil
}

// impressions are what was shown to people: the hash of a category a field.
type impressions struct {
	fields  int
	rows    []uint32 // of all impressions, one after the other
	clicked []bool
}

func (d *impressions) add(clicked bool, names []string, bits int) {
	for field, name := range names {
		h := fnv.New64a()
		fmt.Fprintf(h, "%d=%s", field, name)
		d.rows = append(d.rows, uint32(h.Sum64()%(1<<bits)))
	}
	d.clicked = append(d.clicked, clicked)
}

func (d *impressions) row(i int32) []uint32 { return d.rows[int(i)*d.fields:][:d.fields] }

// split returns which impressions are to train (0), to validate (1) or to test (2).
func (d *impressions) split(part int) (is []int32) {
	for i := range d.clicked {
		of := 0
		switch i % 10 {
		case 8:
			of = 1
		case 9:
			of = 2
		}
		if of == part {
			is = append(is, int32(i))
		}
	}
	return is
}

func read(path string, bits int) (*impressions, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	d := &impressions{}
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		words := strings.Fields(lines.Text())
		if len(words) < 2 || words[0] != "0" && words[0] != "1" || d.fields > 0 && len(words) != d.fields+1 {
			return nil, fmt.Errorf("%s:%d: want 1 or 0, and a category for each field, of which all lines have equally many", path, n)
		}
		d.fields = len(words) - 1
		d.add(words[0] == "1", words[1:], bits)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s:%d: %w", path, len(d.clicked)+1, err)
	}
	if len(d.clicked) < 10 {
		return nil, fmt.Errorf("%s: fewer than 10 impressions: too few to hold some out", path)
	}
	return d, nil
}

// generate makes impressions of six fields, whose categories follow Zipf's law. Whether
// somebody clicks depends on each category, and on how those of the first two agree.
func generate(n, bits int) *impressions {
	const fields, categories = 6, 2000
	r := rand.New(rand.NewPCG(1, 2))
	var effect [fields][categories]float64
	var taste [2][categories][2]float64
	for c := range categories {
		for f := range fields {
			effect[f][c] = 0.6 * r.NormFloat64()
		}
		for i := range 2 {
			taste[i][c] = [2]float64{r.NormFloat64(), r.NormFloat64()}
		}
	}
	popular := rand.NewZipf(r, 1.2, 4, categories-1)
	d := &impressions{fields: fields}
	for range n {
		var names []string
		var cs [fields]uint64
		logit := -1.0
		for f := range fields {
			cs[f] = popular.Uint64()
			logit += effect[f][cs[f]]
			names = append(names, fmt.Sprint("category-", cs[f]))
		}
		a, b := taste[0][cs[0]], taste[1][cs[1]]
		logit += a[0]*b[0] + a[1]*b[1]
		d.add(r.Float64() < 1/(1+math.Exp(-logit)), names, bits)
	}
	return d
}
