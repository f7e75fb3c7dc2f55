package planner

import (
	"log/slog"

	"github.com/godwit-ps/godwit"
)

// An idleClock notices a worker that announces what it will do in later steps and
// never says that it has come to them: without Advance, no such intent is acted on
// in time, and everything works and is slow. It belongs to the worker's goroutine.
type idleClock struct {
	worker godwit.WorkerID
	calls  uint64 // that the worker had made at its last announcement
	turns  int    // announcements with calls in between
	told   bool   // the clock has advanced, or the warning was given
}

// idleTurns is how often a worker takes turns at announcing for a later clock and
// accessing keys, at clock 0, until it is told. A first step that does so a thousand
// times would be a strange one.
const idleTurns = 1000

// announced is told of an intent, and how many calls the worker has made.
func (c *idleClock) announced(start godwit.Clock, calls uint64) {
	if c.told || start <= 0 || calls == c.calls {
		return
	}
	c.calls = calls
	if c.turns++; c.turns < idleTurns {
		return
	}
	c.told = true
	slog.Warn("godwit: a worker announces intents for later clocks and has never called Advance: none of them is acted on; call Advance after each step",
		"worker", c.worker.String(), "intents", c.turns, "calls", calls, "clock", 0)
}
