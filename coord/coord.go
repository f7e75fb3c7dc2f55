package coord

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/setting"
)

// Bounds on what nodes hand to a session.
const (
	MaxPayload = 1 << 20 // bytes of one node's part of an Exchange
	MaxName    = 512     // bytes of the name of a barrier or exchange
)

// SecretSize is the length of [Session.Secret] in bytes.
const SecretSize = 32

// Defaults of a [Config].
const (
	// DefaultTTL leaves room for processes that a busy machine does not run for
	// seconds; a process that dies is noticed by its connections, at once.
	DefaultTTL = 10 * time.Second
	// DefaultJoin leaves time to start the other nodes.
	DefaultJoin = 60 * time.Second
	// MaxTTL bounds Config.TTL.
	MaxTTL = 24 * time.Hour
)

// A Member is one node of a run.
type Member struct {
	ID   godwit.NodeID // 0 … Nodes-1
	Addr string        // where the node's data plane listens
	// Incarnation tells processes apart that had the same id in runs of the
	// same name: it differs between them and grows.
	Incarnation uint64
}

// String names the member as errors do: "node 2 (10.0.0.2:2391)".
func (m Member) String() string { return fmt.Sprintf("node %d (%s)", m.ID, m.Addr) }

// A Config says which run a node joins, and as what.
type Config struct {
	// Run is the name of the run: 1 … 128 letters, digits, and ".", "_", "-".
	// Runs of different names do not see each other.
	Run string
	// Nodes is how many nodes the run has, 1 … [godwit.MaxNodes].
	Nodes int
	// Addr is the address of this node's data plane. It is handed to the other
	// members as it is.
	Addr string
	// Fingerprint stands for everything that the nodes must have in common. If
	// two nodes differ, joining fails at all nodes. It may be lines of the form
	// "name: value", as node.Config.Fingerprint returns; the error then names the first that differs.
	Fingerprint string
	// TTL is after how long without a sign of life a node counts as lost; 0 is
	// DefaultTTL. A coordinator may round it up to whole seconds.
	TTL time.Duration
	// Join is how long to wait for all nodes; 0 is DefaultJoin.
	Join time.Duration
}

// Checked returns c with defaults filled in. The error is a *setting.Error that names
// the field and what it may be.
func (c Config) Checked() (Config, error) {
	const of = "coord.Config"
	if err := CheckRun(c.Run); err != nil {
		return c, err
	}
	switch {
	case c.Nodes < 1 || c.Nodes > godwit.MaxNodes:
		return c, setting.Outside(of, "Nodes", c.Nodes, 1, godwit.MaxNodes)
	case c.Addr == "" || len(c.Addr) > maxAddr || !utf8.ValidString(c.Addr):
		return c, setting.Bad(of, "Addr", strconv.Quote(c.Addr), fmt.Sprintf("1 … %d bytes of UTF-8", maxAddr))
	case len(c.Fingerprint) > maxFingerprint || !utf8.ValidString(c.Fingerprint):
		return c, setting.Bad(of, "Fingerprint", strconv.Quote(c.Fingerprint), fmt.Sprintf("at most %d bytes of UTF-8", maxFingerprint))
	case c.TTL < 0 || c.TTL > MaxTTL:
		return c, setting.Bad(of, "TTL", c.TTL, fmt.Sprintf("0 (the default) … %v", MaxTTL))
	case c.Join < 0:
		return c, setting.Bad(of, "Join", c.Join, "0 (the default) or more")
	}
	if c.TTL == 0 {
		c.TTL = DefaultTTL
	}
	if c.Join == 0 {
		c.Join = DefaultJoin
	}
	return c, nil
}

// Bounds of the texts of a Config, in bytes.
const (
	maxRun         = 128
	maxAddr        = 512
	maxFingerprint = 4096
)

// CheckRun returns an error if a run cannot have that name: a *setting.Error of
// [Config].Run.
func CheckRun(run string) error {
	foreign := func(r rune) bool {
		return (r < 'a' || 'z' < r) && (r < 'A' || 'Z' < r) && (r < '0' || '9' < r) && r != '.' && r != '_' && r != '-'
	}
	if run == "" || len(run) > maxRun || strings.ContainsFunc(run, foreign) {
		return setting.Bad("coord.Config", "Run", strconv.Quote(run), fmt.Sprintf("1 … %d letters, digits, '.', '_' and '-'", maxRun))
	}
	return nil
}

// A Session is one node's membership of a run. Its methods may be called by
// any number of goroutines.
//
// Every wait ends: with success, with its context, or when the session is
// Done. Errors of a wait name the members that were waited for.
type Session interface {
	// Self is this node's id. Ids are dense, 0 … Nodes-1; a node gets the lowest
	// that is free when it arrives, so the first gets 0.
	Self() godwit.NodeID
	// Members returns all members of the run, by id. The caller may keep it.
	Members() []Member
	// Lease is after how long without a sign of life a node counts as lost:
	// [Config].TTL, as the coordinator rounded it.
	Lease() time.Duration
	// View numbers the membership: 1 when the run is sealed, one more with
	// each member lost.
	View() godwit.View
	// Secret returns SecretSize bytes that are equal at all members of this
	// run and differ from those of every other, also of one with the same name
	// and addresses. Members prove to each other by it that they are members.
	// Besides them, whoever can read the data of the coordinator knows it. The
	// caller may keep it.
	Secret() []byte

	// Barrier returns when every member has called Barrier with this name as
	// often as this node has. Names are free-form text of 1 … MaxName bytes and
	// may be used again. A name is waited for by one call at a time at a node;
	// a second one is refused.
	//
	// A node whose call ends with its context has arrived all the same, if the
	// coordinator was told by then, which it is not where the context was over
	// before. The node's next call of that name waits for the same barrier again.
	Barrier(ctx context.Context, name string) error
	// Exchange hands payload, at most MaxPayload bytes, to all members and
	// returns what all of them handed in, by id. It is a Barrier otherwise;
	// names of barriers and of exchanges are different things. If a call ended
	// with its context and is made again, its first payload counts. The result
	// belongs to the caller; no entry is nil.
	Exchange(ctx context.Context, name string, payload []byte) ([][]byte, error)

	// RequestStop asks all nodes to end the run early but orderly. The first
	// request of any node wins, later ones are accepted and have no effect.
	// When it returns nil, this session is Stopping. Barriers go on to work.
	RequestStop(ctx context.Context, reason string) error
	// Stopping is closed when a node has requested a stop.
	Stopping() <-chan struct{}
	// StopReason is the reason of the first request; empty before.
	StopReason() string

	// Cause returns why this node has lost a peer: lost itself, unless the session has heard
	// nothing of the coordinator for most of the lease. Then neither has the peer, whose
	// lease ended first, and the error is that of a coordinator that is lost.
	Cause(lost *MemberError) error
	// Fail ends the run everywhere because of err: this session is Done at
	// once, the others as soon as they learn of it. The cause is this node, or who
	// a *PartitionError in err names, or the member of a *MemberError in err that
	// wraps godwit.ErrPeerLost (or its Cause): all sessions then end with an error of that type. It
	// returns when the others were told or cannot be, at the latest after the TTL.
	// The session must still be closed.
	Fail(err error)
	// Done is closed when the run is over for this session: a member was lost
	// or failed, this node's lease or the coordinator was lost, or Close.
	Done() <-chan struct{}
	// Err is nil before Done and why the run ended after it. It is a
	// *MemberError where a node is the cause (this one included), and wraps
	// godwit.ErrPeerLost where that node was lost, ErrFailed where it failed;
	// ErrCoordinator where the coordinator was lost; godwit.ErrClosed after
	// this session's own Close, if nothing else came first. It is a *PartitionError
	// where members do not reach each other.
	Err() error

	// Close leaves the run, and returns when nothing of the session runs any
	// more. Waits of this session end with godwit.ErrClosed. To the others it
	// is no loss: their sessions go on, but a barrier or exchange that this
	// node has not called cannot succeed any more and fails with ErrLeft. So
	// nodes close when they are through with the last barrier of the run.
	//
	// An error means that the others could not be told and will see a loss. A
	// ctx without deadline is given the TTL. Closing again returns the same.
	Close(ctx context.Context) error
}
