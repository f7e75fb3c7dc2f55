// Package hint tells the processor what it could not guess: which memory will be
// accessed soon, and that a loop only waits. Hints change no result, and on
// processors that take none they do nothing.
package hint
