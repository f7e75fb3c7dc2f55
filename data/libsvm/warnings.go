package libsvm

import (
	"fmt"

	"github.com/godwit-ps/godwit/data/lines"
)

// Warnings returns properties of the splits that may spoil a model or make its metrics
// misleading, a sentence each.
func (s *Splits) Warnings() (warnings []string) {
	if s.mended > 0 {
		warnings = append(warnings, lines.Replaced(s.mended))
	}
	for _, x := range []struct {
		name string
		set  *Set
	}{{"validate", s.Valid}, {"test", s.Test}} {
		if n := x.set.Len(); n > 0 && x.set.oneLabel() {
			warnings = append(warnings, fmt.Sprintf("all %d examples to %s have the label %s: the figures of them say little", n, x.name, x.set.label(x.set.Labels[0])))
		}
	}
	return warnings
}

func (s *Set) oneLabel() bool {
	for _, l := range s.Labels {
		if l != s.Labels[0] {
			return false
		}
	}
	return true
}

// label returns how a label is written.
func (s *Set) label(y float32) string {
	if len(s.Classes) == 0 {
		return nameOf(y)
	}
	return s.Classes[int(y)]
}
