package events

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/godwit-ps/godwit/job"
)

// A command's events are heard in their order, and whoever wants no more ends it.
func TestACommandsEventsAreHeardUntilSomebodyWantsNoMore(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip(err)
	}
	const script = `echo "{\"run\":\"$NAME\"}"; echo '{"run":"second"}'; exec sleep 60`
	enough := errors.New("enough")
	var runs []string
	err = Run(context.Background(), sh, []string{"-c", script}, []string{"NAME=first"}, func(e *job.Event) error {
		if runs = append(runs, e.Run); len(runs) == 2 {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) || strings.Join(runs, " ") != "first second" {
		t.Errorf("heard %q and ended with %v", runs, err)
	}
}

// Whoever wants no more does not wait for ever for a command that does not end when it is asked to.
func TestACommandThatDoesNotEndIsKilled(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip(err)
	}
	const script = `trap "" TERM; echo '{"run":"first"}'; exec sleep 60`
	enough, began := errors.New("enough"), time.Now()
	err = run(context.Background(), 100*time.Millisecond, sh, []string{"-c", script}, nil, func(*job.Event) error { return enough })
	if took := time.Since(began); !errors.Is(err, enough) || took > 30*time.Second {
		t.Errorf("after %v: %v", took, err)
	}
}
