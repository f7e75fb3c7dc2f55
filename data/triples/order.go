package triples

import "fmt"

// This file finds files whose columns have another order than head, relation, tail. Read in
// the wrong order, they make a graph that trains without a word and means nothing.

// checkOrder refuses a graph of which the names of relations are entities of one side,
// while the names of the other side occur nowhere else: these are the relations.
func (g *Graph) checkOrder(path string) error {
	head, tail := make([]bool, len(g.Entities)), make([]bool, len(g.Entities))
	for _, t := range g.Train {
		head[t.S], tail[t.O] = true, true
	}
	number := make(map[string]int, len(g.Entities))
	for i, name := range g.Entities {
		if head[i] && tail[i] {
			return nil
		}
		number[name] = i
	}
	asHead, asTail := 0, 0
	for _, name := range g.Relations {
		if i, ok := number[name]; ok && head[i] {
			asHead++
		} else if ok {
			asTail++
		}
	}
	var order string
	switch {
	case asTail > 0 && asHead == 0 && 10*asTail >= len(g.Relations):
		order = "relation,head,tail"
	case asHead > 0 && asTail == 0 && 10*asHead >= len(g.Relations):
		order = "head,tail,relation"
	default:
		return nil
	}
	return fmt.Errorf("triples: %s: no name is both a head and a tail, but %d of %d relations have names of entities: the columns seem to be %s; say which they are (--columns)",
		path, asHead+asTail, len(g.Relations), order)
}

// oddOrder warns of a graph with more relations than heads or tails.
func (g *Graph) oddOrder() string {
	const many = 50
	if g.ordered || len(g.Relations) < many {
		return ""
	}
	head, tail := make([]bool, len(g.Entities)), make([]bool, len(g.Entities))
	heads, tails := 0, 0
	for _, t := range g.Train {
		if !head[t.S] {
			head[t.S] = true
			heads++
		}
		if !tail[t.O] {
			tail[t.O] = true
			tails++
		}
	}
	if r := len(g.Relations); r > heads || r > tails {
		return fmt.Sprintf("the facts have %d different relations, and %d heads and %d tails: are the columns head, relation and tail, in this order? (--columns)", r, heads, tails)
	}
	return ""
}
