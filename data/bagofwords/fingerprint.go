package bagofwords

import "github.com/godwit-ps/godwit/data/fingerprint"

// Fingerprint is equal for equal sets.
func (s *Set) Fingerprint() string {
	var h fingerprint.Hash
	h.Texts(s.Names)
	h.Number(s.Len())
	for i := range s.Len() {
		h.Number(len(s.Doc(i)))
		for _, w := range s.Doc(i) {
			h.ID(uint32(w))
		}
	}
	return h.String()
}
