package flight

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime/trace"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func start(t *testing.T, dir string) *Recorder {
	t.Helper()
	r, err := Start(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// pass has the last file be so long ago that the next call writes another one.
func (r *Recorder) pass() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at = r.at.Add(-together)
}

// written waits for the file that was begun last.
func (r *Recorder) written() {
	r.mu.Lock()
	done := r.done
	r.mu.Unlock()
	<-done
}

func TestWhatTheProcessDidIsWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	r := start(t, dir)
	if !trace.IsEnabled() {
		t.Fatal("nothing is traced")
	}
	trace.StartRegion(t.Context(), "wait: for the test").End()
	path := r.Write()
	r.written()
	b, err := os.ReadFile(path)
	if err != nil || !bytes.HasPrefix(b, []byte("go 1.")) || !bytes.Contains(b, []byte("wait: for the test")) {
		t.Errorf("%s has %d bytes, %v", path, len(b), err)
	}
	r.Close()
	r.Close()
	if trace.IsEnabled() {
		t.Error("after the last recorder was closed, the runtime traces")
	}
	if path := r.Write(); path != "" {
		t.Errorf("a closed recorder wrote %s", path)
	}
	var none *Recorder
	none.Close()
	if none.Write() != "" {
		t.Error("no recorder wrote a file")
	}
}

// All who wait for the same thing give up at the same time; and a run that limps on must not fill the disk.
func TestFilesAreFew(t *testing.T) {
	dir := t.TempDir()
	r := start(t, dir)
	var first [8]string
	var callers sync.WaitGroup
	for i := range first {
		callers.Go(func() { first[i] = r.Write() })
	}
	callers.Wait()
	for _, path := range first {
		if path != filepath.Join(dir, "flight-1.out") {
			t.Errorf("one of several who gave up together got %q", path)
		}
	}
	var last string
	for range mostRuns {
		r.pass()
		last = r.Write()
		r.written()
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != mostRuns || last != "" {
		t.Errorf("%d files, %v; the last call returned %q", len(files), err, last)
	}
}

// Nodes of one process share what the runtime has one of.
func TestRecordersOfAProcessShareItsWindow(t *testing.T) {
	a, b := start(t, t.TempDir()), start(t, t.TempDir())
	a.Close()
	if path := b.Write(); path == "" {
		t.Error("when one recorder was closed, the other one wrote nothing")
	}
	b.Close()
	f := trace.NewFlightRecorder(trace.FlightRecorderConfig{MinAge: time.Second})
	if err := f.Start(); err != nil {
		t.Fatal(err)
	}
	defer f.Stop()
	if _, err := Start(t.TempDir()); err == nil || !strings.Contains(err.Error(), "flight: ") {
		t.Errorf("beside the program's own recorder: %v", err)
	}
}

func TestAFolderThatCannotBeWrittenGivesNoPath(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := start(t, filepath.Join(file, "below"))
	if path, err := r.Write(), r.Err(); path != "" || err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("got %s, %v", path, err)
	}
	var none *Recorder
	if err := none.Err(); err != nil {
		t.Errorf("no recorder: %v", err)
	}
}

// A recording is made when somebody waits too long, as for a disk that does not answer: that is where it is written.
func TestADiskThatDoesNotAnswerHoldsUpNoClose(t *testing.T) {
	start(t, t.TempDir()) // the runtime traces outside of the bubble
	synctest.Test(t, func(t *testing.T) {
		r, err := Start("none")
		if err != nil {
			t.Fatal(err)
		}
		r.writing.Add(1) // a file that the disk does not take
		begin := time.Now()
		r.Close()
		if took := time.Since(begin); took != ending {
			t.Errorf("took %v", took)
		}
		r.writing.Done()
	})
}

func TestAFileHasABound(t *testing.T) {
	var b bytes.Buffer
	w := &limited{&b, 10}
	if n, err := w.Write(make([]byte, 10)); n != 10 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := w.Write([]byte{1}); err == nil || b.Len() != 10 {
		t.Errorf("%v, %d bytes", err, b.Len())
	}
}
