package job

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/godwit-ps/godwit/data/setting"
	"github.com/godwit-ps/godwit/job/internal/cuts"
	"github.com/godwit-ps/godwit/transport/tcp"
)

// A NodeConfig is the configuration of one node of a run: what the nodes need not have
// in common. The zero NodeConfig is a valid one.
type NodeConfig struct {
	// Data is the folder of the data on this machine; empty: the spec's.
	Data string
	// Workers is the number of workers of this node; 0: the spec's.
	Workers int
	// Export is the folder that the model is written to; empty: none.
	// One process of a run writes it.
	Export string
	// Profile is the folder, of this machine, to which the process of node N
	// writes profiles of its training for "go tool pprof"; empty: none. They are
	// node-N.cpu.pprof, node-N.mutex.pprof, node-N.block.pprof and, of the whole
	// process so far, node-N.allocs.pprof. The evaluation of the model that ends an
	// epoch counts, not that before and after training. A process takes one
	// profile at a time.
	Profile string

	// Listen is the host:port on which other nodes reach this one. Empty: any
	// port of the address by which this machine reaches the coordinator.
	Listen string
	// Advertise is the host or host:port by which they reach it, where it is
	// not Listen.
	Advertise string
	// TLS, where set, secures all connections between nodes. The one to the
	// coordinator has a configuration of its own, mostly the same ([tcp.TLSFiles.Config]).
	TLS *tcp.TLSFiles

	// Stop, when closed, asks for an early end of the run in order.
	Stop <-chan struct{}
	// Progress is told what happens, one event at a time. It may be nil.
	Progress func(Event)
	// Tick is how often Progress gets a Tick; 0: never.
	Tick time.Duration
	// Trace is the folder to which the node writes what becomes of keys (package
	// telemetry/trace) and what it does (package telemetry/record), in a folder of the run's name;
	// empty: none. TraceKeys says which keys, as trace.ParseKeys reads it. That of the leader gets the same of nodes that do not see it ([Spec].Traced).
	Trace, TraceKeys string
	// Flight keeps what the process did in its last seconds, and writes it down when a wait exceeds its
	// bound (package telemetry/flight): beside the trace, or to godwit-flight-RUN of the folder for temporary
	// files. Errors say where. It costs up to a tenth of the processor time.
	Flight bool
	// Attend, if set, is given the node when it has started, and returns who watches it.
	// It may be called for several nodes, at the same time.
	Attend func(Attended) (Attendant, error)

	untested bool                 // the model is not evaluated at the end
	frozen   bool                 // nothing is trained: the model is that of the checkpoint that the run goes on from
	cuts     func(*cuts.Owner)    // is given the owner of each node's cuts; nil: nobody wants it. Tests set it
	beside   func(epoch int) bool // reports whether the evaluation behind an epoch takes place beside training; nil: as processors have time. Tests set it, at all nodes alike

	storePatience time.Duration // the constant, but in tests

	initial *initial // what this process sets before training; nil: nothing
	leads   bool     // this process leads the run
	saver   *saver   // writes the manifests, in the process that leads; nil: there are none, or another process does

	leaderGone <-chan struct{} // closed when the process that leads the run has ended,
	leaderErr  error           // which is the reason then
}

// workers is the number of workers of the node.
func (c *NodeConfig) workers(s *Spec) int {
	for _, n := range []int{c.Workers, s.Workers} {
		if n > 0 {
			return n
		}
	}
	return runtime.GOMAXPROCS(0)
}

// listenAddr is where a node listens whose coordinator is at one of endpoints.
func (c *NodeConfig) listenAddr(endpoints []string) (string, error) {
	if c.Listen != "" {
		return c.Listen, nil
	}
	if len(endpoints) == 0 {
		return "", errors.New("job: the coordinator has no endpoint, which would tell by what address this machine is reached: say on which one to listen")
	}
	endpoint := endpoints[0]
	if _, rest, ok := strings.Cut(endpoint, "://"); ok {
		endpoint = rest
	}
	// A datagram socket that is connected has an address, and sends nothing.
	socket, err := net.Dial("udp", endpoint)
	if err != nil {
		return "", fmt.Errorf("job: no way to etcd at %s: %w", endpoint, err)
	}
	defer socket.Close()
	host, _, err := net.SplitHostPort(socket.LocalAddr().String())
	if err != nil {
		return "", err
	}
	return net.JoinHostPort(host, "0"), nil
}

// Check returns what is wrong with the node's own addresses, as an error of package setting.
func (c *NodeConfig) Check() error {
	const of, such = "job.NodeConfig", "host:port, such as 192.168.1.10:7000 or [fd00::1]:7000"
	switch host, err := splitAddr(c.Listen); {
	case c.Listen == "":
	case err != nil:
		return setting.Bad(of, "Listen", strconv.Quote(c.Listen), such+fmt.Sprintf(", and 0 for any port (%v)", err))
	case c.Advertise == "" && (host == "" || unspecified(host)):
		return setting.Bad(of, "Listen", strconv.Quote(c.Listen), "one address, or beside all of them the one by which the other nodes reach this one (--advertise HOST)")
	}
	bare := c.Advertise
	if ip, ok := strings.CutPrefix(bare, "["); ok && strings.HasSuffix(ip, "]") {
		bare = strings.TrimSuffix(ip, "]")
	}
	if net.ParseIP(bare) != nil || !strings.ContainsAny(c.Advertise, ":[]") {
		return nil
	}
	host, err := splitAddr(c.Advertise)
	if err == nil && host == "" {
		err = errors.New("the host is missing")
	}
	if err != nil {
		return setting.Bad(of, "Advertise", strconv.Quote(c.Advertise), fmt.Sprintf("a host, or %s (%v)", such, err))
	}
	return nil
}

// unspecified reports whether a host stands for all addresses of a machine.
func unspecified(host string) bool {
	ip := net.ParseIP(host)
	return ip != nil && ip.IsUnspecified()
}

// splitAddr returns the host of host:port.
func splitAddr(addr string) (host string, err error) {
	host, port, err := net.SplitHostPort(addr)
	if a := (*net.AddrError)(nil); errors.As(err, &a) {
		return "", errors.New(a.Err)
	}
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil {
		return "", errors.New("the port is no number up to 65535")
	}
	return host, nil
}

// advertised is the address that other nodes are given of a listener.
func (c *NodeConfig) advertised(listener string) (string, error) {
	host, port, err := net.SplitHostPort(listener)
	if err != nil {
		return "", fmt.Errorf("job: address %q: %w", listener, err)
	}
	switch h, pt, err := net.SplitHostPort(c.Advertise); {
	case err == nil && c.Advertise != "":
		return net.JoinHostPort(h, pt), nil
	case c.Advertise != "":
		return net.JoinHostPort(strings.Trim(c.Advertise, "[]"), port), nil
	}
	if unspecified(host) {
		return "", fmt.Errorf("job: a node that listens on all addresses (%s) must be told by which one the others reach it: give that one to advertise (--advertise HOST)", listener)
	}
	return listener, nil
}

// OwnAddress is an address of this machine by which others may reach it: the
// first that is not a loopback one.
func OwnAddress() (string, error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return "", err
	}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() && n.IP.To4() != nil {
			return n.IP.String(), nil
		}
	}
	return "", errors.New("job: this machine has no address but loopback: say on which one to listen")
}

func hostname() string {
	h, err := os.Hostname()
	if err != nil {
		return "unknown host" // it only serves to be read
	}
	return h
}
