package worker

import (
	"context"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/node/internal/operation"
	"github.com/godwit-ps/godwit/node/internal/watch"
	"github.com/godwit-ps/godwit/transport"
)

// This file is what a worker does that asks and waits: if it asks one node only, it
// reads the connection to that node itself, and handles what comes over it, until
// its answer is among it. Otherwise the connection's reader would have to wake it,
// on another processor if one is free, which takes a good part of the time that
// the answer takes. Who waits for what it asked for earlier leaves it to the
// reader, who is at work by then.

// inPlace is for how long a worker reads at a time. An answer that takes longer
// can as well be waited for in the ordinary way, in which the end of the call's
// context or of the run is noticed at once and not when this time is over.
const inPlace = time.Millisecond

// await sends what is left to send, and waits for an operation. It returns what pause does.
func (w *Worker) await(ctx context.Context, o *operation.Op) int {
	began := w.g.Host.Now()
	defer w.waitedSince(began, watch.ForAnswers)
	if o.Reads() {
		defer w.fetcher.WaitedForValues(began)
	}
	defer w.marks.Wait(watch.ForAnswers.Region()).End()
	if c := w.readable(o); c != nil && w.out.Any() && ctx.Err() == nil {
		o.Read(c)
		c.ReadInline(w.req.send, o.Done, inPlace)
		o.Read(nil)
	}
	w.out.Flush() // if nobody did
	select {
	case <-o.Done:
		return 0
	default:
	}
	return w.g.Host.Wait(o.Done, ctx.Done(), w.g.Host.Done())
}

// readable returns the connection over which the answer comes, nil if that is
// not known or cannot be read by a worker.
func (w *Worker) readable(o *operation.Op) transport.InlineReader {
	if from := o.From(); from != godwit.NoNode {
		return w.g.Links.To(from).Shared()
	}
	return nil
}
