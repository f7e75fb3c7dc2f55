package main

import (
	"context"
	"io"
	"strings"
	"testing"
)

// Nothing is run then: the context has ended.
func TestArgumentsThatAreNoFlagsAreRefused(t *testing.T) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	err := (&options{nodes: 2, epochs: 3, seeds: 1, args: []string{"kge"}}).run(ended, io.Discard)
	if err == nil || !strings.Contains(err.Error(), `unexpected argument "kge"`) {
		t.Errorf("%v, want the argument named", err)
	}
}
