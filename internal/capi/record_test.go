package capi

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/recording"
	"github.com/godwit-ps/godwit/telemetry/record"
	"github.com/godwit-ps/godwit/telemetry/trace"
)

func TestARunWritesWhatItsNodesDo(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ads")
	c := open(t, Config{Trace: dir, Program: "train.py", Tables: []Table{{Name: "t", Rows: 10, Dim: 1}}})
	w := worker(t, c, 0)
	done(t, w)(w.Push(0, []int64{1, 2, 3}, []float32{1, 1, 1}, 0, 1, 0, 0))
	for range 4 {
		_, err := w.Advance()
		must(t, err)
	}
	must(t, c.Note([]byte(`{"epoch": {"epoch": 1, "of": 3, "loss": null, "items": 20}}`)))
	for _, bad := range []string{`{"end": {}}`, `{"none": 1}`, ``} {
		if c.Note([]byte(bad)) == nil {
			t.Errorf("event %q is no error", bad)
		}
	}
	if over, err := c.Close(time.Minute); !over || err != nil {
		t.Fatal(over, err)
	}
	r, err := record.Open(dir)
	must(t, err)
	if s := r.Start(); s == nil || s.Task != "train.py" || len(s.Nodes) != 1 {
		t.Errorf("the run began as %+v", s)
	}
	if r.End() == nil || len(r.Events) != 3 || r.Events[1].Epoch == nil || r.Events[1].Epoch.Of != 3 {
		t.Errorf("events are %+v", r.Events)
	}
	last := r.Nodes[0].Samples[len(r.Nodes[0].Samples)-1]
	if last.Items != 4 || last.Accesses.Local != 3 {
		t.Errorf("the last sample has %d steps and %d accesses, want 4 and 3", last.Items, last.Accesses.Local)
	}
	if _, err := Open([]byte(`{"trace": "` + dir + `", "tables": [{"name": "t", "rows": 10, "dim": 1}]}`)); err == nil {
		t.Error("a second run in the folder is no error")
	}
	if _, err := Open([]byte(`{"nodes": 2, "trace": "` + dir + `2", "tables": [{"name": "t", "rows": 10, "dim": 1}]}`)); err == nil {
		t.Error("a trace of two nodes in a process is no error")
	}
	if err := open(t, Config{Tables: []Table{{Name: "t", Rows: 10, Dim: 1}}}).Note([]byte(`{"warning": "x"}`)); err != nil {
		t.Errorf("without a trace: %v", err)
	}
}

// Ranks send their records to rank 0, if that traces and does not see their folder.
func TestRankZeroHasTheRecordsOfAllRanks(t *testing.T) {
	const n = 3
	for name, dirs := range map[string][n]string{
		"folders of their own": {t.TempDir(), t.TempDir(), t.TempDir()},
		"rank 0 has none":      {"", t.TempDir(), t.TempDir()},
		"one rank has none":    {t.TempDir(), "", t.TempDir()},
	} {
		t.Run(name, func(t *testing.T) {
			var cs []*Cluster
			at := "127.0.0.1:0"
			for i, dir := range dirs {
				if dir != "" {
					dir = filepath.Join(dir, "r")
				}
				b, err := json.Marshal(Config{Nodes: n, Trace: dir, Tables: twoTables, Member: &Member{Run: "r", Rank: i, Serve: i == 0, Coordinator: at, Token: "token"}})
				must(t, err)
				c, err := Open(b)
				must(t, err)
				if i == 0 {
					at = c.Address()
				}
				cs = append(cs, c)
			}
			var wg sync.WaitGroup
			for i, c := range cs {
				ready, err := c.Ready(time.Minute)
				if !ready || err != nil {
					t.Fatal(ready, err)
				}
				w := worker(t, c, 0)
				for range 20 {
					done(t, w)(w.Push(0, []int64{int64(i), 7}, make([]float32, 2*twoTables[0].Dim), 0, 1, 0, 0))
					_, err := w.Advance()
					must(t, err)
				}
			}
			for _, c := range cs {
				wg.Go(func() {
					if over, err := c.Close(time.Minute); !over || err != nil {
						t.Error(over, err)
					}
				})
			}
			wg.Wait()
			if dirs[0] == "" {
				return // they have ended well
			}
			all, err := trace.Open(dirs[0])
			must(t, err)
			r, err := record.Open(dirs[0])
			must(t, err)
			for i, dir := range dirs {
				if dir == "" {
					if i < len(r.Nodes) && r.Nodes[i] != nil {
						t.Errorf("there is a record of rank %d", i)
					}
					continue
				}
				own, err := trace.Open(dir)
				must(t, err)
				count := func(tr *trace.Trace) (events int) {
					must(t, tr.Events(godwit.NodeID(i), func(trace.Event) bool { events++; return true }))
					return events
				}
				if got, want := count(all), count(own); got == 0 || got > want {
					t.Errorf("rank 0 has %d events of rank %d, which had %d", got, i, want)
				}
				if s := r.Nodes[i].Samples; len(s) == 0 || s[len(s)-1].Items != 20 {
					t.Errorf("rank 0 has the samples %+v of rank %d", s, i)
				}
			}
			for _, e := range r.Events {
				if e.Warning != "" {
					t.Errorf("warning: %s", e.Warning)
				}
			}
		})
	}
}

// What rank 0 could not take is among the events of the run, and the program has no error.
func TestRankZeroWarnsOfRecordsThatItLacks(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "r")
	c := open(t, Config{Trace: dir, Tables: twoTables})
	if ready, err := c.Ready(time.Minute); !ready || err != nil {
		t.Fatal(ready, err)
	}
	c.collector = recording.NewCollector(dir, c.record.Header(), c.record.Tables)
	c.answer(0, []byte{1, 0, '{'}) // no record of a node
	if over, err := c.Close(time.Minute); !over || err != nil {
		t.Fatal(over, err)
	}
	r, err := record.Open(dir)
	must(t, err)
	if n := len(r.Events); n != 3 || !strings.Contains(r.Events[1].Warning, "node 0 sends its record: ") {
		t.Errorf("the events are %+v", r.Events)
	}
}
