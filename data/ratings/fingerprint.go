package ratings

import "github.com/godwit-ps/godwit/data/fingerprint"

// Fingerprint is equal for equal sets.
func (s *Set) Fingerprint() string {
	var h fingerprint.Hash
	h.Number(s.Rows)
	h.Number(s.Cols)
	h.Texts(s.RowNames)
	h.Texts(s.ColNames)
	for _, cells := range [][]Rating{s.Train, s.Valid, s.Test} {
		h.Number(len(cells))
		for _, x := range cells {
			h.ID(x.Row)
			h.ID(x.Col)
			h.Float(x.Value)
		}
	}
	return h.String()
}
