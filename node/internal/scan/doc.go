// Package scan is how a node's workers list the keys in use: they ask the homes of keys,
// which know those that are homed there, an answer at a time, and merge what these say.
//
// It owns the scans that workers have open ([Questions], and [Scans] of each worker), and
// the questions of other nodes that wait here ([Answers]): an answer may be long, and
// questions are short, so they are answered while there is room in the queue to who asks,
// and wait for it else. Both are bounded: a node may have so many scans open at one home.
//
// Goroutines and locks: no goroutine. A worker's scans are begun and ended by its own
// goroutine; whoever takes the frames of a home adds what it says, under the lock of the
// worker's scans, under which the next question is sent: it is taken before those of links.
// The lock of the questions that wait is taken alone.
//
// It calls package protocol, which answers a question and judges an answer, sends by
// package link, and waits by package host. The node's rounds call [Answers] as a stage. One function crosses upwards: a node that asks
// for what cannot be is told to who ends the run (NewAnswers). It never reads rows, and
// knows nothing of operations.
package scan
