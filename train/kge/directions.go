package kge

import (
	"context"

	"github.com/godwit-ps/godwit/data/triples"
	"github.com/godwit-ps/godwit/train"
)

// Directions are the [Quality] of all ranks of triples, and of each direction of
// prediction by itself.
type Directions struct {
	Both Quality // of all queries
	Head Quality // of (?, r, o)
	Tail Quality // of (s, r, ?)
}

// RankRelations ranks the triples as [Task.Rank] does, and tells apart what was predicted.
// Relations are the Directions of each relation, by its number; one without triples has no
// queries. All nodes call it as they call Rank, and get the same result.
func (t *Task) RankRelations(ctx context.Context, env *train.Env, name string, ts []triples.Triple) (all Directions, relations []Directions, err error) {
	n := len(t.graph.Relations)
	groups, err := t.rankGroups(ctx, env, name, ts, 2*n, func(x triples.Triple, subjects bool) int {
		if subjects {
			return 2*int(x.R) + 1
		}
		return 2 * int(x.R)
	})
	if err != nil {
		return Directions{}, nil, err
	}
	var tails, heads sums
	relations = make([]Directions, n)
	for r := range relations {
		tail, head := &groups[2*r], &groups[2*r+1]
		relations[r] = directions(head, tail)
		heads.merge(head)
		tails.merge(tail)
	}
	return directions(&heads, &tails), relations, nil
}

func directions(head, tail *sums) Directions {
	both := *head
	both.merge(tail)
	return Directions{both.quality(), head.quality(), tail.quality()}
}
