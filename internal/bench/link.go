package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
)

// A link connects two processes by a pair of pipes. It carries the orders of a
// case, and it is the coord.Session of the two nodes: the only members that there
// will ever be know each other from the start.
//
// Each message is a line of JSON. A goroutine reads them and puts each into the
// queue of its name. The queues hold two messages, which is enough: a process that
// has sent the message of its next barrier of a name has received the message of
// the one before, and orders are answered one by one.
type link struct {
	self    godwit.NodeID
	members []coord.Member // set by meet, before a node uses the session

	sending sync.Mutex
	out     *json.Encoder

	mu     sync.Mutex
	queues map[string]chan json.RawMessage
	err    error // set before done is closed
	done   chan struct{}
}

var _ coord.Session = (*link)(nil)

// A message is a line of a link.
type message struct {
	Name string          `json:"name"`
	Body json.RawMessage `json:"body"`
}

// newLink starts the goroutine that reads. It ends with in.
func newLink(self godwit.NodeID, in io.Reader, out io.Writer) *link {
	l := &link{self: self, out: json.NewEncoder(out), queues: map[string]chan json.RawMessage{}, done: make(chan struct{})}
	go l.read(json.NewDecoder(in))
	return l
}

func (l *link) read(in *json.Decoder) {
	for {
		var m message
		if err := in.Decode(&m); err != nil {
			l.end(fmt.Errorf("the other process ended: %w", err))
			return
		}
		select {
		case l.queue(m.Name) <- m.Body:
		case <-l.done:
			return
		}
	}
}

func (l *link) queue(name string) chan json.RawMessage {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.queues[name]
	if q == nil {
		q = make(chan json.RawMessage, 2)
		l.queues[name] = q
	}
	return q
}

func (l *link) end(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = err
		close(l.done)
	}
}

func (l *link) send(name string, body any) error {
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	l.sending.Lock()
	defer l.sending.Unlock()
	return l.out.Encode(message{name, b})
}

// receive waits for the other process's next message of a name.
func (l *link) receive(ctx context.Context, name string, body any) error {
	q := l.queue(name)
	select {
	case b := <-q:
		return json.Unmarshal(b, body)
	default:
	}
	select {
	case b := <-q:
		return json.Unmarshal(b, body)
	case <-l.done:
		return fmt.Errorf("wait for %q of the other process: %w", name, l.Err())
	case <-ctx.Done():
		return fmt.Errorf("wait for %q of the other process: %w", name, context.Cause(ctx))
	}
}

// meet tells the nodes each other's addresses.
func (l *link) meet(ctx context.Context, addr string) error {
	all, err := l.Exchange(ctx, "addresses", []byte(addr))
	for i, a := range all {
		l.members = append(l.members, coord.Member{ID: godwit.NodeID(i), Addr: string(a), Incarnation: 1})
	}
	return err
}

func (l *link) Self() godwit.NodeID     { return l.self }
func (l *link) Members() []coord.Member { return append([]coord.Member(nil), l.members...) }
func (l *link) Lease() time.Duration    { return coord.DefaultTTL }
func (l *link) View() godwit.View       { return 1 }

// Secret is no secret: the nodes listen on loopback while they connect, and hold
// nothing but zeros.
func (l *link) Secret() []byte { return make([]byte, coord.SecretSize) }

func (l *link) Barrier(ctx context.Context, name string) error {
	_, err := l.Exchange(ctx, "barrier "+name, nil)
	return err
}

func (l *link) Exchange(ctx context.Context, name string, payload []byte) ([][]byte, error) {
	if err := l.send(name, payload); err != nil {
		return nil, err
	}
	all := [][]byte{payload, payload}
	err := l.receive(ctx, name, &all[1-l.self])
	return all, err
}

// No case stops its run early.
func (l *link) RequestStop(context.Context, string) error {
	return errors.New("bench: nodes of a case are not stopped")
}
func (l *link) Stopping() <-chan struct{} { return nil }
func (l *link) StopReason() string        { return "" }

func (l *link) Cause(lost *coord.MemberError) error { return lost }
func (l *link) Fail(err error)                      { l.end(err) }
func (l *link) Done() <-chan struct{}               { return l.done }

func (l *link) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

func (l *link) Close(context.Context) error {
	l.end(godwit.ErrClosed)
	return nil
}
