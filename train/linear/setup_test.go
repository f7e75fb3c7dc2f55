package linear

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/libsvm"
	"github.com/godwit-ps/godwit/internal/traintest"
	"github.com/godwit-ps/godwit/train"
)

// generated returns examples with a sparse truth, of which a fifth each is for
// validation and tests.
func generated(t testing.TB, change func(*libsvm.Spec)) *libsvm.Splits {
	t.Helper()
	s := libsvm.DefaultSpec()
	s.Examples, s.Features, s.Relevant = 4000, 500, 40
	if change != nil {
		change(&s)
	}
	set, err := libsvm.Generate(s)
	if err != nil {
		t.Fatal(err)
	}
	x := &libsvm.Splits{Train: set}
	x.HoldOut(libsvm.Share{Valid: 4, Test: 5})
	return x
}

// realData loads a real data set, or skips the test.
func realData(t testing.TB, name string, share libsvm.Share) *libsvm.Splits {
	t.Helper()
	dir := os.Getenv("GODWIT_DATA")
	if dir == "" {
		t.Skip("GODWIT_DATA is not set: it names a folder with linear/" + name)
	}
	s, err := libsvm.LoadSplits(filepath.Join(dir, "linear", filepath.FromSlash(name)), libsvm.Options{}, share)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// served makes a server of a task's tables. A table in front moves the keys, so
// that keys and rows differ.
func served(t testing.TB, tables []godwit.Table, nodes, perNode int) *traintest.Server {
	t.Helper()
	m, err := godwit.NewModel(append([]godwit.Table{{Name: "other", Rows: 7, Dim: 3}}, tables...)...)
	if err != nil {
		t.Fatal(err)
	}
	return traintest.NewServer(m, nodes, perNode, 1)
}

func newTask(t testing.TB, c Config, data *libsvm.Splits) *Task {
	t.Helper()
	task, err := New(c, data)
	if err != nil {
		t.Fatal(err)
	}
	return task
}

// anyTask is either of the package's.
type anyTask[D any] interface {
	train.Task[D]
	Tables() []godwit.Table
}

// trained trains a task on so many nodes with a worker each, and returns the
// reports and a worker.
func trained[D any](t testing.TB, task anyTask[D], nodes int, o train.Options) ([]*train.Report, []train.Env) {
	t.Helper()
	s := served(t, task.Tables(), nodes, 2)
	x := traintest.NewExchange(nodes)
	reports, envs := make([]*train.Report, nodes), make([]train.Env, nodes)
	var wg sync.WaitGroup
	for node := range nodes {
		wg.Go(func() {
			envs[node] = train.Env{Workers: s.Workers(node), Node: node, Nodes: nodes, Exchange: x.Of(node), Ask: x.Ask(node), Serve: x.Serve}
			r, err := train.Run(t.Context(), envs[node], task, o)
			if err != nil {
				t.Errorf("node %d: %v", node, err)
			}
			reports[node] = r
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return reports, envs
}

// evaluatedBy is what all nodes find, together.
func evaluatedBy(t testing.TB, m *model, envs []train.Env, set *libsvm.Set) Quality {
	t.Helper()
	qs := make([]Quality, len(envs))
	var wg sync.WaitGroup
	for node := range envs {
		wg.Go(func() {
			var err error
			if qs[node], err = m.EvaluateOn(t.Context(), &envs[node], "test", set); err != nil {
				t.Errorf("node %d: %v", node, err)
			}
		})
	}
	wg.Wait()
	for node, q := range qs {
		if q != qs[0] {
			t.Errorf("node %d finds %+v, node 0 %+v", node, q, qs[0])
		}
	}
	return qs[0]
}
