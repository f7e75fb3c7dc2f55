package job

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/trace"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/telemetry/flight"
	"github.com/godwit-ps/godwit/train/task"
)

// holdsProfile checks that a file is a profile: gzip, and what is in it complete.
func holdsProfile(t *testing.T, path string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Error(err)
		return
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Errorf("%s: %v", path, err)
		return
	}
	if b, err := io.ReadAll(z); err != nil || len(b) == 0 {
		t.Errorf("%s holds %d bytes, %v", path, len(b), err)
	}
}

// The nodes of a process share its profile, which is the first one's.
func TestAProfileOfTrainingIsWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "profile")
	fraction := runtime.SetMutexProfileFraction(-1)
	if _, err := Local(timeout(t), "test", tiny(2), NodeConfig{Profile: dir}); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"cpu", "mutex", "block", "allocs"} {
		holdsProfile(t, filepath.Join(dir, "node-0."+kind+".pprof"))
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 4 {
		t.Errorf("the folder holds %v, %v, want four files", files, err)
	}
	if f := runtime.SetMutexProfileFraction(-1); f != fraction {
		t.Errorf("one of %d contended unlocks is sampled after the run, of %d before", f, fraction)
	}
}

// unread are settings whose data must not be read.
type unread struct {
	*task.KGE
	t *testing.T
}

func (u unread) Load(s task.Setup) (task.Task, error) {
	u.t.Error("the data are read")
	return u.KGE.Load(s)
}

func TestAProfileThatCannotBeWrittenIsNamed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	unread := unread{task.DefaultKGE(), t} // it is found out before the data are read
	_, err := Local(timeout(t), "test", Default(unread), NodeConfig{Profile: file})
	if err == nil || !strings.Contains(err.Error(), "profile") || !strings.Contains(err.Error(), file) {
		t.Errorf("the error is %v, want one about the profile in %s", err, file)
	}

	// The folder goes while the run is on. The model is there all the same.
	dir, model := filepath.Join(t.TempDir(), "profile"), filepath.Join(t.TempDir(), "model")
	r, err := Local(timeout(t), "test", tiny(1), NodeConfig{Profile: dir, Export: model, Progress: func(e Event) {
		if e.Epoch != nil {
			_ = os.RemoveAll(dir) // an error shows below
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"cpu", "mutex", "block", "allocs"} {
		if path := filepath.Join(dir, "node-0."+kind+".pprof"); !strings.Contains(r.ProfileError, path) {
			t.Errorf("the error is %q, want one about %s", r.ProfileError, path)
		}
	}
	if r.Exported != model || !(r.Test.At("MRR") > 0) {
		t.Errorf("exported to %q, want %s; the test says %v", r.Exported, model, r.Test)
	}
}

func TestOneProfileOfAProcessIsTakenAtATime(t *testing.T) {
	dir := t.TempDir()
	p, err := startProfile(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := startProfile(dir, 1); err == nil || !strings.Contains(err.Error(), "node-1.cpu.pprof") {
		t.Errorf("the error is %v, want one about the second profile", err)
	}
	if err := p.stop(); err != nil {
		t.Error(err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 4 {
		t.Errorf("the folder holds %v, %v, want the four files of the first", files, err)
	}
}

// Where that is asked for, the runtime records what the process does, from before the node starts until after it
// has ended: also a start that fails may have waited too long.
func TestTheLastSecondsOfAProcessAreKeptWhereThatIsWanted(t *testing.T) {
	recorded := false
	attend := func(a Attended) (Attendant, error) {
		recorded = trace.IsEnabled()
		return nil, errors.New("for the test")
	}
	for _, want := range []bool{false, true} {
		if _, err := Local(timeout(t), "test", tiny(1), NodeConfig{Flight: want, Attend: attend}); err == nil || recorded != want {
			t.Errorf("wanted %v: recorded %v, %v", want, recorded, err)
		}
		if trace.IsEnabled() {
			t.Error("when the run is over, the runtime records")
		}
	}
}

func TestTheErrorOfWhoLostANodeSaysWhereIsRecordedWhatItDid(t *testing.T) {
	f, err := flight.Start(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p := &part{flight: f}
	lost := p.recorded(fmt.Errorf("for the test: %w", godwit.ErrPeerLost))
	if path := f.Write(); !errors.Is(lost, godwit.ErrPeerLost) || strings.Count(lost.Error(), path) != 1 || p.recorded(lost).Error() != lost.Error() {
		t.Errorf("%v, and then %v; want %s", lost, p.recorded(lost), path)
	}
	if err := p.recorded(context.Canceled); err != context.Canceled {
		t.Errorf("who was told to stop: %v", err)
	}
	if err := new(part).recorded(godwit.ErrPeerLost); err != godwit.ErrPeerLost {
		t.Errorf("who keeps nothing: %v", err)
	}
}

// Who wanted what a process did to be written, and has a full disk, hears so, once.
func TestTheErrorOfWhoLostANodeSaysWhyNothingIsRecorded(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	f, err := flight.Start(filepath.Join(file, "below"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p := &part{flight: f}
	lost := p.recorded(fmt.Errorf("for the test: %w", godwit.ErrPeerLost))
	if again := p.recorded(lost); !errors.Is(lost, godwit.ErrPeerLost) || strings.Count(again.Error(), "could not be written: mkdir "+file) != 1 {
		t.Errorf("%v, and then %v", lost, again)
	}
}
