package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/placement"
)

// remoteCases are accesses to keys of a node of another process, over TCP of this
// machine. Every call has keys of its own, which are random, and the table is larger
// than the processor's caches. The baseline is a plain connection to the same
// process that carries as many bytes.
func remoteCases() []Case {
	var cs []Case
	for _, dim := range []int{1, 4, 16, 100, 512} {
		for _, keys := range []int{1, 10, 100, 1000, 10_000} {
			for _, op := range []string{"pull", "push"} {
				for _, mode := range []string{"blocking", "pipelined"} {
					r := remote{op: op, keys: keys, dim: dim, pipelined: mode == "pipelined"}
					cs = append(cs, Case{
						Name:  fmt.Sprintf("remote/%s/%s of %s/%s", op, count(keys, "key"), count(dim, "float"), mode),
						Aim:   r.aim(),
						setup: r.setup,
					})
				}
			}
		}
	}
	return append(cs, Case{Name: "remote/localize/10000 keys of 100 floats", setup: setupMoves})
}

func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprint(n, " ", what)
}

// A remote is a kind of calls to the other process.
type remote struct {
	op        string
	keys, dim int // of a call
	pipelined bool
}

func (r *remote) aim() float64 {
	switch {
	case r.dim == 100 && r.keys == 1 && r.op == "pull" && !r.pipelined:
		return 1.3
	case r.dim == 100 && r.keys == 100 && r.pipelined:
		return 2
	}
	return 0
}

const (
	turnTime   = 10 * time.Millisecond // what a turn should take
	depthMost  = 16                    // calls under way
	bytesMost  = 32 << 20              // of calls under way, if these are two or more
	callsMost  = 1000                  // of a turn
	tableLeast = 256 << 20             // bytes of a table, if memory allows
)

// depth is how many calls are under way.
func (r *remote) depth() int {
	if !r.pipelined {
		return 1
	}
	return min(depthMost, max(2, bytesMost/(r.keys*(8+4*r.dim))))
}

// pair starts the two processes' nodes, or takes those of the case before if their
// table is the same: filling it takes longer than most cases.
func (o *Options) pair(ctx context.Context, dim int, policy placement.Policy) (*pair, error) {
	// The rows of one node should be twice as large as the largest cache.
	const header = 32
	bytes := min(max(2*cacheBytes(), tableLeast), o.Memory/4)
	rows := max(2*bytes/uint64(header+4*dim), 1<<15)
	if p := o.pairs; p != nil {
		if p.last != nil && p.last.rows == rows && p.last.dim == dim && p.last.policy == policy.Name() {
			return p.last, nil
		}
		if err := p.close(ctx); err != nil {
			return nil, err
		}
	}
	p, err := startPair(ctx, o.Peer, rows, dim, policy)
	if err == nil && o.pairs != nil {
		o.pairs.last = p
	}
	return p, err
}

// A pairs keeps the last pair for the cases to come.
type pairs struct{ last *pair }

func (p *pairs) close(ctx context.Context) error {
	last := p.last
	if p.last = nil; last == nil {
		return nil
	}
	return last.close(ctx)
}

// release ends a pair that is not kept.
func (o *Options) release(ctx context.Context, p *pair) error {
	if o.pairs != nil && o.pairs.last == p {
		return nil
	}
	return p.close(ctx)
}

// cacheBytes is the size of the largest cache of the processor, 0 if the system does
// not say.
func cacheBytes() uint64 {
	var most uint64
	for i := range 8 {
		b, err := os.ReadFile(fmt.Sprintf("/sys/devices/system/cpu/cpu0/cache/index%d/size", i))
		if err != nil {
			break
		}
		k, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(string(b)), "K"), 10, 64)
		if err == nil {
			most = max(most, k<<10)
		}
	}
	return most
}

// A program is the path or the echo: what it was seen to do, turn by turn.
type program struct {
	begin, wait func(i int) error // a call, and its end where it is pipelined
	calls       []float64         // nanoseconds of each call
	here, there []float64         // processor time a key of each turn, in nanoseconds
	both        []float64
	rates       []float64 // keys a second of each turn
}

// A exchange is a case with its pair, between setup and close.
type exchange struct {
	remote
	ctx   context.Context
	o     *Options
	pair  *pair
	echo  *echo
	calls int // of a turn

	keys    []godwit.Key // of all calls of a turn
	bufs    [][]float32
	handles []godwit.Handle
	begun   []time.Time

	ask, answer int           // bytes of a call in both directions
	took        time.Duration // by the last turn
	path, plain program
}

func (r *remote) setup(ctx context.Context, o *Options) (*Comparison, error) {
	p, err := o.pair(ctx, r.dim, placement.Static)
	if err != nil {
		return nil, err
	}
	c := &exchange{remote: *r, ctx: ctx, o: o, pair: p, bufs: buffers(r.depth(), r.keys*r.dim)}
	c.path.begin, c.path.wait = c.access()
	if err := c.prepare(); err != nil {
		return nil, errors.Join(err, o.release(ctx, p))
	}
	return &Comparison{
		Units: c.calls * r.keys, Unit: "key",
		Path:      func() error { return c.turn(&c.path) },
		Baselines: []Baseline{{c.baseline(), func() error { return c.turn(&c.plain) }}},
		Clock:     func() (time.Duration, bool) { return c.took, true },
		Ends:      c.ends,
		Close:     func() error { return errors.Join(c.echo.conn.Close(), o.release(ctx, p)) },
	}, nil
}

func (c *exchange) baseline() string {
	if c.pipelined {
		return "TCP echo"
	}
	return "TCP ping-pong"
}

// prepare finds out how many calls a turn has, and how many bytes a call, and
// connects to the echo.
func (c *exchange) prepare() error {
	c.room(2 * c.depth())
	if err := c.turn(&c.path); err != nil { // with empty buffers and cold caches
		return err
	}
	before, err := c.pair.ask(c.ctx, order{Do: "sent"})
	if err != nil {
		return err
	}
	sent := c.pair.node.Stats().SentBytes
	if err := c.turn(&c.path); err != nil {
		return err
	}
	after, err := c.pair.ask(c.ctx, order{Do: "sent"})
	if err != nil {
		return err
	}
	c.ask = int(c.pair.node.Stats().SentBytes-sent) / c.calls
	c.answer = int(after.SentBytes-before.SentBytes) / c.calls
	if c.ask == 0 || c.answer == 0 {
		return fmt.Errorf("%d calls sent %d and %d bytes: the keys are not at the other process", c.calls, c.ask, c.answer)
	}
	c.room(int(min(max(int64(min(turnTime, c.o.Time))*int64(c.calls)/int64(c.took), int64(2*c.depth()), 4), callsMost)))
	if c.echo, err = dialEcho(c.pair.echo, c.ask, c.answer, c.pipelined); err != nil {
		return err
	}
	c.plain.begin, c.plain.wait = func(int) error { return c.echo.call() }, func(int) error { return nil }
	if c.pipelined {
		c.plain.begin, c.plain.wait = func(int) error { return c.echo.begin() }, func(int) error { return c.echo.wait() }
	}
	c.path.forget()
	return nil
}

func (c *exchange) room(calls int) {
	c.calls = calls
	c.keys = make([]godwit.Key, calls*c.remote.keys)
	c.handles, c.begun = make([]godwit.Handle, calls), make([]time.Time, calls)
}

// access returns how the path begins and ends its calls.
func (c *exchange) access() (begin, wait func(i int) error) {
	w := c.pair.node.Worker(0)
	call, async := w.Pull, w.PullAsync
	if c.op == "push" {
		call, async = w.Push, w.PushAsync
	}
	arguments := func(i int) ([]godwit.Key, []float32) {
		return c.keys[i*c.remote.keys:][:c.remote.keys], c.bufs[i%len(c.bufs)]
	}
	if !c.pipelined {
		return func(i int) error {
			keys, buf := arguments(i)
			return call(c.ctx, keys, buf)
		}, func(int) error { return nil }
	}
	return func(i int) (err error) {
		keys, buf := arguments(i)
		c.handles[i], err = async(c.ctx, keys, buf)
		return err
	}, func(i int) error { return w.Wait(c.ctx, c.handles[i]) }
}

// turn does the calls of a turn and notes what they took. Their keys are drawn
// before.
func (c *exchange) turn(p *program) error {
	c.pair.draw(c.keys)
	there, err := c.pair.ask(c.ctx, order{Do: "usage"})
	if err != nil {
		return err
	}
	here, began := host.ProcessorTime(), time.Now()
	if err := c.stream(p); err != nil {
		return err
	}
	c.took = time.Since(began)
	here = host.ProcessorTime() - here
	after, err := c.pair.ask(c.ctx, order{Do: "usage"})
	if err != nil {
		return err
	}
	n := float64(len(c.keys))
	a, b := float64(here)/n, float64(after.Processor-there.Processor)/n
	p.here, p.there, p.both = append(p.here, a), append(p.there, b), append(p.both, a+b)
	p.rates = append(p.rates, n/c.took.Seconds())
	return nil
}

// stream keeps up to depth calls under way.
func (c *exchange) stream(p *program) error {
	depth := c.depth()
	for i := range c.calls + depth {
		if j := i - depth; j >= 0 && c.pipelined {
			if err := p.wait(j); err != nil {
				return err
			}
			p.calls = append(p.calls, float64(time.Since(c.begun[j])))
		}
		if i >= c.calls {
			continue
		}
		c.begun[i] = time.Now()
		if err := p.begin(i); err != nil {
			return err
		}
		if !c.pipelined {
			p.calls = append(p.calls, float64(time.Since(c.begun[i])))
		}
	}
	return nil
}

// forget drops what was noted.
func (p *program) forget() {
	p.calls, p.here, p.there, p.both, p.rates = p.calls[:0], p.here[:0], p.there[:0], p.both[:0], p.rates[:0]
}

// skip drops the first turn, which had so many calls.
func (p *program) skip(calls int) {
	p.calls, p.here, p.there, p.both, p.rates = p.calls[calls:], p.here[1:], p.there[1:], p.both[1:], p.rates[1:]
}

// Ends are what a case between two processes measured beside its time.
type Ends struct {
	Keys        int `json:"keys"`         // of a call
	Floats      int `json:"floats"`       // of a row
	UnderWay    int `json:"under_way"`    // calls at a time; 1: each waits for the one before
	AskBytes    int `json:"ask_bytes"`    // of a call, sent by the caller
	AnswerBytes int `json:"answer_bytes"` // … and back

	Path Calls `json:"path"`
	Echo Calls `json:"echo"` // as many bytes over a plain connection
	// ProcessorRatio is the processor time of the path over that of the echo, at
	// both ends together, turn by turn.
	ProcessorRatio Spread `json:"processor_ratio"`
}

// Calls are what calls took. Times are nanoseconds.
type Calls struct {
	P50 float64 `json:"p50"` // of one call, from its begin to its end
	P99 float64 `json:"p99"`
	// KeysPerSecond and the processor time a key: at the caller's process, at the
	// owner's, and at both.
	KeysPerSecond Spread `json:"keys_per_second"`
	Caller        Spread `json:"caller"`
	Owner         Spread `json:"owner"`
	Both          Spread `json:"both"`
}

// ends sums up all turns but the first one of each program, which finds cold caches and small buffers.
func (c *exchange) ends() *Ends {
	c.path.skip(c.calls)
	c.plain.skip(c.calls)
	e := &Ends{Keys: c.remote.keys, Floats: c.dim, UnderWay: c.depth(), AskBytes: c.ask, AnswerBytes: c.answer}
	var ratios []float64
	for i := range min(len(c.path.both), len(c.plain.both)) {
		if c.plain.both[i] > 0 {
			ratios = append(ratios, c.path.both[i]/c.plain.both[i])
		}
	}
	if len(ratios) > 0 {
		e.ProcessorRatio = spread(ratios)
	}
	e.Path, e.Echo = c.path.took(), c.plain.took()
	return e
}

func (p *program) took() Calls {
	slices.Sort(p.calls)
	return Calls{P50: percentile(p.calls, 0.5), P99: percentile(p.calls, 0.99),
		KeysPerSecond: spread(p.rates), Caller: spread(p.here), Owner: spread(p.there), Both: spread(p.both)}
}

// percentile of sorted numbers.
func percentile(xs []float64, share float64) float64 {
	if len(xs) == 0 {
		return math.NaN()
	}
	return xs[min(int(share*float64(len(xs))), len(xs)-1)]
}

// setupMoves moves random keys here, and back while no clock runs. The baseline
// asks for as many bytes in one message.
func setupMoves(ctx context.Context, o *Options) (*Comparison, error) {
	const dim, keys = 100, 10_000
	p, err := o.pair(ctx, dim, placement.RelocateAll)
	if err != nil {
		return nil, err
	}
	c := &exchange{remote: remote{op: "localize", keys: keys, dim: dim}, ctx: ctx, o: o, pair: p}
	c.room(1)
	w := p.node.Worker(0)
	c.path.begin = func(int) error { return w.Localize(ctx, c.keys) }
	move := func() error {
		if err := c.turn(&c.path); err != nil {
			return err
		}
		_, err := p.ask(ctx, order{Do: "fetch", Seed: p.drawn, Keys: keys})
		return err
	}
	if c.echo, err = dialEcho(p.echo, 8*keys, 4*dim*keys, false); err != nil {
		return nil, errors.Join(err, o.release(ctx, p))
	}
	c.ask, c.answer = 8*keys, 4*dim*keys
	c.plain.begin = func(int) error { return c.echo.call() }
	return &Comparison{
		Units: keys, Unit: "key", Path: move,
		Baselines: []Baseline{{"TCP ping-pong", func() error { return c.turn(&c.plain) }}},
		Clock:     func() (time.Duration, bool) { return c.took, true },
		Ends:      c.ends,
		Close:     func() error { return errors.Join(c.echo.conn.Close(), o.release(ctx, p)) },
	}, nil
}
