package node

import (
	"bytes"
	"context"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/telemetry/flight"
)

// recordingIn returns the path that an error says a recording is at.
func recordingIn(t *testing.T, err error) string {
	t.Helper()
	m := regexp.MustCompile(`go tool trace (\S+)\)`).FindStringSubmatch(err.Error())
	if m == nil {
		t.Fatalf("%v: it says of no recording", err)
	}
	return m[1]
}

// Who waits too long is told where is recorded what the process did, with the worker's steps and its wait. Who
// looks now and then whether the answer is there does not wait too long.
func TestAWaitThatExceedsItsBoundIsRecorded(t *testing.T) {
	dir := t.TempDir()
	f, err := flight.Start(dir)
	must(t, err)
	t.Cleanup(f.Close)
	g := newGate()
	c := clusterOver(t, 2, Config{Model: lengths(t), Workers: 1, Policy: placement.Static, Flight: f}, g.place)
	w := c.Nodes[0].Worker(0)
	there := homedAt(t, c.Nodes[0], 1, 20)
	dst := valuesOf(w.Model(), there)
	ctx := background(t)
	w.Advance()
	g.shut(1)
	h, err := w.PullAsync(ctx, there, dst)
	must(t, err)
	soon, end := context.WithTimeout(ctx, 20*time.Millisecond)
	defer end()
	if over, err := w.(godwit.Awaiter).Await(soon, h); over || err != nil {
		t.Fatalf("over %v, %v", over, err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("after a look whether the answer is there: %v, %v", files, err)
	}
	gone, stop := context.WithCancel(ctx)
	stop()
	if err := w.Pull(gone, there, dst); err == nil || strings.Contains(err.Error(), "go tool trace") {
		t.Errorf("who was told to stop waiting: %v", err)
	}
	err = w.Wait(soon, h)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "at node 1") {
		t.Fatalf("got %v", err)
	}
	recorded, err := os.ReadFile(recordingIn(t, err))
	must(t, err)
	for _, mark := range []string{"step", "wait: answers"} {
		if !bytes.Contains(recorded, []byte(mark)) {
			t.Errorf("the recording has no %q", mark)
		}
	}
	if again := w.Push(soon, there, dst); again == nil || recordingIn(t, again) != f.Write() {
		t.Errorf("the next one: %v", again)
	}
	g.open(1)
}

// A node that is lost has kept others waiting.
func TestTheLossOfANodeIsRecorded(t *testing.T) {
	f, err := flight.Start(t.TempDir())
	must(t, err)
	t.Cleanup(f.Close)
	c := local(t, 2, Config{Model: lengths(t), Workers: 1, Policy: placement.Static, Flight: f})
	lost := errors.Join(godwit.ErrPeerLost, errors.New("for the test"))
	c.Nodes[0].run.Broke(1, lost)
	if err := c.Nodes[0].Err(); strings.Contains(err.Error(), "go tool trace") {
		t.Errorf("a peer that broke the protocol: %v", err)
	}
	<-c.Nodes[1].Done()
	if err := c.Nodes[1].Err(); !errors.Is(err, godwit.ErrPeerLost) {
		t.Errorf("got %v", err)
	} else if _, err := os.Stat(recordingIn(t, err)); err != nil {
		t.Error(err)
	}
}
