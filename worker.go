package godwit

import (
	"context"
	"iter"
)

// A Handle names an asynchronous operation of one worker. The zero Handle is an
// operation that was already complete when the call returned. A handle is
// waited for once; waiting for it again returns nil at once.
type Handle uint64

// A SampleID names a prepared sample of one worker.
type SampleID uint64

// A Worker is one thread of the training program at a node, and its access to
// the model. The same code runs unchanged on a node of a real cluster, on one
// process and in simulation.
//
// A Worker belongs to one goroutine: its methods must not be called
// concurrently. Different workers run concurrently.
//
// The keys of a call may be in any order, may repeat, may be of several tables, and may
// be none at all. Every position of a call is served on its own and in any order: a key
// that occurs twice in a Push is pushed twice, and one that occurs twice in a Pull may
// return two values, the older one second. Buffers hold the values of the keys
// one after the other, in the order of the keys ([Model.Floats] gives the
// length). A key out of range or a buffer of the wrong length is an error
// before anything is done.
//
// A call that is cancelled by its context returns an error that names keys,
// peer and cause; pushes that were already sent may still take effect, once.
// All errors are of type *OpError.
type Worker interface {
	// ID returns the worker's name.
	ID() WorkerID
	// Model returns the model that the worker trains.
	Model() *Model

	// Pull reads the values of keys into dst.
	Pull(ctx context.Context, keys []Key, dst []float32) error
	// Push hands each key's vector to the key's update rule.
	Push(ctx context.Context, keys []Key, push []float32) error
	// Set overwrites the values of keys and resets their update rules' state.
	// It takes effect at the owner: pushes of this node before it are
	// overwritten, pushes of other nodes that had not reached the owner yet are
	// added to the new value.
	Set(ctx context.Context, keys []Key, vals []float32) error
	// PullIfLocal reads one value if the node holds the key's main copy or a
	// usable replica, and reports whether it did. It never waits or sends.
	// A key out of range or a dst of the wrong length is never local.
	PullIfLocal(k Key, dst []float32) bool

	// PullAsync starts a Pull, and Wait ends it. The caller must leave keys and dst
	// untouched until then.
	PullAsync(ctx context.Context, keys []Key, dst []float32) (Handle, error)
	// PushAsync starts a Push, and Wait ends it. The caller may reuse keys and push at once.
	PushAsync(ctx context.Context, keys []Key, push []float32) (Handle, error)
	// SetAsync starts a Set, and Wait ends it. The caller may reuse keys and vals at once.
	SetAsync(ctx context.Context, keys []Key, vals []float32) (Handle, error)
	// Wait returns when all the operations are complete, or with the first
	// error of one of them.
	Wait(ctx context.Context, hs ...Handle) error

	// Scan yields the keys in first … end-1 that are in use and have their home
	// at a node, or at any if home is [NoNode], in order. A key is in use from
	// the first read or write of it by anybody, or the first intent that had it
	// brought somewhere, for the rest of the run. All other keys have the
	// values that the initializer makes. Keys that were in use when the iteration
	// began are yielded once each, whatever moves meanwhile; others may be yielded too.
	// An error ends the iteration: [ErrFull] if the node has a thousand other scans
	// open. The loop's body may use the worker.
	Scan(ctx context.Context, first, end Key, home NodeID) iter.Seq2[Key, error]

	// Localize asks that keys move to this node, and returns when they are here
	// or their owners' policy declined (the classic server never moves a key).
	Localize(ctx context.Context, keys []Key) error
	// LocalizeAsync starts the moves; Wait waits for them. The caller may reuse keys at once.
	LocalizeAsync(ctx context.Context, keys []Key) (Handle, error)

	// Intent declares that this worker will access keys while its clock is in
	// [start, end). It never waits for the network, costs the caller a copy of
	// the keys, and may be given arbitrarily early. Intents may overlap, repeat,
	// remain unused, or lie in the past (then they have no effect, as where end is not above start). The error is [ErrKeyRange],
	// [ErrFull] if too many keys are announced already, or that of a run that is over.
	Intent(keys []Key, start, end Clock) error
	// Lookahead returns how many clocks before their start intents should be declared at least, so that the keys are
	// here in time: about as many steps as the worker makes while a key comes. It is 0 while that is not known, and of a
	// node that is alone. It changes while the worker runs.
	Lookahead() Clock
	// Advance raises the worker's clock by one and returns it.
	Advance() Clock
	// Clock returns the worker's clock.
	Clock() Clock
	// BoundAge bounds how many steps the worker makes while nothing comes from other nodes: at clock c, a pull waits until what this
	// node had sent when the worker was at clock c-steps has come to all others, and each of them has made a sync round since and sent what it
	// brings. That depends on the nodes, and not on what their workers do. It holds from the next Advance on; 0 or less, which is how a worker begins, ends
	// it. It sets the pace, and is no promise for each key: what the network has no room for comes with a later round, and what is under way, or
	// held back by a filter, counts as sent. [Table].Staleness promises. Where the policy makes no replicas, no pull waits. Values that are fetched ahead are of as many steps ago as they take to come.
	BoundAge(steps Clock)

	// PullAfter is a PullAsync whose values contain what all workers pushed at clocks
	// before after. The request is sent at once and waits at the keys' owner, so that
	// it costs no round trip once the pushes have arrived. It is served as soon as all
	// workers of the run have reached the clock and their pushes have arrived, in no
	// order with the worker's other operations. The keys must be of tables with bounded
	// staleness; the tables' bound does not matter here, and clocks are counted as
	// there. after may be ahead of the worker's own clock, but Wait before the worker
	// itself has reached it is an error ([ErrBound]). The error is [ErrFull] if too many
	// requests wait already.
	PullAfter(ctx context.Context, after Clock, keys []Key, dst []float32) (Handle, error)
	// Finish says that the worker will make no updates until the next Barrier: no
	// other worker's read waits for it until then. An update that it makes nevertheless
	// counts as made after the Barrier. Finish matters to tables with bounded
	// staleness, and to cuts ([Cutter]): it is a step boundary until the worker's next call. A read that the worker makes
	// after it waits, in such tables, for those that have not finished. A worker that never starts stays at clock 0: others wait for it unless
	// it calls Finish.
	Finish()

	// PrepareSample announces that n samples of a sampler (an index into the
	// samplers of the run's configuration) will be pulled while the worker's
	// clock is in [start, end). How closely samples conform to the sampler's
	// distribution is its level's promise, see package sampling.
	PrepareSample(sampler, n int, start, end Clock) (SampleID, error)
	// PullSample draws the next len(keys) samples of a prepared one: it writes
	// their keys and their values.
	PullSample(ctx context.Context, id SampleID, keys []Key, dst []float32) error
	// FinishSample discards the rest of a prepared sample.
	FinishSample(id SampleID)

	// WaitSync returns when every update made at this node before the call has
	// reached its owner, and every replica at this node shows what its owner
	// had when the call was made, to the rounding of float32: updates of a row may have
	// been added in another order there. It says nothing about intents: the server
	// acts on them independently.
	WaitSync(ctx context.Context) error
	// SyncAll makes all that all workers pushed before visible to all of them. Every worker of every node calls it, and it returns when
	// all have. If some call Barrier instead, the calls of all fail. It is WaitSync, Barrier, WaitSync in fewer messages: nobody reads
	// meanwhile, so copies are brought up to date once, when all updates have arrived. A call that fails because its context ended may be made again, and
	// goes on where it was. Its [OpError] has the Op "sync-all" if the worker had not come to the Barrier: the others wait for it there then.
	SyncAll(ctx context.Context) error
	// Barrier returns when every worker of every node has called it. If some call SyncAll instead, the calls of all fail. A worker
	// whose call fails because its context ended has come all the same: it holds up nobody, and its next call, of Barrier or SyncAll, goes on where that was.
	Barrier(ctx context.Context) error
}

// An Awaiter is a [Worker] that can look after an operation for a while without giving it
// up. Who must return now and then to handle interrupts waits by it, such as a program in
// another language. The workers of package node are Awaiters.
type Awaiter interface {
	Worker
	// Await is a Wait for one operation that leaves it under way when ctx ends first. It
	// then returns false and no error, the operation's buffers stay in use, and Await or
	// Wait may be called again. So it is with an [ErrBound], as the worker itself has to go on first ([Worker.PullAfter]); after any
	// other error the operation is over. A Wait whose context is over gives the operation up.
	Await(ctx context.Context, h Handle) (over bool, err error)
	// AwaitAhead waits for values that were asked for ahead of the worker's present step and are on their way, and
	// reports whether they came before ctx ended. A PullAsync does not wait for them, but asks for what has not come.
	AwaitAhead(ctx context.Context) (came bool, err error)
	// InOrder reports whether pulls that begin now see pushes that begin now, and pushes take effect in their order, without
	// waiting in between, unless the key comes to this node meanwhile. Which is so changes while the worker runs, at
	// Advance.
	InOrder() bool
	// Unhindered reports whether a PullAsync, PushAsync or SetAsync of so many keys would
	// return without waiting for anybody. They wait where a worker has as much under way
	// as it may, and where a table bounds staleness or has a window.
	Unhindered(keys int) bool
}
