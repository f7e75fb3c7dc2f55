package coord

import "context"

// A Coordinator is where the nodes of runs find each other. Package coord/etcd has
// one, [etcd.Access]; nodes of a single process meet without ([mem.Hub]). Its
// methods may be called by any number of goroutines. Where it cannot be reached,
// they wait within ctx, and then return an [ErrCoordinator]; where it refuses this
// process, they return an [ErrAccess] at once.
//
// [etcd.Access]: https://pkg.go.dev/github.com/godwit-ps/godwit/coord/etcd#Access
// [mem.Hub]: https://pkg.go.dev/github.com/godwit-ps/godwit/coord/mem#Hub
type Coordinator interface {
	// Join makes this process a node of a run, and returns when all nodes are
	// there, or after [Config].Join with an [ErrMissing]. It is an [ErrMismatch]
	// that nodes differ, and an [ErrComplete] that there is no place for this one.
	Join(ctx context.Context, cfg Config) (Session, error)

	// Configure stores the configuration of a run, 1 … [MaxConfiguration] bytes, so
	// that a process that knows only the name of the run can join it. It replaces
	// an earlier one of that name, and stays until Forget.
	Configure(ctx context.Context, run string, blob []byte) error
	// Configuration returns the configuration of a run, and waits for it.
	Configuration(ctx context.Context, run string) ([]byte, error)
	// Forget removes the configuration of a run. Whoever called Configure calls it
	// when the run is over, so that nodes of the next run of that name wait for
	// the next configuration. A run without one is no error.
	Forget(ctx context.Context, run string) error
	// Drain waits until no node of the run is left. Whoever ends the coordinator
	// calls it before: to nodes that are still at work, one that has ended is lost.
	Drain(ctx context.Context, run string) error

	// Contact is what another process needs to reach the coordinator.
	Contact() Contact
}

// MaxConfiguration bounds a run's configuration, in bytes.
const MaxConfiguration = 1 << 20

// A Contact is how processes reach a coordinator.
type Contact struct {
	Endpoints []string // host:port each, with or without a scheme before it
	Token     string   // what lets them in; empty: nothing is asked for
}
