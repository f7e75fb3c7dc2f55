package ratings

import (
	"fmt"

	"github.com/godwit-ps/godwit/data/lines"
)

// Warnings returns properties of the parts that may spoil a model or make its metrics
// misleading, a sentence each.
func (s *Set) Warnings() (warnings []string) {
	if s.mended > 0 {
		warnings = append(warnings, lines.Replaced(s.mended))
	}
	for _, h := range s.headings {
		warnings = append(warnings, fmt.Sprintf("the first line has no number, so it is taken for names of the columns and is no cell: %s", h))
	}
	rows, cols := s.Counts()
	for _, x := range []struct {
		name  string
		cells []Rating
	}{{"validate", s.Valid}, {"test", s.Test}} {
		if n := s.known(x.cells); n > 0 {
			warnings = append(warnings, fmt.Sprintf("%d of %d cells to %s are in the row and the column of a cell to train: the model has seen them, and their errors flatter it", n, len(x.cells), x.name))
		}
		n := 0
		for _, r := range x.cells {
			if rows[r.Row] == 0 || cols[r.Col] == 0 {
				n++
			}
		}
		if n > 0 {
			warnings = append(warnings, fmt.Sprintf("%d of %d cells to %s are in a row or a column that has no cell to train: they cannot be learned", n, len(x.cells), x.name))
		}
	}
	return warnings
}
