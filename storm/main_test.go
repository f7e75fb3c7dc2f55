package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/godwit-ps/godwit/coord/etcd"
)

// The seed of a storm that is cut short has not failed.
func TestAnInterruptIsNoFault(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	time.AfterFunc(300*time.Millisecond, cancel) // no deadline: nodes that start share what is left to one, and would tell that first
	err := storms(ctx, 1, time.Hour)
	if !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "-seed") {
		t.Errorf("it ends with %v", err)
	}
}

// Of a process that does not start there is nothing to wait for, or to stop.
func TestAProcessThatDoesNotStartIsNoChild(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	x, err := startChild(ctx, 1, etcd.Access{})
	if x != nil || !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "does not start") {
		t.Errorf("%v, %v", x, err)
	}
}
