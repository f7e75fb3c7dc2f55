package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godwit-ps/godwit/data/export"
	"github.com/godwit-ps/godwit/internal/seedtest"
	"github.com/godwit-ps/godwit/job"
	"github.com/godwit-ps/godwit/job/cli"
)

func TestAnExportThatCannotBeWrittenIsRefusedBeforeTraining(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, mine := filepath.Join(dir, "file"), filepath.Join(dir, "mine")
	if err := errors.Join(os.WriteFile(file, nil, 0o666), os.MkdirAll(filepath.Join(mine, "thesis"), 0o777)); err != nil {
		t.Fatal(err)
	}
	for where, want := range map[string]string{
		file:                     "is a file",
		filepath.Join(file, "x"): "not a directory",
		mine:                     "thesis",
		"/proc/x":                "/proc",
		".":                      "current folder",
	} {
		for _, nodes := range []string{"1", "2"} {
			code, out, errs := run(t, with("--epochs", "100000", "--nodes", nodes, "--json", "--export", where)...)
			if code != cli.Failure || out != "" || !strings.Contains(errs, want) {
				t.Errorf("%s, %s nodes: exit code %d, want %d and to hear of %q:\n%s%s", where, nodes, code, cli.Failure, want, out, errs)
			}
		}
	}
}

func TestAModelThatCannotBeWrittenIsNamedWhereItIs(t *testing.T) {
	t.Parallel()
	temp, dir := t.TempDir(), filepath.Join(t.TempDir(), "model")
	p := prepare(t, with("--nodes", "2", "--epochs", "100000", "--json", "--export", dir)...)
	p.cmd.Env = append(os.Environ(), "TMPDIR="+temp)
	p.start()
	p.until("an epoch", isEpoch)
	if err := os.MkdirAll(filepath.Join(dir, "thesis"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	r := p.until("the result", isResult).Result
	p.exits(cli.Failure, limit)
	if _, errs := p.said(); !strings.Contains(errs, r.Exported) || !strings.Contains(errs, "thesis") || !strings.HasPrefix(r.Exported, temp) {
		t.Errorf("exported to %s, and it says\n%s", r.Exported, errs)
	}
	if m, err := export.Read(r.Exported); err != nil || m.Verify(r.Exported, "entities.npy") != nil {
		t.Errorf("the rescued model is %+v, %v", m, err)
	}
}

// A sketch is soon trained, and takes some time to write.
func TestAKilledExportLeavesTheOldModelOrTheNewOne(t *testing.T) {
	t.Parallel()
	random := seedtest.Rand(t)
	up := t.TempDir()
	dir := filepath.Join(up, "model")
	found := map[uint64]int{}
	const runs = 20
	var took time.Duration // from the begin of an export to its end, where nobody kills it
	for i := range uint64(runs) {
		p := start(t, "train", "sketch", "--items", "1000", "--distinct", "100", "--width", "131072", "--untrained=false",
			"--seed", fmt.Sprint(i), "--json", "--export", dir)
		p.until("the evaluation", func(e job.Event) bool { return e.Evaluation != nil })
		for !exporting(t, up) && !ended(p) {
			time.Sleep(100 * time.Microsecond)
		}
		began := time.Now()
		if i == 0 {
			<-p.done
			took = time.Since(began)
		}
		time.Sleep(time.Duration(random.Float64() * 1.2 * float64(took)))
		_ = p.cmd.Process.Kill() // it may have ended
		<-p.done
		m, err := export.Read(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range m.Files {
			if err := m.Verify(dir, f.Name); err != nil {
				t.Error(err)
			}
		}
		found[m.Run.Seed]++
	}
	t.Logf("an export takes %v; of %d runs, the models of %d were there", took, runs, len(found))
	if code, _, errs := run(t, "train", "sketch", "--items", "1000", "--distinct", "100", "--export", dir, "--quiet"); code != cli.OK {
		t.Errorf("after all that, exit code %d\n%s", code, errs)
	}
	if left, err := os.ReadDir(up); err != nil || len(left) != 1 {
		t.Errorf("beside the model there are %v, %v", left, err)
	}
}

// exporting reports whether a set is being written beside a folder.
func exporting(t *testing.T, up string) bool {
	entries, err := os.ReadDir(up)
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(entries, func(e os.DirEntry) bool { return strings.Contains(e.Name(), ".godwit-") })
}

func ended(p *proc) bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func TestVectorsThatWereCopiedInPartAreNoticed(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "model")
	if code, _, errs := run(t, with("--export", dir, "--quiet")...); code != cli.OK {
		t.Fatalf("exit code %d\n%s", code, errs)
	}
	names, err := os.ReadFile(filepath.Join(dir, "entities.txt"))
	if err != nil {
		t.Fatal(err)
	}
	name := strings.Fields(string(names))[0]
	if code, out, errs := within(t, "nearest", dir, name); code != cli.OK {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
	if err := os.WriteFile(filepath.Join(dir, "entities.txt"), append(names[:len(names)-2], 'x', '\n'), 0o666); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := within(t, "nearest", dir, name); code != cli.Failure || !strings.Contains(errs, "entities.txt is not the file") {
		t.Errorf("changed names: exit code %d, %s", code, errs)
	}
	if code, _, errs := within(t, "nearest", filepath.Join(dir, "entities.npy"), name); code != cli.OK {
		t.Errorf("a file by itself is taken as it is: exit code %d, %s", code, errs)
	}
}

func TestOtherDataAtAnotherNodeAreNamed(t *testing.T) {
	t.Parallel()
	folders := [2]string{t.TempDir(), t.TempDir()}
	for i, dir := range folders {
		for _, split := range []string{"train", "valid", "test"} {
			text := fmt.Sprintf("a\tr\tb\nb\tr\tnode%d\n", i)
			if err := os.WriteFile(filepath.Join(dir, split+".txt"), []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	lead := start(t, "train", "kge", "--workers", "1", "--epochs", "1", "--nodes", "2", "--await", "--listen", "127.0.0.1:0", "--etcd-listen", "127.0.0.1:0", "--json", "--data", folders[0])
	w := lead.until("the call for nodes", func(e job.Event) bool { return e.Waiting != nil })
	if w.Time.IsZero() {
		t.Errorf("it tells no time: %+v", w)
	}
	other := startAs(t, w.Waiting.Token, "node", "--etcd", w.Waiting.Endpoints[0], "--run", w.Run, "--data", folders[1])
	for _, p := range []*proc{lead, other} {
		p.exits(cli.Failure, limit)
		if _, errs := p.said(); !strings.Contains(errs, "nodes differ: the data of this one") || !strings.Contains(errs, "same data") {
			t.Errorf("it says\n%s", errs)
		}
	}
}
