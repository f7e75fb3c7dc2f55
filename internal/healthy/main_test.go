package main

import (
	"context"
	"io"
	"strings"
	"testing"
)

// A run that nobody could have sampled twice says nothing, and is no healthy one.
func TestWhatCannotBeTrainedIsNotHealthy(t *testing.T) {
	for _, program := range []string{"false", "true"} { // the one fails, the other writes nothing
		if in, err := train(context.Background(), program, t.TempDir(), nil); err == nil || in != nil {
			t.Errorf("%s: %v, %v", program, in, err)
		} else if program == "false" && !strings.Contains(err.Error(), "false train") {
			t.Errorf("the error does not name the command: %v", err)
		}
	}
}

// Nothing is run then: the context has ended.
func TestArgumentsThatAreNoFlagsAreRefused(t *testing.T) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	err := count(ended, io.Discard, &options{rounds: 1, args: []string{"kge"}})
	if err == nil || !strings.Contains(err.Error(), `unexpected argument "kge"`) {
		t.Errorf("%v, want the argument named", err)
	}
}

// Of no runs none has a finding, which would be taken for health.
func TestNoRunsAreRefused(t *testing.T) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	err := count(ended, io.Discard, &options{nodes: "2", tasks: "kge"})
	if err == nil || !strings.Contains(err.Error(), "-rounds 0") {
		t.Errorf("%v, want -rounds named", err)
	}
}
