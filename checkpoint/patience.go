package checkpoint

import (
	"context"
	"fmt"
	"io"
	"time"
)

// Patience is how long a store may take for one thing: to begin an object, to take a block, to complete the object. A block has less than a
// megabyte, and behind the last one a folder or bucket has up to 100 MB under way. [OpenStore] gives up stores at URLs that take longer.
const Patience = 5 * time.Minute

// Patient returns a store that gives up what s has not done within a limit: whoever waits gets an error then, which names the store, instead of
// waiting for ever. s has to heed the contexts of calls: a folder of a file system that does not answer is waited for by the operating
// system. Of a store that is patient already, this limit counts.
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

// Create implements [Store]. What write does between its writes may take any time.
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

// Put implements [Store].
func (s patientStore) Put(ctx context.Context, name string, b []byte) error {
	c := s.begin(ctx)
	defer c.close()
	return c.because(s.Store.Put(c, name, b))
}

// Size implements [Store].
func (s patientStore) Size(ctx context.Context, name string) (int64, error) {
	c := s.begin(ctx)
	defer c.close()
	n, err := s.Store.Size(c, name)
	return n, c.because(err)
}

// List implements [Store].
func (s patientStore) List(ctx context.Context, prefix string) ([]Object, error) {
	c := s.begin(ctx)
	defer c.close()
	all, err := s.Store.List(c, prefix)
	return all, c.because(err)
}

// Remove implements [Store].
func (s patientStore) Remove(ctx context.Context, name string) error {
	c := s.begin(ctx)
	defer c.close()
	return c.because(s.Store.Remove(c, name))
}

// Clean implements [Store].
func (s patientStore) Clean(ctx context.Context) (int, error) {
	c := s.begin(ctx)
	defer c.close()
	n, err := s.Store.Clean(c)
	return n, c.because(err)
}

// Read implements [Store]. Each read has the time; between reads, any may pass.
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
