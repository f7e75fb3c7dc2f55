package protocol

import (
	"slices"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/protocol/directory"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/placement"
)

// mail keeps what is sent.
type mail struct {
	nowhere
	recs []wire.Record
}

func (m *mail) Send(_ godwit.NodeID, r *wire.Record) { m.recs = append(m.recs, *r) }

// scanConfigs are those of two nodes that share a number of keys.
func scanConfigs(t *testing.T, keys uint64) (asker, home *Config) {
	t.Helper()
	model, err := godwit.NewModel(godwit.Table{Name: "t", Rows: keys, Dim: 1})
	if err != nil {
		t.Fatal(err)
	}
	homes := directory.NewHomes(keys, []godwit.NodeID{0, 1})
	var cs [2]*Config
	for i := range cs {
		cs[i] = &Config{Self: godwit.NodeID(i), Model: model, Policy: placement.Static, Homes: homes}
		if err := cs[i].Prepare(); err != nil {
			t.Fatal(err)
		}
	}
	return cs[0], cs[1]
}

func TestAScanIsAnsweredInPartsOfBoundedLength(t *testing.T) {
	const keys, far = 1 << 46, 1 << 45
	asker, home := scanConfigs(t, keys)
	var want []godwit.Key
	use := func(k godwit.Key) {
		if home.Homes.Home(k) == 1 {
			home.used.Add(k)
			want = append(want, k)
		}
	}
	for k := godwit.Key(0); k < 60_000; k++ {
		use(k)
	}
	for k := godwit.Key(far); k < far+3000; k += 3 {
		use(k)
	}
	s := NewScan(1, 77, 5, keys)
	want = want[slices.IndexFunc(want, func(k godwit.Key) bool { return k >= 5 }):]
	var got []godwit.Key
	questions := 0
	var out mail
	for s.Ask(&out) {
		questions++
		var answer mail
		if err := home.Scan(&answer, 0, &out.recs[0]); err != nil {
			t.Fatal(err)
		}
		out.recs = nil
		if n := len(answer.recs); n > scanKeys+1 {
			t.Fatalf("an answer of %d records", n)
		}
		for i := range answer.recs {
			last, err := s.Take(asker, 1, &answer.recs[i])
			if err != nil || last != (i == len(answer.recs)-1) {
				t.Fatalf("record %d of %d: last %v, %v", i, len(answer.recs), last, err)
			}
		}
		got = append(got, s.Keys()...)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d keys, want %d", len(got), len(want))
	}
	// However much lies between keys, a question leads past it.
	if most := len(want)/scanKeys + 1; questions > most {
		t.Errorf("%d questions, want at most %d", questions, most)
	}
}

func TestAnAnswerThatDoesNotFitItsQuestionIsRefused(t *testing.T) {
	const keys = 1000
	asker, home := scanConfigs(t, keys)
	var here, there []godwit.Key
	for k := godwit.Key(0); k < keys; k++ {
		if home.Homes.Home(k) == 1 {
			here = append(here, k)
		} else {
			there = append(there, k)
		}
	}
	in := func(k godwit.Key) wire.Record { return wire.Record{Kind: wire.InUse, Op: 1, Key: k} }
	to := func(k godwit.Key) wire.Record { return wire.Record{Kind: wire.Scanned, Op: 1, Key: k} }
	a, b, c := here[10], here[11], here[20]
	for what, x := range map[string]struct {
		from godwit.NodeID
		recs []wire.Record
		says string
	}{
		"of another node":        {0, []wire.Record{in(b)}, "was not asked for"},
		"before the first key":   {1, []wire.Record{in(here[9])}, "in-use of key"},
		"after the last":         {1, []wire.Record{in(here[30])}, "in-use of key"},
		"the end":                {1, []wire.Record{in(c)}, "in-use of key"},
		"of another home":        {1, []wire.Record{in(there[slices.IndexFunc(there, func(k godwit.Key) bool { return k > a })])}, "in-use of key"},
		"twice the same":         {1, []wire.Record{in(b), in(b)}, "after 1 keys"},
		"back":                   {1, []wire.Record{in(here[15]), in(b)}, "after 1 keys"},
		"an end before its keys": {1, []wire.Record{in(here[15]), to(b)}, "after 1 keys"},
		"an end beyond":          {1, []wire.Record{to(c + 1)}, "scanned of key"},
		"no step":                {1, []wire.Record{to(a)}, "does not get on"},
		"more after it was over": {1, []wire.Record{to(c), in(b)}, "was not asked for"},
	} {
		s := NewScan(1, 1, a, c)
		s.Ask(&mail{})
		var err error
		for i := range x.recs {
			if err != nil {
				t.Fatalf("%s: %v at record %d", what, err, i)
			}
			_, err = s.Take(asker, x.from, &x.recs[i])
		}
		if err == nil || !strings.Contains(err.Error(), x.says) {
			t.Errorf("%s: error %v, want %q", what, err, x.says)
		}
	}
}
