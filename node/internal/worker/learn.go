package worker

import (
	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/node/internal/shards"
	"github.com/godwit-ps/godwit/placement"
)

// A lesson is what a worker tells the shards of accesses that nobody announced, under a policy
// that learns from them (placement.LearningPolicy).
type lesson struct {
	teacher shards.Teacher
	misses  bool // the policy learns from what is not here,
	uses    bool // … and keeps copies of what is used: a table is relaxed
	pulls   uint // that were served at copies
}

func (g *Group) lesson() lesson {
	learns := placement.Learns(g.Policy) && !g.Links.Alone()
	return lesson{teacher: g.Rows.Teacher(g.Links.Nodes()), misses: learns, uses: learns && anyRelaxed(g.Model)}
}

func anyRelaxed(m *godwit.Model) bool {
	for i := range m.Tables() {
		if m.Table(i).Relaxed {
			return true
		}
	}
	return false
}

// usesEvery is of how many pulls that were served at copies the keys of one are counted as uses.
// Pushes to copies are counted where they are made, but pulls leave no trace there.
const usesEvery = 16

// sampleUses tells the shards, now and then, which keys the worker pulls here: a copy that the
// node asked for by itself goes when nobody uses it.
func (w *Worker) sampleUses(keys []godwit.Key) {
	if w.lesson.pulls++; w.lesson.pulls%usesEvery == 0 {
		w.g.Rows.Used(keys, usesEvery)
	}
}
