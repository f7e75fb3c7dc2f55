package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
)

// Formats of what is said on stderr.
const (
	textLog = "text" // lines for people
	jsonLog = "json" // a JSON object a line, as package log/slog writes it
)

// A logger is where messages go as JSON; nil: they are lines for people.
var logger, plainLogger atomic.Pointer[slog.Logger] // with and without the names of run and node

// logTo sets the format of what this process says on stderr, and of what its packages tell package
// log/slog.
func logTo(w io.Writer, format string) error {
	switch format {
	case textLog, "":
		return nil
	case jsonLog:
		l := slog.New(slog.NewJSONHandler(w, nil))
		slog.SetDefault(l)
		logger.Store(l)
		plainLogger.Store(l)
		return nil
	}
	return fmt.Errorf("--log-format %q: want %s or %s", format, textLog, jsonLog)
}

// logAs has messages name the run and the node that they are of.
func logAs(run string, node int) {
	if l := plainLogger.Load(); l != nil {
		l = l.With("run", run, "node", node)
		slog.SetDefault(l)
		logger.Store(l)
	}
}

// say writes a message to w, as a line or as JSON.
func say(w io.Writer, level slog.Level, text string) {
	l := logger.Load()
	if l == nil {
		fmt.Fprintln(w, text)
		return
	}
	l.Log(context.Background(), level, strings.TrimSpace(text))
}

// complain says something on stderr under the program's name.
func complain(level slog.Level, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if logger.Load() == nil {
		text = program() + ": " + text
	}
	say(os.Stderr, level, text)
}
