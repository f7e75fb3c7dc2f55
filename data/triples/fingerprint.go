package triples

import "github.com/godwit-ps/godwit/data/fingerprint"

// Fingerprint is equal for equal graphs.
func (g *Graph) Fingerprint() string {
	var h fingerprint.Hash
	h.Texts(g.Entities)
	h.Texts(g.Relations)
	for _, split := range g.splits() {
		h.Number(len(*split))
		for _, t := range *split {
			h.ID(t.S)
			h.ID(t.R)
			h.ID(t.O)
		}
	}
	return h.String()
}
