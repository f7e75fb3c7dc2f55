package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/godwit-ps/godwit/coord/etcd"
)

// TestMain lets the program of the tests be a node of a storm in processes.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "-node" {
		main()
		return
	}
	os.Exit(m.Run())
}

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
