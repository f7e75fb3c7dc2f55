package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"sync"
	"unsafe"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/hint"
	"github.com/godwit-ps/godwit/internal/store/arena"
	"github.com/godwit-ps/godwit/internal/vec"
	"github.com/godwit-ps/godwit/node"
	"github.com/godwit-ps/godwit/optim"
)

// localCases are accesses to keys that this node owns, in calls of 100 random
// keys, by one worker and by two.
func localCases() []Case {
	var cs []Case
	for _, op := range []string{"pull", "push", "adagrad"} {
		for i, dim := range []int{10, 100, 500} {
			aim := [3]float64{2.0, 1.5, 1.3}[i]
			if op == "adagrad" {
				aim = 1.5
			}
			for workers := 1; workers <= 2; workers++ {
				cs = append(cs, Case{
					Name: fmt.Sprintf("local/%s/%d floats/%s", op, dim, [...]string{"", "1 worker", "2 workers"}[workers]),
					Aim:  aim,
					setup: func(ctx context.Context, o *Options) (*Comparison, error) {
						return setupLocal(ctx, o, op, dim, workers)
					},
				})
			}
		}
	}
	return cs
}

const (
	perCall = 100 // keys

	programsMost = 5   // of a comparison
	perTurn      = 20  // calls of a worker in a turn
	spare        = 300 // turns until the keys repeat
)

// A bare table is rows without a server, in the same kind of memory as the
// server's.
type bare struct {
	mem  arena.Arena
	rows []float32
}

func newBare(floats uint64) *bare {
	b := &bare{}
	m := b.mem.Alloc(int(4 * floats))
	b.rows = unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(m))), floats)
	return b
}

// back has the system give all of the table's memory: else loops that only read
// would find one page of zeros, always in the cache.
func (b *bare) back() *bare {
	for i := 0; i < len(b.rows); i += os.Getpagesize() / 4 {
		b.rows[i] = 0
	}
	return b
}

// setupLocal starts a node and a bare table of as many rows.
func setupLocal(ctx context.Context, o *Options, op string, dim, workers int) (*Comparison, error) {
	var rule godwit.Rule = godwit.Add{}
	if op == "adagrad" {
		rule = optim.AdaGrad{LR: 0.1}
	}
	rowLen := dim + rule.StateLen(dim)
	rows := min(o.Rows, o.Memory/uint64(8*rowLen+48))
	l, err := startLocal(ctx, rows, dim, workers, rule)
	if err != nil {
		return nil, err
	}
	b := newBare(rows * uint64(rowLen)).back()
	keys := uniformKeys(o.Seed, rows, workers)
	bufs := buffers(workers, perCall*dim)
	path, loops := programs(ctx, op, l, b, dim)
	d := &Comparison{Units: workers * perTurn * perCall, Unit: "key"}
	var team *threads
	if workers > 1 {
		team = d.onThreads(workers)
	}
	d.Close = func() error { team.close(); return closeLocal(ctx, l, b) }
	d.Path = calls(team, keys, bufs, 0, path)
	for i, loop := range loops {
		d.Baselines = append(d.Baselines, Baseline{loop.name, calls(team, keys, bufs, 1+i, loop.call)})
	}
	return d, nil
}

// onThreads has the comparison's turns run and timed by pinned threads.
func (d *Comparison) onThreads(members int) *threads {
	c := newThreads(members)
	d.Clock = c.clock
	return c
}

// startLocal starts a node that owns all rows, each made already.
func startLocal(ctx context.Context, rows uint64, dim, workers int, rule godwit.Rule) (*node.Cluster, error) {
	m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: rows, Dim: dim, Rule: rule})
	if err != nil {
		return nil, err
	}
	c, err := node.Local(ctx, 1, node.Config{Model: m, Workers: workers})
	if err != nil {
		return nil, err
	}
	return c, touch(ctx, c.Nodes[0].Workers(), rows, dim)
}

func closeLocal(ctx context.Context, l *node.Cluster, b *bare) error {
	return errors.Join(l.Close(ctx), b.mem.Free())
}

// touch has the workers access each row, a part each.
func touch(ctx context.Context, ws []godwit.Worker, rows uint64, dim int) error {
	var wg sync.WaitGroup
	errs := make([]error, len(ws))
	for i, w := range ws {
		wg.Go(func() {
			const batch = 64
			keys, buf := make([]godwit.Key, batch), make([]float32, batch*dim)
			end := rows * uint64(i+1) / uint64(len(ws))
			for k := rows * uint64(i) / uint64(len(ws)); k < end && errs[i] == nil; {
				n := 0
				for ; n < batch && k < end; n++ {
					keys[n] = godwit.Key(k)
					k++
				}
				errs[i] = w.Pull(ctx, keys[:n], buf[:n*dim])
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// A call serves one call of worker w.
type call func(w int, keys []godwit.Key, buf []float32) error

type loop struct {
	name string
	call call
}

// programs are the path and the loops that do the same on a bare table.
func programs(ctx context.Context, op string, l *node.Cluster, b *bare, dim int) (call, []loop) {
	ws := l.Nodes[0].Workers()
	rows := b.rows
	switch op {
	case "pull":
		return func(w int, keys []godwit.Key, buf []float32) error { return ws[w].Pull(ctx, keys, buf) }, []loop{
			{"assembly loop", func(_ int, keys []godwit.Key, buf []float32) error { collect(buf, rows, keys, dim); return nil }},
			{"Go loop", func(_ int, keys []godwit.Key, buf []float32) error { copyRows(buf, rows, keys, dim); return nil }},
			{"prefetching loop", func(_ int, keys []godwit.Key, buf []float32) error {
				prefetching(rows, keys, dim, hint.Read, func(keys []godwit.Key, first int) {
					collect(buf[first*dim:], rows, keys, dim)
				})
				return nil
			}},
		}
	case "push":
		return func(w int, keys []godwit.Key, buf []float32) error { return ws[w].Push(ctx, keys, buf) }, []loop{
			{"kernel loop", func(_ int, keys []godwit.Key, buf []float32) error {
				for i, k := range keys {
					vec.Add(rows[int(k)*dim:][:dim], buf[i*dim:][:dim])
				}
				return nil
			}},
			{"Go loop", func(_ int, keys []godwit.Key, buf []float32) error { addRows(buf, rows, keys, dim); return nil }},
			{"prefetching loop", func(_ int, keys []godwit.Key, buf []float32) error {
				prefetching(rows, keys, dim, hint.Write, func(keys []godwit.Key, first int) {
					for i, k := range keys {
						vec.Add(rows[int(k)*dim:][:dim], buf[(first+i)*dim:][:dim])
					}
				})
				return nil
			}},
		}
	}
	return func(w int, keys []godwit.Key, buf []float32) error { return ws[w].Push(ctx, keys, buf) }, []loop{
		{"kernel loop", func(_ int, keys []godwit.Key, buf []float32) error {
			for i, k := range keys {
				row := rows[2*int(k)*dim:][:2*dim]
				vec.AdaGrad(row[:dim], row[dim:], buf[i*dim:][:dim], 0.1, optim.AdaGradEps)
			}
			return nil
		}},
		{"Go loop", func(_ int, keys []godwit.Key, buf []float32) error { adaGradRows(buf, rows, keys, dim); return nil }},
		{"prefetching loop", func(_ int, keys []godwit.Key, buf []float32) error {
			prefetching(rows, keys, 2*dim, hint.Write, func(keys []godwit.Key, first int) {
				for i, k := range keys {
					row := rows[2*int(k)*dim:][:2*dim]
					vec.AdaGrad(row[:dim], row[dim:], buf[(first+i)*dim:][:dim], 0.1, optim.AdaGradEps)
				}
			})
			return nil
		}},
	}
}

// A prefetching loop asks for the rows of a group of keys ahead, and of each row for
// the first bytes: the processor finds by itself what follows them.
const (
	prefetchGroup = 16
	prefetchBytes = 512
)

// prefetching has the rows of each group of keys prefetched while those of the group
// before are worked on. rowLen is the length of a row in floats.
func prefetching(rows []float32, keys []godwit.Key, rowLen int, hint func(unsafe.Pointer, uintptr), work func(keys []godwit.Key, first int)) {
	bytes := uintptr(min(4*rowLen, prefetchBytes))
	fetch := func(keys []godwit.Key) {
		for _, k := range keys[:min(prefetchGroup, len(keys))] {
			hint(unsafe.Pointer(&rows[int(k)*rowLen]), bytes)
		}
	}
	fetch(keys)
	for first := 0; first < len(keys); first += prefetchGroup {
		end := min(first+prefetchGroup, len(keys))
		fetch(keys[end:])
		work(keys[first:end], first)
	}
}

func copyRows(dst, rows []float32, keys []godwit.Key, dim int) {
	for i, k := range keys {
		copy(dst[i*dim:(i+1)*dim], rows[int(k)*dim:])
	}
}

func addRows(push, rows []float32, keys []godwit.Key, dim int) {
	for i, k := range keys {
		row, add := rows[int(k)*dim:][:dim], push[i*dim:][:dim]
		for j := range row {
			row[j] += add[j]
		}
	}
}

func adaGradRows(push, rows []float32, keys []godwit.Key, dim int) {
	for i, k := range keys {
		row, acc, grad := rows[2*int(k)*dim:][:dim], rows[(2*int(k)+1)*dim:][:dim], push[i*dim:][:dim]
		for j, g := range grad {
			acc[j] += g * g
			row[j] -= 0.1 * g / (float32(math.Sqrt(float64(acc[j]))) + optim.AdaGradEps)
		}
	}
}

// uniformKeys are the calls of each worker.
func uniformKeys(seed, rows uint64, workers int) [][][]godwit.Key {
	rng := rand.New(rand.NewPCG(seed, 1))
	return drawKeys(workers, func() godwit.Key { return godwit.Key(rng.Uint64N(rows)) })
}

func drawKeys(workers int, draw func() godwit.Key) [][][]godwit.Key {
	all := make([][][]godwit.Key, workers)
	for w := range all {
		all[w] = make([][]godwit.Key, spare*perTurn)
		for i := range all[w] {
			keys := make([]godwit.Key, perCall)
			for j := range keys {
				keys[j] = draw()
			}
			all[w][i] = keys
		}
	}
	return all
}

func buffers(workers, floats int) [][]float32 {
	bufs := make([][]float32, workers)
	for i := range bufs {
		bufs[i] = make([]float32, floats)
	}
	return bufs
}

// calls returns a program whose turns go through the calls of each worker, one
// part after the other: on pinned threads, or on the calling goroutine if team is
// nil, which is for one worker. Programs of one comparison begin at different parts, as none
// shall find the rows in the cache that another has just fetched.
func calls(team *threads, keys [][][]godwit.Key, bufs [][]float32, program int, f call) func() error {
	turn := program * spare / programsMost
	errs := make([]error, len(keys))
	work := func(w int) {
		for _, ks := range keys[w][turn*perTurn:][:perTurn] {
			if err := f(w, ks, bufs[w]); err != nil {
				errs[w] = err
				return
			}
		}
	}
	return func() error {
		turn = (turn + 1) % spare
		if team == nil {
			work(0)
			return errs[0]
		}
		team.turn(len(keys), work)
		return errors.Join(errs...)
	}
}
