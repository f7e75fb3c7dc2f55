package cli

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"github.com/godwit-ps/godwit/job"
	served "github.com/godwit-ps/godwit/telemetry/metrics"
	"github.com/godwit-ps/godwit/telemetry/trace"
)

// watching is how nodes are watched, as flags say it.
type watching struct {
	metrics   string // where; empty: nowhere
	pprof     bool
	trace     string // folder; empty: none
	keys      string // that are traced
	dashboard string // where; empty: nowhere
	logs      string // format of what is said on stderr
	spread    bool   // the nodes of this machine share the address: node N listens N ports further on
}

func (w *watching) flags() Group {
	g := NewGroup("Watching")
	g.StringVar(&w.metrics, "metrics", "", "`host:port` at which Prometheus reads what a node does, and /healthz and /readyz are; without a host, loopback; of nodes that this command starts, node N listens N ports further on")
	g.BoolVar(&w.pprof, "pprof", false, "serve profiles of the process there as well, at /debug/pprof/, and write down what it did in its last seconds when a wait exceeds its bound")
	g.StringVar(&w.trace, "trace", "", "`folder` to write the life of keys to, in a folder of the run's name: who owned them, had copies, and accessed them, see 'godwit explain'")
	g.StringVar(&w.keys, "trace-keys", "", "which `keys` to trace: \"random=1000\" for so many, \"table:row\" for one, by commas (default: 100000 at random, or all of fewer)")
	g.StringVar(&w.logs, "log-format", textLog, "`format` of what is said on stderr: text, or json, which has a JSON object a line with time, level, msg, run and node")
	return g
}

// showing are the flags of a command that begins runs and shows them.
func (w *watching) showing() Group {
	g := w.flags()
	g.StringVar(&w.dashboard, "dashboard", "", "show the run in a browser while it lasts, at `host:port`; without one, at a free port of loopback")
	g.Lookup("dashboard").NoOptDefVal = anyPort
	return g
}

// check says what is wrong with the flags.
func (w *watching) check() error {
	if err := logTo(os.Stderr, w.logs); err != nil {
		return err
	}
	if w.trace == "" && w.dashboard == "" && w.keys != "" {
		return fmt.Errorf("--trace-keys says which keys --trace traces: give that too")
	}
	if err := trace.CheckKeys(w.keys); err != nil {
		return fmt.Errorf("--trace-keys: %w", err)
	}
	if w.trace != "" {
		dir, err := filepath.Abs(w.trace)
		if err != nil {
			return fmt.Errorf("--trace: %w", err)
		}
		w.trace = dir
	}
	if w.metrics == "" {
		if w.pprof {
			return fmt.Errorf("--pprof serves profiles at the address of --metrics: give that too")
		}
		return nil
	}
	if _, err := served.Loopback(w.metrics); err != nil {
		return fmt.Errorf("--metrics: %w", err)
	}
	return nil
}

// command are the flags for another node that this process starts.
func (w *watching) command() (flags []string) {
	if w.logs == jsonLog {
		flags = append(flags, "--log-format", w.logs)
	}
	if w.metrics != "" {
		flags = append(flags, "--metrics", w.metrics)
	}
	if w.pprof {
		flags = append(flags, "--pprof")
	}
	if w.trace != "" {
		flags = append(flags, "--trace", w.trace, "--trace-keys", w.keys)
	}
	return flags
}

// attend has a node be watched. tell is told where.
func (w *watching) attend(c *job.NodeConfig, tell func(asked, text string)) {
	c.Trace, c.TraceKeys, c.Flight = w.trace, w.keys, w.pprof
	if w.metrics == "" {
		return
	}
	c.Attend = func(a job.Attended) (job.Attendant, error) {
		addr, err := w.addr(int(a.Self))
		if err != nil {
			return nil, err
		}
		t, err := c.TLS.Config()
		if err != nil {
			return nil, err
		}
		s, err := served.Serve(a.Node, served.Config{Addr: addr, TLS: t, Profiles: w.pprof, Run: a.Run, Self: int(a.Self), Policy: a.Policy, Version: job.Version()})
		if err != nil {
			return nil, fmt.Errorf("%w; say another one by --metrics, or none", err)
		}
		scheme := "http"
		if t != nil {
			scheme = "https"
		}
		tell(w.metrics, fmt.Sprintf("metrics of node %d: %s://%s/metrics", a.Self, scheme, s.Addr()))
		return s, nil
	}
}

// addr is where a node of this machine listens.
func (w *watching) addr(self int) (string, error) {
	addr, err := served.Loopback(w.metrics)
	if err != nil || !w.spread {
		return addr, err
	}
	host, text, err := net.SplitHostPort(addr)
	if err != nil {
		return "", err
	}
	port, err := strconv.Atoi(text)
	switch {
	case err != nil:
		return "", err
	case port == 0:
		return addr, nil
	case port+self > 65535:
		return "", fmt.Errorf("metrics: node %d would listen at port %d + %d, ports end at 65535: begin with a smaller one", self, port, self)
	}
	return net.JoinHostPort(host, strconv.Itoa(port+self)), nil
}
