package recording

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/node"
	"github.com/godwit-ps/godwit/telemetry/record"
	"github.com/godwit-ps/godwit/telemetry/trace"
)

// Samples whose time is before that of the one before are none, so the clock of the machine does not count.
func TestTheTimesOfSamplesDoNotFollowAClockThatIsSetBack(t *testing.T) {
	begin := time.Now()
	r := &Node{begin: begin, header: record.Header{Start: begin.Add(time.Hour).UnixNano()}} // as if it had been set back by an hour
	if age := r.age(); age < 0 || age > int64(time.Hour) {
		t.Errorf("a record that has just begun is %v old", time.Duration(age))
	}
}

// In the first seconds of a run there are new keys in each sample, and few to look at.
func TestTheFirstSamplesHaveACensusEach(t *testing.T) {
	for sample := range 3 * censusEvery {
		if want := sample < censusEvery || sample == censusEvery || sample == 2*censusEvery; counts(sample) != want {
			t.Errorf("sample %d has a census: %v, want %v", sample, counts(sample), want)
		}
	}
}

// What the record begins to lack is told while the node runs, once, and at the end anew.
func TestWhatARecordLacksIsToldWhenThatBegins(t *testing.T) {
	dir := t.TempDir()
	m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 10, Dim: 1})
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	r, err := Begin(Config{Dir: dir, Header: header(0), Model: m, Warn: func(err error) { told = append(told, err.Error()) }})
	if err != nil {
		t.Fatal(err)
	}
	run, err := node.Local(t.Context(), 1, node.Config{Model: m, Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close(t.Context())
	r.of = run.Nodes[0]
	r.take()
	if len(told) > 0 {
		t.Errorf("of a record that lacks nothing: %q", told)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	r.take()
	r.take()
	if len(told) != 1 || !strings.Contains(told[0], "was removed or renamed") {
		t.Errorf("%q, want one warning that the folder was removed", told)
	}
	if err := r.Close(); err == nil || !strings.Contains(err.Error(), "was removed or renamed") {
		t.Errorf("at the end: %v", err)
	}
}

// Files of a folder that was removed take all that is written, and nobody has it: that is told at the end, of each node.
func TestAFolderThatWasRemovedIsTold(t *testing.T) {
	all := t.TempDir()
	m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 10, Dim: 1})
	if err != nil {
		t.Fatal(err)
	}
	begin := func() *Node {
		r, err := Begin(Config{Dir: all, Header: header(0), Model: m})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	r, c := begin(), NewCollector(all, header(0), tables)
	s := newSender(t.TempDir(), header(1), false)
	s.start(asks(c, 1), nil)
	until(t, "the record began", func() bool { return len(files(t, all, 1, ".samples")) > 0 })
	if err := os.RemoveAll(all); err != nil {
		t.Fatal(err)
	}
	for node, err := range []error{r.Close(), c.Close()} {
		if want := trace.NodeDir(all, godwit.NodeID(node)) + " was removed or renamed"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("node %d: %v, want %s", node, err, want)
		}
	}
	s.cancel()
	if err := begin().Close(); err != nil {
		t.Errorf("a folder that is there: %v", err)
	}
}
