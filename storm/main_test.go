package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// The seed of a storm that is cut short has not failed.
func TestAnInterruptIsNoFault(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	err := storms(ctx, 1, time.Hour)
	if !errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "-seed") {
		t.Errorf("it ends with %v", err)
	}
}
