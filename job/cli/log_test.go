package cli

import (
	"log/slog"
	"strings"
	"testing"
)

// Warnings have their level, messages of packages go the same way, and text is what it was.
func TestMessagesAreLinesOrJSON(t *testing.T) {
	before := slog.Default()
	t.Cleanup(func() { slog.SetDefault(before); logger.Store(nil); plainLogger.Store(nil) })
	var text strings.Builder
	(&printer{people: &text}).warn("the disk is full")
	if text.String() != "warning: the disk is full\n" {
		t.Errorf("%q", text.String())
	}
	var w strings.Builder
	if err := logTo(&w, jsonLog); err != nil {
		t.Fatal(err)
	}
	say(nil, slog.LevelInfo, "policy adaptive")
	logAs("r", 3)
	logAs("r", 4) // the next run of a command
	(&printer{people: &text}).warn("the disk is full")
	slog.Warn("of a package")
	lines := strings.Split(w.String(), "\n")
	for i, want := range []string{`"level":"INFO","msg":"policy adaptive"}`, `"level":"WARN","msg":"the disk is full","run":"r","node":4}`, `"level":"WARN","msg":"of a package","run":"r","node":4}`, ""} {
		if !strings.HasSuffix(lines[i], want) {
			t.Errorf("%q, want %q", lines[i], want)
		}
	}
}
