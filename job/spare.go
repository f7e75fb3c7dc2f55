package job

import (
	"os"
	"runtime"
	"time"

	"github.com/godwit-ps/godwit/internal/host"
)

// A spare is what processors could do beside training, and what evaluations take. It belongs to the goroutine that trains.
type spare struct {
	used, waited time.Duration // of this process, at the last call: processor time, and waits for processors
	took, busy   time.Duration // the last epoch: on the wall, and how much processor time training took or waited for
	evaluation   time.Duration // what the last evaluation that held up training took of processor time; 0: there was none
	beside       time.Duration // what the evaluation takes that takes place beside the epoch, in this process; 0: there is none
	// relaying is how long it took the leader to get the rows of the last cut that was held; 0: there was none. Who
	// takes the cut sets it, before the evaluation is done.
	relaying time.Duration
}

// since returns processor time, and waits for processors, since the last call.
func (s *spare) since() (used, waited time.Duration) {
	u, w := host.ProcessorTime(), host.ProcessorWait()
	used, waited = u-s.used, max(0, w-s.waited)
	s.used, s.waited = u, w
	return used, waited
}

// begin takes note that training begins.
func (s *spare) begin() { s.since() }

// trained takes note of an epoch.
func (s *spare) trained(took time.Duration) {
	used, waited := s.since()
	s.took, s.busy, s.beside = took, used+waited-s.beside, 0 // about
}

// evaluated takes note of an evaluation that held up training.
func (s *spare) evaluated() { s.evaluation, _ = s.since() }

// load returns what other nodes must know of it.
func (s *spare) load() load {
	return load{
		Host: hostname(), PID: os.Getpid(), Processors: runtime.GOMAXPROCS(0), Available: host.Available(),
		Took: s.took, Busy: s.busy, Evaluation: s.evaluation, Relaying: s.relaying,
	}
}

// A load is what a node's process did in the last epoch, and what it has. Durations are as in spare.
type load struct {
	Host       string        `json:"host"` // the name of the machine
	PID        int           `json:"pid"`  // the process, on that machine
	Processors int           `json:"processors"`
	Available  uint64        `json:"available"` // bytes of memory
	Took       time.Duration `json:"took"`
	Busy       time.Duration `json:"busy"`
	Evaluation time.Duration `json:"evaluation"`
	Relaying   time.Duration `json:"relaying"`
}

// sameProcess reports whether two nodes are in one process.
func (l load) sameProcess(as load) bool { return l.Host == as.Host && l.PID == as.PID }

// suffices reports whether the last epoch left so many processors of a node's machine idle for as long as an evaluation takes all nodes, and
// was longer than getting the rows takes. Cost is what an evaluation takes.
func (l load) suffices(all []load) (cost time.Duration, ok bool) {
	idle := time.Duration(l.Processors) * l.Took
	for i, x := range all {
		if counted(all[:i], x) {
			continue
		}
		cost += x.Evaluation
		if x.Host == l.Host {
			idle -= x.Busy
		}
	}
	return cost, cost > 0 && idle >= cost && l.Relaying <= l.Took
}

// counted reports whether the process of a node is among those of others.
func counted(others []load, l load) bool {
	for _, x := range others {
		if x.sameProcess(l) {
			return true
		}
	}
	return false
}
