package checkpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// Patience is how long a store may take for one thing: to begin an object, to take or give up to a
// megabyte, to complete the object. Behind its last bytes a folder or bucket has up to 100 MB under way. [OpenStore] gives up stores that take longer.
const Patience = 5 * time.Minute

// piece is how many bytes a store gets, or is asked for, at a time: large objects take long, and nothing is copied whole.
const piece = 1 << 20

// lastWord is for how long a store is waited for after the context of a call has ended: it removes what is incomplete, and says why.
const lastWord = time.Second

// Patient returns a store that gives up what s has not done within a limit, and within another second once the context of a call has ended. Whoever waits
// gets an error then, which names the store and the object, instead of waiting for ever. A store that does not heed contexts, such as a folder of
// a file system that does not answer, goes on in a goroutine of its own; what was given up may still take effect. Of a store that is patient
// already, this limit counts.
func Patient(s Store, limit time.Duration) Store {
	if p, ok := s.(patientStore); ok {
		s = p.Store
	}
	return patientStore{s, limit}
}

type patientStore struct {
	Store
	limit time.Duration
}

// A call is one of a store. Its context ends when the store takes too long, which is the error then. It is to be closed.
type call struct {
	context.Context
	outer  context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
	limit  time.Duration
	of     string // what it is about: "runs/kge: checkpoint-0000000001.jsonl"
	doing  string // … and what it does: "writing checkpoint-0000000001.jsonl to runs/kge"
}

// begin begins a call that does something about an object, or something else of the store, as in writing an object to it: its time runs.
func (s patientStore) begin(outer context.Context, doing, what, to string) *call {
	ctx, cancel := context.WithCancelCause(outer)
	t := time.AfterFunc(s.limit, func() {
		cancel(fmt.Errorf("%s has not answered for %v, asked for %s: see whether this machine reaches it", s.Store, s.limit, what))
	})
	return &call{ctx, outer, cancel, t, s.limit, fmt.Sprintf("%s: %s", s.Store, what), fmt.Sprintf("%s %s %s %s", doing, what, to, s.Store)}
}

func (c *call) run()   { c.timer.Reset(c.limit) }
func (c *call) rest()  { c.timer.Stop() }
func (c *call) close() { c.timer.Stop(); c.cancel(nil) }

// because returns why a call failed: that the store took too long, if it did, that the caller gave it up, or the store's error.
func (c *call) because(err error) error {
	switch {
	case err == nil || c.Err() == nil:
		return err
	case c.outer.Err() == nil:
		return context.Cause(c)
	case errors.Is(err, c.Err()):
		return interrupted{c.doing, context.Cause(c)}
	}
	return err
}

// An interrupted error says what the end of a context left undone, and why the context ended, if anybody said so.
type interrupted struct {
	doing string // call.doing
	cause error
}

func (e interrupted) Unwrap() error { return e.cause }

func (e interrupted) Error() string {
	what := e.doing + " was interrupted"
	if e.cause == context.Canceled {
		return what
	}
	return fmt.Sprintf("%s: %v", what, e.cause)
}

// hear waits for what the store says. It reports false and why the call has ended if the store says nothing for a second after that.
func hear[T any](c *call, said <-chan T) (it T, heard bool, err error) {
	select {
	case it = <-said:
		return it, true, nil
	case <-c.Done():
	}
	t := time.NewTimer(min(lastWord, c.limit))
	defer t.Stop()
	select {
	case it = <-said:
		return it, true, nil
	case <-t.C:
	}
	if err = context.Cause(c); c.outer.Err() != nil {
		if err == context.Canceled {
			err = interrupted{c.doing, err}
		}
		err = fmt.Errorf("%s: the store does not answer: %w", c.of, err)
	}
	return it, false, err
}

// An answer is what a call returned.
type answer[T any] struct {
	it  T
	err error
}

// await returns what do returns, or why the call has ended, after which do may go on.
func await[T any](c *call, do func() (T, error)) (T, error) {
	said := make(chan answer[T], 1)
	go func() {
		it, err := do()
		said <- answer[T]{it, err}
	}()
	a, heard, err := hear(c, said)
	if heard {
		err = c.because(a.err)
	}
	return a.it, err
}

// do is await of what returns an error only.
func (c *call) do(do func() error) error {
	_, err := await(c, func() (struct{}, error) { return struct{}{}, do() })
	return err
}

// Create implements [Store]. What write does between its writes may take any time. It is called by the caller's goroutine: the store gets copies of
// the blocks, which it may hold on to.
func (s patientStore) Create(ctx context.Context, name string, write func(io.Writer) error) error {
	c := s.begin(ctx, "writing", name, "to")
	defer c.close()
	w := &patientWriter{call: c, blocks: make(chan []byte, 1), said: make(chan answer[bool], 3)}
	written := make(chan error, 1)
	go func() {
		err := s.Store.Create(c, name, func(out io.Writer) error {
			w.said <- answer[bool]{}
			for b := range w.blocks {
				_, err := out.Write(b)
				w.said <- answer[bool]{err: err}
			}
			return <-written
		})
		w.said <- answer[bool]{true, err}
	}()
	over, err := w.hear()
	if !over {
		c.rest()
		err = write(w)
		c.run()
	}
	if w.lost != nil {
		over, err = true, w.lost // whatever write says: the object is not complete
	}
	close(w.blocks)
	written <- err
	if !over {
		_, err = w.hear()
	}
	return err
}

// A patientWriter has the time of a call run while it writes. One goroutine at a time writes.
type patientWriter struct {
	call   *call
	block  []byte
	blocks chan []byte       // to the goroutine of the store
	said   chan answer[bool] // by it: that it has begun, has written, or, true, that it is over
	lost   error             // not nil: it is over, or not waited for any more
}

// hear waits for the store, and reports whether it is over.
func (w *patientWriter) hear() (over bool, err error) {
	a, heard, err := hear(w.call, w.said)
	if !heard {
		w.lost = err
		return true, err
	}
	return a.it, w.call.because(a.err)
}

func (w *patientWriter) Write(b []byte) (n int, err error) {
	for err == nil && n < len(b) {
		var took int
		took, err = w.write(b[n:min(n+piece, len(b))])
		n += took
	}
	return n, err
}

// write is Write of a piece.
func (w *patientWriter) write(b []byte) (int, error) {
	if w.lost != nil {
		return 0, w.lost
	}
	w.call.run()
	defer w.call.rest()
	w.block = append(w.block[:0], b...)
	w.blocks <- w.block
	over, err := w.hear()
	if over && w.lost == nil { // nobody takes further blocks
		w.lost = cmp.Or(err, io.ErrClosedPipe)
	}
	if err = cmp.Or(w.lost, err); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Put implements [Store].
func (s patientStore) Put(ctx context.Context, name string, b []byte) error {
	c := s.begin(ctx, "writing", name, "to")
	defer c.close()
	b = append([]byte(nil), b...)
	return c.do(func() error { return s.Store.Put(c, name, b) })
}

// Size implements [Store].
func (s patientStore) Size(ctx context.Context, name string) (int64, error) {
	c := s.begin(ctx, "looking for", name, "at")
	defer c.close()
	return await(c, func() (int64, error) { return s.Store.Size(c, name) })
}

// List implements [Store].
func (s patientStore) List(ctx context.Context, prefix string) ([]Object, error) {
	c := s.begin(ctx, "listing", "its objects", "at")
	defer c.close()
	return await(c, func() ([]Object, error) { return s.Store.List(c, prefix) })
}

// Remove implements [Store].
func (s patientStore) Remove(ctx context.Context, name string) error {
	c := s.begin(ctx, "removing", name, "from")
	defer c.close()
	return c.do(func() error { return s.Store.Remove(c, name) })
}

// Clean implements [Store].
func (s patientStore) Clean(ctx context.Context) (int, error) {
	c := s.begin(ctx, "cleaning up", "its objects", "at")
	defer c.close()
	return await(c, func() (int, error) { return s.Store.Clean(c) })
}

// lock takes the lock of a folder, whose file system may not answer either.
func (s patientStore) lock(ctx context.Context, f *Folder, h Holder) (*Lock, error) {
	c := s.begin(ctx, "taking", lockName, "at")
	defer c.close()
	l, err := await(c, func() (*Lock, error) {
		l, err := lockFolder(c, f, h)
		if err == nil && c.Err() != nil {
			_ = l.Release() // nobody waits for it
			return nil, context.Cause(c)
		}
		return l, err
	})
	if err != nil {
		return nil, err
	}
	patient := func(do func() error) func() error {
		return func() error {
			c := s.begin(context.Background(), "looking for", lockName, "at")
			defer c.close()
			return c.do(do)
		}
	}
	return &Lock{check: patient(l.check), release: patient(l.release)}, nil
}

// Read implements [Store]. Each read, of all that it is asked for or a megabyte, has the time; between reads, any may pass.
func (s patientStore) Read(ctx context.Context, name string, off, n int64) (io.ReadCloser, error) {
	c := s.begin(ctx, "reading", name, "from")
	r, err := await(c, func() (io.ReadCloser, error) {
		r, err := s.Store.Read(c, name, off, n)
		if err == nil && c.Err() != nil {
			_ = r.Close() // nobody waits for it
			return nil, context.Cause(c)
		}
		return r, err
	})
	if err != nil {
		defer c.close()
		return nil, err
	}
	c.rest()
	return &patientReader{store: r, call: c}, nil
}

// A patientReader has the time of a call run while it reads, and ends the call when it is closed. One goroutine at a time reads.
type patientReader struct {
	store io.ReadCloser
	call  *call
	block []byte
	lost  error // not nil: a read is not waited for any more, and has the block
}

func (r *patientReader) Read(b []byte) (int, error) {
	if r.lost != nil {
		return 0, r.lost
	}
	r.call.run()
	defer r.call.rest()
	b = b[:min(piece, len(b))]
	if cap(r.block) < len(b) {
		r.block = make([]byte, len(b))
	}
	block, said := r.block[:len(b)], make(chan answer[int], 1)
	go func() {
		var a answer[int]
		for n := 0; a.it < len(block) && a.err == nil; a.it += n { // else a store that gives a byte a time would go on for ever
			n, a.err = r.store.Read(block[a.it:])
		}
		said <- a
	}()
	a, heard, err := hear(r.call, said)
	if !heard {
		r.lost = err
		return 0, err
	}
	if err = a.err; err != io.EOF {
		if err = r.call.because(err); a.it > 0 && r.call.Err() != nil && r.call.outer.Err() == nil {
			err = fmt.Errorf("%s: the store gave %d bytes of %d in %v: see how this machine reaches it", r.call.of, a.it, len(block), r.call.limit)
		}
	}
	return copy(b, block[:a.it]), err
}

func (r *patientReader) Close() error {
	defer r.call.close()
	if r.lost != nil {
		go r.store.Close()
		return nil
	}
	r.call.run()
	return r.call.do(r.store.Close)
}
