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
	kinds := len(s.Classes)
	if kinds != 2 {
		h.Number(kinds)
	}
	for i := range s.Len() {
		label, features, values := s.Row(i)
		if kinds == 0 {
			h.Float(label)
		}
		h.Number(max(kinds, 1)*len(features) + s.class(label))
		for k, f := range features {
			h.ID(f)
			h.Float(values[k])
		}
	}
}

// class is the number of a class; 0 where there are none.
func (s *Set) class(label float32) int {
	if len(s.Classes) == 0 {
		return 0
	}
	return int(label)
}
