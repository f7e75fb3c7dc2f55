package mf

import (
	"cmp"
	"slices"
)

// balance distributes items to parts such that the summed weights of each are about
// equal: the heaviest first, each to the part that has the least (Graham, SIAM
// J. Appl. Math. 17(2), 1969). It returns the part of each item, which is the
// same wherever it is computed. Items without weight are distributed, too.
func balance(weights []int, parts int) []int32 {
	byWeight := make([]int32, len(weights))
	for i := range byWeight {
		byWeight[i] = int32(i)
	}
	slices.SortStableFunc(byWeight, func(a, b int32) int { return cmp.Compare(weights[b], weights[a]) })
	of := make([]int32, len(weights))
	h := make(loads, parts)
	for i := range h {
		h[i].part = int32(i)
	}
	for _, item := range byWeight {
		of[item] = h[0].part
		h[0].weight += weights[item]
		h.sink()
	}
	return of
}

// loads is a heap with the part that has the least at its root; of equal ones
// the first.
type loads []struct {
	weight int
	part   int32
}

// sink restores the heap after the root has grown.
func (h loads) sink() {
	for i := 0; ; {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(h); c++ {
			if h.less(c, least) {
				least = c
			}
		}
		if least == i {
			return
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}

func (h loads) less(i, j int) bool {
	return h[i].weight < h[j].weight || h[i].weight == h[j].weight && h[i].part < h[j].part
}
