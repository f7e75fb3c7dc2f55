package job

import (
	"testing"
	"time"
)

func TestEvaluationsTakePlaceBesideTrainingWhereProcessorsHaveTime(t *testing.T) {
	const s = time.Second
	node := func(host string, pid int, busy, evaluation time.Duration) load {
		return load{Host: host, PID: pid, Processors: 2, Took: 10 * s, Busy: busy, Evaluation: evaluation}
	}
	slow := node("a", 1, 10*s, 2*s)
	slow.Relaying = 11 * s
	for _, x := range []struct {
		what  string
		nodes []load // the first leads
		want  bool
	}{
		{"nobody knows what one takes", []load{node("a", 1, 10*s, 0)}, false},
		{"it was busy", []load{node("a", 1, 19*s, 2*s)}, false},
		{"it had just the time", []load{node("a", 1, 18*s, 2*s)}, true},
		{"it is too long", []load{node("a", 1, 10*s, 11*s)}, false},
		{"another machine was busy", []load{node("a", 1, 10*s, 2*s), node("b", 1, 20*s, 2*s)}, true},
		{"another process of the machine was busy", []load{node("a", 1, 10*s, s), node("a", 2, 9*s, s)}, false},
		{"another process of the machine was less busy", []load{node("a", 1, 10*s, s), node("a", 2, 8*s, s)}, true},
		{"all nodes together take too long", []load{node("a", 1, 10*s, 6*s), node("b", 1, s, 6*s)}, false},
		{"nodes of one process count once", []load{node("a", 1, 10*s, 6*s), node("a", 1, 10*s, 6*s)}, true},
		{"rows came for longer than an epoch", []load{slow, node("b", 1, s, s)}, false},
	} {
		if _, got := x.nodes[0].suffices(x.nodes); got != x.want {
			t.Errorf("%s: beside training is %v", x.what, got)
		}
	}
}
