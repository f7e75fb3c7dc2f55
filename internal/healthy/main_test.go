package main

import (
	"context"
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
