package store

import (
	"slices"
	"testing"

	"github.com/godwit-ps/godwit"
)

// A recaller is a Recall and what its keys' rows are.
type recaller struct {
	t    *testing.T
	r    Recall
	keys []godwit.Key
	rows []*Header
}

func newRecaller(t *testing.T) *recaller {
	c := &recaller{t: t, keys: make([]godwit.Key, mostNoted+100), rows: make([]*Header, mostNoted+100)}
	for i := range c.keys {
		c.keys[i], c.rows[i] = godwit.Key(3*i), new(Header)
	}
	return c
}

// pulled pulls keys from … end-1, of a call that begins with the key at first.
func (c *recaller) pulled(what string, first, from, end int, want bool) {
	c.t.Helper()
	if !c.recalls(what, first, from, end, false, want) {
		c.r.Note(c.keys[from:end], c.rows[from:end])
	}
}

// pushed is a push of keys from … end-1, of a call that begins with the key at first.
func (c *recaller) pushed(what string, first, from, end int, want bool) {
	c.t.Helper()
	c.recalls(what, first, from, end, true, want)
}

func (c *recaller) recalls(what string, first, from, end int, push, want bool) bool {
	c.t.Helper()
	got := c.r.Rows(from-first, c.keys[from:end], push)
	if want != (got != nil) || want && !slices.Equal(got, c.rows[from:end]) {
		c.t.Errorf("%s: %d rows are recalled, of %d keys", what, len(got), end-from)
	}
	return got != nil
}

func TestRowsAreRecalledOfKeysThatWerePulled(t *testing.T) {
	c := newRecaller(t)
	c.pulled("a call", 0, 0, 20, false)
	c.pulled("its second part", 0, 20, 40, false)
	c.pulled("another call", 40, 40, 60, false)
	c.pushed("both in one", 0, 0, 60, true)
	c.pushed("a second time", 0, 0, 60, false)
	c.pulled("after pushes", 0, 0, 60, true)
	for i := 0; i < 60; i += 15 {
		c.pushed("in four", i, i, i+15, true)
	}
	c.pushed("a fifth", 60, 60, 70, false)
	c.pulled("another start", 5, 5, 20, false)
	c.pulled("more", 20, 20, 30, false)
	c.pushed("the last call", 20, 20, 30, true)
	c.pulled("shorter", 5, 5, 10, true)
	c.pulled("another one then", 50, 50, 60, false)
	c.pushed("what was pulled", 5, 5, 10, true)
	c.pushed("what was pulled then", 50, 50, 60, true)
	c.pushed("what was forgotten", 20, 20, 30, false)
}

// That keys had no rows is recalled for pushes: whether that is still so, their caller may know better.
func TestKeysWithoutRowsAreNotRecalledForPulls(t *testing.T) {
	c := newRecaller(t)
	row := c.rows[5]
	c.rows[5] = nil
	c.pulled("a call", 0, 0, 20, false)
	c.pulled("another", 20, 20, 30, false)
	c.pushed("without a row", 0, 0, 20, true)
	c.pushed("with rows", 20, 20, 30, true)
	c.rows[5] = row
	c.pulled("that has a row now", 0, 0, 20, false)
	c.pushed("that was noted anew", 0, 0, 20, true)
}

func TestManyKeysAreNotRecalled(t *testing.T) {
	c := newRecaller(t)
	for i := 0; i+128 <= len(c.keys); i += 128 {
		c.pulled("a long call", 0, i, i+128, false)
	}
	c.pushed("its beginning", 0, 0, mostNoted, true)
	c.pushed("its end", 0, mostNoted, mostNoted+50, false)
	for i := 0; i+128 <= len(c.keys); i += 128 {
		c.pulled("calls", i, i, i+128, i < mostNoted)
	}
	if len(c.r.rows) > mostNoted || len(c.r.rows) != len(c.r.keys) {
		t.Errorf("%d rows and %d keys are noted, at most %d should be", len(c.r.rows), len(c.r.keys), mostNoted)
	}
}
