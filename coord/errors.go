package coord

import (
	"errors"
	"fmt"

	"github.com/godwit-ps/godwit"
)

// Conditions that a caller can test with errors.Is.
var (
	// ErrMismatch: a node with another fingerprint or number of nodes wants to
	// join the same run. Joining fails at all nodes.
	ErrMismatch = errors.New("nodes differ")
	// ErrMissing: not all nodes of the run arrived in time.
	ErrMissing = errors.New("not all nodes arrived")
	// ErrComplete: the run has all its nodes and no place for another.
	ErrComplete = errors.New("run has all its nodes")
	// ErrLeft: a member left orderly and is waited for in vain.
	ErrLeft = errors.New("node left the run")
	// ErrFailed: a member called Fail because of itself.
	ErrFailed = errors.New("node failed")
	// ErrAccess: the coordinator does not let this node in.
	ErrAccess = errors.New("access refused")
	// ErrCoordinator: the coordinator cannot be reached, or lost its memory.
	ErrCoordinator = errors.New("coordinator lost")
)

// A PartitionError says that a run ended because members do not reach each other,
// whose leases the coordinator has not seen expire. It wraps [godwit.ErrPeerLost].
type PartitionError struct {
	Text string // names the members
}

func (e *PartitionError) Error() string { return fmt.Sprintf("%v: %s", godwit.ErrPeerLost, e.Text) }

func (e *PartitionError) Unwrap() error { return godwit.ErrPeerLost }

// A MemberError says that a run ended because a member was lost, as the coordinator or another member found, or called Fail because of
// itself.
type MemberError struct {
	Member Member // that was lost or failed
	Err    error  // godwit.ErrPeerLost or ErrFailed, with the cause
}

func (e *MemberError) Error() string { return fmt.Sprintf("%v: %v", e.Member, e.Err) }

func (e *MemberError) Unwrap() error { return e.Err }
