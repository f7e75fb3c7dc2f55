package libsvm

import "github.com/godwit-ps/godwit/data/fingerprint"

// Fingerprint is equal for equal splits.
func (s *Splits) Fingerprint() string {
	var h fingerprint.Hash
	for _, set := range s.sets() {
		if *set == nil {
			h.Number(-1)
		} else {
			(*set).feed(&h)
		}
	}
	return h.String()
}

func (s *Set) feed(h *fingerprint.Hash) {
	h.Number(s.Width)
	h.Number(s.Len())
	for i := range s.Len() {
		positive, features, values := s.Row(i)
		label := 2 * len(features)
		if positive {
			label++
		}
		h.Number(label)
		for k, f := range features {
			h.ID(f)
			h.Float(values[k])
		}
	}
}
