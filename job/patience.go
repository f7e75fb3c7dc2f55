package job

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/godwit-ps/godwit/checkpoint"
)

// storePatience is how long a store may take for one thing: to begin an object, to take a block, to complete the object. A block has less than a
// megabyte, and behind the last one a folder or bucket has up to 100 MB under way.
const storePatience = 5 * time.Minute

// A patientStore gives up what its store has not done in time: a checkpoint fails then, instead of holding up training, or the end of a run, for ever. The
// store has to heed the contexts of calls: a folder of a file system that does not answer is waited for by the operating system.
type patientStore struct {
	checkpoint.Store
	limit time.Duration
}

// patient returns the store of the run's checkpoints for what training may wait for.
func (p *part) patient(s checkpoint.Store) checkpoint.Store {
	return patientStore{s, p.cfg.patience()}
}

// patience is how long a store may take.
func (c *NodeConfig) patience() time.Duration { return cmp.Or(c.storePatience, storePatience) }

// openPlace is [checkpoint.OpenPlace], of a store that may take so long for one thing.
func openPlace(ctx context.Context, place string, limit time.Duration) (*checkpoint.Checkpoint, error) {
	s, number, err := checkpoint.StoreAt(ctx, place)
	if err != nil {
		return nil, err
	}
	return checkpoint.Open(ctx, patientStore{s, limit}, number)
}

// A call is one of a store. Its context ends when the store takes too long, which is the error then. It is to be closed.
type call struct {
	context.Context
	outer  context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
	limit  time.Duration
}

// begin begins a call: its time runs.
func (s patientStore) begin(outer context.Context) *call {
	ctx, cancel := context.WithCancelCause(outer)
	t := time.AfterFunc(s.limit, func() {
		cancel(fmt.Errorf("%s has not answered for %v: see whether this machine reaches it", s.Store, s.limit))
	})
	return &call{ctx, outer, cancel, t, s.limit}
}

func (c *call) run()   { c.timer.Reset(c.limit) }
func (c *call) rest()  { c.timer.Stop() }
func (c *call) close() { c.timer.Stop(); c.cancel(nil) }

// because returns why a call failed: that the store took too long, if it did, or the store's error.
func (c *call) because(err error) error {
	if err != nil && c.Err() != nil && c.outer.Err() == nil {
		return context.Cause(c)
	}
	return err
}

// Create implements [checkpoint.Store]. What write does between its writes may take any time.
func (s patientStore) Create(ctx context.Context, name string, write func(io.Writer) error) error {
	c := s.begin(ctx)
	defer c.close()
	return c.because(s.Store.Create(c, name, func(w io.Writer) error {
		c.rest()
		defer c.run()
		return write(patientWriter{w, c})
	}))
}

// A patientWriter has the time of a call run while it writes. One goroutine at a time writes.
type patientWriter struct {
	w    io.Writer
	call *call
}

func (w patientWriter) Write(b []byte) (int, error) {
	w.call.run()
	defer w.call.rest()
	n, err := w.w.Write(b)
	return n, w.call.because(err)
}

// Size implements [checkpoint.Store].
func (s patientStore) Size(ctx context.Context, name string) (int64, error) {
	c := s.begin(ctx)
	defer c.close()
	n, err := s.Store.Size(c, name)
	return n, c.because(err)
}

// List implements [checkpoint.Store].
func (s patientStore) List(ctx context.Context, prefix string) ([]checkpoint.Object, error) {
	c := s.begin(ctx)
	defer c.close()
	all, err := s.Store.List(c, prefix)
	return all, c.because(err)
}

// Remove implements [checkpoint.Store].
func (s patientStore) Remove(ctx context.Context, name string) error {
	c := s.begin(ctx)
	defer c.close()
	return c.because(s.Store.Remove(c, name))
}

// Clean implements [checkpoint.Store].
func (s patientStore) Clean(ctx context.Context) (int, error) {
	c := s.begin(ctx)
	defer c.close()
	n, err := s.Store.Clean(c)
	return n, c.because(err)
}

// Read implements [checkpoint.Store]. Each read has the time; between reads, any may pass.
func (s patientStore) Read(ctx context.Context, name string, off, n int64) (io.ReadCloser, error) {
	c := s.begin(ctx)
	r, err := s.Store.Read(c, name, off, n)
	if err != nil {
		defer c.close()
		return nil, c.because(err)
	}
	c.rest()
	return patientReader{r, c}, nil
}

// A patientReader has the time of a call run while it reads, and ends the call when it is closed. One goroutine at a time reads.
type patientReader struct {
	io.ReadCloser
	call *call
}

func (r patientReader) Read(b []byte) (int, error) {
	r.call.run()
	defer r.call.rest()
	n, err := r.ReadCloser.Read(b)
	if err == io.EOF {
		return n, err
	}
	return n, r.call.because(err)
}

func (r patientReader) Close() error {
	defer r.call.close()
	return r.ReadCloser.Close()
}

// waiting warns that training waits for a cut at the end of an epoch, and for the part of which nodes.
func (p *part) waiting(cut uint64, late []int, waits time.Duration) {
	what, who := "the evaluation before it", "the leader has not ended it"
	if p.spec.Checkpoint != "" {
		what = fmt.Sprintf("checkpoint %d at %s", cut, p.spec.Checkpoint)
	}
	switch list := strings.Trim(strings.ReplaceAll(fmt.Sprint(late), " ", ", "), "[]"); {
	case len(late) == 1:
		who = "node " + list + " has not ended its part"
	case len(late) > 1:
		who = "nodes " + list + " have not ended their parts"
	}
	p.emit(Event{Warning: fmt.Sprintf("at the end of an epoch, training has waited %v for %s: %s. A place or node that does not answer, or is slow, holds it up",
		waits.Round(time.Second), what, who)})
}
