package capi

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/godwit-ps/godwit/checkpoint"
	"github.com/godwit-ps/godwit/internal/fingerprint"
)

// This file tells people how tables differ: those of a checkpoint from those that are to begin, and those of one process from another's.

// describe tells of a table as its caller made it: without the place of the rate.
func describe(t checkpoint.Table) string {
	init, rated := strings.CutPrefix(t.Init, "unrated ")
	if rated {
		t.Dim--
	}
	return fmt.Sprintf("%d rows of %d floats, rule %s, first values %s", t.Rows, t.Dim, t.Rule, init)
}

// names returns those of the tables.
func names(tables []checkpoint.Table) []string {
	list := make([]string, len(tables))
	for i, t := range tables {
		list[i] = t.Name
	}
	return list
}

// difference tells how tables differ from what they were. They do.
func difference(old, now []checkpoint.Table) string {
	if a, b := names(old), names(now); !slices.Equal(a, b) {
		text := fmt.Sprintf("its tables were %q, and are %q now: make the same, in the same order", a, b)
		if n := min(len(a), len(b)); slices.Equal(a[:n], b[:n]) { // the others may be in another group
			text += "; and those that were made after the first access to a table again after it, others before"
		}
		return text
	}
	i := 0
	for old[i] == now[i] {
		i++
	}
	return fmt.Sprintf("table %q was %s, and is %s now: make it, and its optimizer, which gives the rule, as they were", old[i].Name, describe(old[i]), describe(now[i]))
}

// fingerprint stands for what the processes of a run must have in common.
func (c *Cluster) fingerprint() string {
	tables := checkpoint.Tables(c.cfg.Model)
	var l fingerprint.Lines
	l.Add("list of tables", "%s", strings.Join(names(tables), ", "))
	l.Add("seed", "%d", c.cfg.Seed)
	if c.cfg.Policy != nil {
		l.Add("policy", "%s", c.cfg.Policy.Name())
	}
	for _, t := range tables {
		l.Add("table "+t.Name, "%s", describe(t))
	}
	return l.End(fmt.Sprintf("%x", sha256.Sum256([]byte(c.cfg.Fingerprint()))))
}
