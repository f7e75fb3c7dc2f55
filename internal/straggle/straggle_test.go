package main

import (
	"context"
	"io"
	"strings"
	"testing"
)

// Nothing is measured then: the context has ended.
func TestArgumentsThatAreNoFlagsAreRefused(t *testing.T) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	err := (&options{nodes: 2, epochs: 2, rounds: 1, share: 1, slow: 1, args: []string{"kge"}}).measure(ended, io.Discard)
	if err == nil || !strings.Contains(err.Error(), `unexpected argument "kge"`) {
		t.Errorf("%v, want the argument named", err)
	}
}
