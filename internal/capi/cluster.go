package capi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/checkpoint"
	"github.com/godwit-ps/godwit/internal/recording"
	"github.com/godwit-ps/godwit/node"
	"github.com/godwit-ps/godwit/optim"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/telemetry/record"
	"github.com/godwit-ps/godwit/transport/tcp"
)

// A Config describes a cluster, as JSON.
type Config struct {
	Nodes    int       `json:"nodes"`   // of the run, all in this process; 0 is 1
	Workers  int       `json:"workers"` // of each node; 0 is 1
	Seed     uint64    `json:"seed"`    // of initial values
	Policy   string    `json:"policy"`  // empty: the default
	Tables   []Table   `json:"tables"`
	Samplers []Sampler `json:"samplers"`
	From     string    `json:"from"`    // a checkpoint to begin from, with its seed; empty: none
	Trace    string    `json:"trace"`   // the folder of the run, to write what its nodes do; empty: none
	Program  string    `json:"program"` // what is run, for who looks at that

	// Of a node whose run has others in other processes.
	Member *Member `json:"member"`
}

// A Member is how a process finds the others of its run.
type Member struct {
	Run         string `json:"run"`         // the name of the run
	Rank        int    `json:"rank"`        // the node's id
	Serve       bool   `json:"serve"`       // this process coordinates the run, at the host of Coordinator
	Coordinator string `json:"coordinator"` // host:port; of who serves, the port may be 0
	Token       string `json:"token"`       // what lets members in
	Listen      string `json:"listen"`      // host:port where this node listens; empty: at a free port of the address that it advertises
	Advertise   string `json:"advertise"`   // the host, or host:port, by which others reach this node; empty: that by which it reaches the coordinator
	JoinMs      int64  `json:"join_ms"`     // how long to wait for the others; 0: the default

	Etcd []string      `json:"etcd"` // endpoints of an etcd by which the nodes meet, in place of a coordinator
	TLS  *tcp.TLSFiles `json:"tls"`  // of connections to nodes and coordinator; nil: they are not encrypted
}

// A Table is a godwit.Table by the names of its parts.
type Table struct {
	Name string `json:"name"`
	Rows uint64 `json:"rows"`
	Dim  int    `json:"dim"`
	Rule string `json:"rule"` // as package optim names it; empty: add
	Init Init   `json:"init"`
}

// An Init names an initializer and its two parameters.
type Init struct {
	Kind string  `json:"kind"` // zero (or empty), uniform, normal
	A    float32 `json:"a"`    // the lower bound, or the mean
	B    float32 `json:"b"`    // the upper bound, or the standard deviation
}

func (i Init) make() (godwit.Init, error) {
	finite := !math.IsInf(float64(i.A), 0) && !math.IsInf(float64(i.B), 0) && i.A == i.A && i.B == i.B
	switch {
	case i.Kind == "" || i.Kind == "zero":
		return godwit.Zero{}, nil
	case i.Kind == "uniform" && finite && i.A <= i.B:
		return godwit.Uniform{Lo: i.A, Hi: i.B}, nil
	case i.Kind == "normal" && finite && i.B >= 0:
		return godwit.Normal{Mean: i.A, Std: i.B}, nil
	}
	return nil, wrong("initializer %s(%v, %v), want zero, uniform(lo ≤ hi) or normal(mean, std ≥ 0), of finite numbers", i.Kind, i.A, i.B)
}

// A table is what a cluster knows of one of its tables.
type table struct {
	name  string
	first godwit.Key
	rows  int64
	dim   int  // floats of a value as the caller sees it
	state int  // floats that the rule keeps beside a value
	rated bool // pushes bring their rate: rows have one float more

	queried bool // the rule makes what pulls get
}

// width returns the floats of a value as the node sees it.
func (t *table) width() int {
	if t.rated {
		return t.dim + 1
	}
	return t.dim
}

// A Cluster is the nodes of a run that live in this process.
type Cluster struct {
	tables  []table
	workers int // of each node
	cfg     node.Config
	nodes   int
	alone   bool // there is no other node

	opened   chan struct{} // closed when local or err is set
	giveUp   context.CancelFunc
	here     []*node.Node // of this process,
	rank     int          // … and the id of the first
	end      func(ctx context.Context) error
	address  string // of the coordinator, if this process serves one
	err      error
	closing  sync.Once
	ending   context.Context // of Close: it waits for other processes until Abandon
	abandon  context.CancelCauseFunc
	over     atomic.Bool   // the nodes have ended: workers take no calls
	closed   chan struct{} // closed when closeErr is set
	closeErr error

	record    *recording.Node      // nil: none
	diary     *record.Diary        // of who is the first node; nil: none
	collector *recording.Collector // of the others' records, at the first node; nil: none
	began     time.Time

	notes chan note // of checkpoints, by other processes
	cuts  uint64    // that were made; of who saves
	last  written   // checkpoint, by this process as the leader
	from  string    // the checkpoint that it began from

	mu      sync.Mutex
	made    []*Worker // by node and number; nil: nobody asked
	reached string    // by others: the address of this process's node

	meetings meetings

	notFinite atomic.Uint64 // rows that were not pushed
}

// Open begins to start the nodes of a cluster. Ready waits for them.
func Open(config []byte) (*Cluster, error) {
	var cfg Config
	if err := decode(config, &cfg, "the configuration"); err != nil {
		return nil, err
	}
	c := &Cluster{nodes: max(cfg.Nodes, 1), workers: max(cfg.Workers, 1), opened: make(chan struct{}), closed: make(chan struct{}), notes: make(chan note, 64)}
	if cfg.Nodes < 0 || c.nodes > 64 || cfg.Workers < 0 || c.workers > 1<<12 {
		return nil, wrong("%d nodes of %d workers, want 1 … 64 nodes of 1 … 4096 workers", cfg.Nodes, cfg.Workers)
	}
	c.made = make([]*Worker, c.nodes*c.workers)
	model, err := c.model(cfg.Tables)
	if err != nil {
		return nil, err
	}
	samplers, err := c.specs(cfg.Samplers)
	if err != nil {
		return nil, err
	}
	var from *checkpoint.Checkpoint
	if cfg.From != "" {
		if from, err = c.openFrom(cfg.From, model); err != nil {
			return nil, err
		}
		cfg.Seed = from.Manifest().Seed
	}
	c.cfg = node.Config{Model: model, Seed: cfg.Seed, Workers: c.workers, Samplers: samplers}
	if cfg.Policy != "" {
		if c.cfg.Policy, err = placement.ByName(cfg.Policy); err != nil {
			return nil, wrong("%v", err)
		}
	}
	start, self := c.startLocal, 0
	c.alone = c.nodes == 1
	if cfg.Member != nil {
		self = cfg.Member.Rank
	}
	if err := c.beginRecord(&cfg, self); err != nil {
		return nil, err
	}
	if cfg.Member != nil {
		if start, err = c.member(*cfg.Member); err != nil {
			return nil, errors.Join(err, c.endRecord())
		}
		c.made = c.made[:c.workers]
	}
	ctx, giveUp := context.WithCancel(context.Background())
	c.giveUp = giveUp
	c.ending, c.abandon = context.WithCancelCause(context.Background())
	go func() {
		defer close(c.opened)
		if c.err = start(ctx); c.err == nil && from != nil {
			c.err = c.restore(ctx, from)
		}
		if c.err == nil {
			c.err = c.record.Sample(c.here[0], nil)
		}
		if c.err == nil {
			c.sendRecord()
		}
	}()
	return c, nil
}

// startLocal starts all nodes in this process.
func (c *Cluster) startLocal(ctx context.Context) error {
	local, err := node.Local(ctx, c.nodes, c.cfg)
	if err == nil {
		c.here, c.end = local.Nodes, func(ctx context.Context) error {
			ctx, end := context.WithTimeout(ctx, closeTime)
			defer end()
			return local.Close(ctx)
		}
	}
	return err
}

func (c *Cluster) model(tables []Table) (*godwit.Model, error) {
	list := make([]godwit.Table, len(tables))
	for i, t := range tables {
		rule, err := optim.Parse(orAdd(t.Rule))
		if err != nil {
			return nil, wrong("table %q: %v", t.Name, err)
		}
		init, err := t.Init.make()
		if err != nil {
			return nil, fmt.Errorf("table %q: %w", t.Name, err)
		}
		_, rated := rule.(optim.Rated)
		_, queried := rule.(godwit.Querier)
		if list[i] = (godwit.Table{Name: t.Name, Rows: t.Rows, Dim: t.Dim, Rule: rule, Init: init}); rated {
			list[i].Dim, list[i].Init = t.Dim+1, optim.Unrated{Of: init}
		}
		if t.Dim < 1 || t.Dim >= godwit.MaxDim || t.Rows > math.MaxInt64 {
			return nil, wrong("table %q has %d rows of %d floats, want 1 … %d floats", t.Name, t.Rows, t.Dim, godwit.MaxDim-1)
		}
		c.tables = append(c.tables, table{name: t.Name, rows: int64(t.Rows), dim: t.Dim, rated: rated, queried: queried})
	}
	m, err := godwit.NewModel(list...)
	if err != nil {
		return nil, wrong("%v", err)
	}
	for i := range c.tables {
		c.tables[i].first = m.Key(i, 0)
		c.tables[i].state = m.TableRowLen(i) - c.tables[i].width()
	}
	return m, nil
}

func orAdd(rule string) string {
	if rule == "" {
		return "add"
	}
	return rule
}

// Ready waits for the nodes and reports whether they have started. The error is why they could not, or what has ended the run since.
func (c *Cluster) Ready(wait time.Duration) (bool, error) {
	if !within(c.opened, wait) {
		return false, nil
	}
	if c.err != nil {
		return true, c.err
	}
	for _, n := range c.here {
		if err := n.Err(); err != nil {
			return true, err
		}
	}
	return true, nil
}

// Close ends the nodes and the calls of their workers, and returns false if they have not ended after a while. It may be
// called again. The node of a process waits until the others of the run close theirs, for as long as
// these live: rows that it has are read until then. Only calls that all workers make end there, with coord.ErrLeft.
func (c *Cluster) Close(wait time.Duration) (bool, error) {
	c.closing.Do(func() {
		c.giveUp()
		go func() {
			defer close(c.closed)
			<-c.opened
			if c.end != nil {
				stopped := c.record.Stop()
				if c.ending.Err() == nil {
					_ = c.record.Sent(c.err == nil) // the first node writes down what it lacks
				}
				c.closeErr = errors.Join(c.end(c.ending), stopped, c.endCalls())
			}
			c.abandon(nil)
			c.closeErr = errors.Join(c.closeErr, c.endRecord())
		}()
	})
	if !within(c.closed, wait) {
		return false, nil
	}
	return true, c.closeErr
}

// Abandon is Close of a process that has failed, which does not wait for the others: they see a loss at once, with the reason. A Close
// that is under way ends so, too.
func (c *Cluster) Abandon(reason string, wait time.Duration) (bool, error) {
	c.abandon(fmt.Errorf("the process closes the cluster out of order: %s", reason))
	return c.Close(wait)
}

// endCalls waits for the calls of workers that are under way when the nodes have ended, which ends them: until then they use memory of their callers.
func (c *Cluster) endCalls() error {
	c.over.Store(true)
	ctx, end := context.WithTimeout(context.Background(), closeTime)
	defer end()
	c.mu.Lock()
	made := slices.Clone(c.made)
	c.mu.Unlock()
	for _, w := range made {
		if w == nil {
			continue
		}
		for !w.busy.CompareAndSwap(false, true) { // nobody enters it any more
			if o := w.aside.Load(); o != nil {
				o.cancel(godwit.ErrClosed)
			}
			if !pause(ctx, time.Millisecond) {
				return fmt.Errorf("%s: %s has not ended %v after its node: leave its buffers in place", w.name, w.does(), closeTime)
			}
		}
	}
	return nil
}

// closeTime is for how long a coordinator waits for nodes that have come to the end to go, and nodes of one process for each other.
var closeTime = 30 * time.Second

// within waits for a channel, for a while or, if that is negative, for ever.
func within(done <-chan struct{}, wait time.Duration) bool {
	select {
	case <-done:
		return true
	default:
	}
	if wait == 0 {
		return false
	}
	if wait < 0 {
		<-done
		return true
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
		return false
	}
}

// Worker returns a worker, by its number among those of all nodes.
func (c *Cluster) Worker(i int) (*Worker, error) {
	if !within(c.opened, 0) || c.err != nil {
		return nil, wrong("the cluster has not started")
	}
	if i < 0 || i >= len(c.made) {
		return nil, wrong("there is no worker %d, the cluster has workers 0 … %d", i, len(c.made)-1)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made[i] == nil {
		w := c.here[i/c.workers].Worker(i % c.workers)
		c.made[i] = &Worker{cluster: c, w: w.(godwit.Awaiter), name: w.ID().String(), alone: c.alone, ops: map[uint64]*op{}, calls: map[string]uint64{}, met: map[string]uint64{}}
	}
	return c.made[i], nil
}

// Stats returns what the nodes count, as JSON, and the processes of the run that have closed theirs.
func (c *Cluster) Stats() ([]byte, error) {
	if !within(c.opened, 0) || c.err != nil {
		return nil, wrong("the cluster has not started")
	}
	var sum node.Stats
	for _, n := range c.here {
		sum.Add(n.Stats())
	}
	b, err := json.Marshal(sum)
	if err != nil {
		return nil, err
	}
	closed, err := json.Marshal(c.meetings.without())
	if err != nil {
		return nil, err
	}
	return append(b[:len(b)-1], fmt.Sprintf(`,"not_finite":%d,"address":%q,"closed":%s}`, c.notFinite.Load(), c.Reached(), closed)...), nil
}
