package recording

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/godwit-ps/godwit/telemetry/record"
	"github.com/godwit-ps/godwit/telemetry/trace"
)

// An Ask sends a question to the node that has the [Collector], as [node.Node.Ask] does.
type Ask func(question []byte, deliver func(answer []byte)) (wait func(context.Context) error)

// The bounds and intervals of a Sender.
const (
	chunkBytes  = 64 << 10               // of a chunk, about: rows of training wait for no more on the connection
	sendEvery   = 250 * time.Millisecond // how often the Sender looks for new records
	retryAfter  = 20 * time.Millisecond  // before a message is sent again
	maxSamples  = 64                     // samples that wait to be sent; the oldest are dropped when there are more
	sendTimeout = 2 * time.Second        // for what is left at the end
)

// A Sender sends the record of a node to the node that leads the run. It reads the trace from the node's folder. It has one question open at a
// time. If the leader is slow, the trace waits in the folder, and is skipped when three segments of it wait.
type Sender struct {
	header  record.Header
	copier  *trace.Copier
	samples chan []byte
	skipped atomic.Uint64 // events of the trace that were skipped
	ask     Ask
	broken  <-chan struct{} // closed when no answer comes any more
	cancel  context.CancelFunc
	stop    chan struct{}
	done    chan struct{}

	// The goroutine that sends uses what follows until it closes done.
	total  uint64 // events of the trace: those that pieces stood for, and at the end also those that were not read
	sent   uint64 // events that the leader took
	wanted bool   // the leader took hello
	err    error  // why the Sender ended early
}

// errUnwanted ends a Sender without an error.
var errUnwanted = errors.New("nothing of this node is wanted any more")

// newSender returns the Sender of the record of a node in the folder of a run. If temporary is set, segments are removed after they were read.
func newSender(dir string, h record.Header, temporary bool) *Sender {
	return &Sender{header: h, copier: trace.NewCopier(dir, h.Node, temporary), samples: make(chan []byte, maxSamples), stop: make(chan struct{}), done: make(chan struct{})}
}

// start begins to send. When broken is closed, no answer comes any more.
func (s *Sender) start(ask Ask, broken <-chan struct{}) {
	ctx, cancel := context.WithCancel(context.Background())
	s.ask, s.broken, s.cancel = ask, broken, cancel
	go s.run(ctx)
}

// sample puts a sample among those to be sent. It does not wait.
func (s *Sender) sample(x record.Sample) {
	x.Lost += s.skipped.Load()
	b, err := json.Marshal(x)
	if err != nil || len(b) > maxData {
		return // the next sample has the same counters, later
	}
	for {
		select {
		case s.samples <- b:
			return
		default:
		}
		select {
		case <-s.samples:
		default:
		}
	}
}

// run sends until the end.
func (s *Sender) run(ctx context.Context) {
	defer close(s.done)
	s.err = s.send(ctx)
	if errors.Is(s.err, errUnwanted) {
		s.err = nil
		if !s.wanted {
			return
		}
	}
	rest, err := s.copier.End()
	s.total += rest
	s.err = errors.Join(s.err, err)
	s.ask((&message{kind: goodbye, total: s.total}).encode(), func([]byte) {}) // no answer is waited for: the leader may be stuck
}

// send sends hello, and then samples and the trace until the Sender is stopped and all is sent.
func (s *Sender) send(ctx context.Context) error {
	t := time.NewTicker(sendEvery)
	defer t.Stop()
	h, err := json.Marshal(s.header)
	if err != nil {
		return err
	}
	if err := s.deliver(ctx, t, &message{kind: hello, text: h}); err != nil {
		return err
	}
	s.wanted = true
	for {
		last := stopped(s.stop) // before the next look, so that all that was written until then is sent
		more, err := s.next(ctx, t)
		if err != nil || last && !more {
			return err
		}
		if more {
			continue
		}
		select {
		case <-t.C:
		case <-s.stop:
		case <-s.broken:
			return nil // the run tells why
		}
	}
}

func stopped(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// next sends the next sample or chunk, if there is one.
func (s *Sender) next(ctx context.Context, t *time.Ticker) (more bool, err error) {
	select {
	case b := <-s.samples:
		return true, s.deliver(ctx, t, &message{kind: sample, text: b})
	default:
	}
	p, err := s.copier.Next(chunkBytes)
	s.skipped.Store(s.copier.Skipped())
	if err != nil || len(p.Data) == 0 {
		return false, err
	}
	if len(p.Data) > maxData {
		return false, fmt.Errorf("recording: the header of a segment has %d bytes, more than a message between nodes takes", len(p.Data))
	}
	events, err := p.Events()
	if err != nil {
		return false, err
	}
	s.total += events
	if err = s.deliver(ctx, t, &message{kind: chunk, piece: p}); err == nil {
		s.sent += events - p.Skipped
	}
	return true, err
}

// deliver sends a message until the leader takes it.
func (s *Sender) deliver(ctx context.Context, t *time.Ticker, m *message) error {
	q := m.encode()
	for {
		answer, err := s.exchange(ctx, t, q)
		switch {
		case err != nil:
			return err
		case len(answer) == 0:
			return errors.New("recording: an empty answer")
		case answer[0] == refused:
			return errors.New(string(answer[1:]))
		case answer[0] == unwanted:
			return errUnwanted
		case answer[0] != retry:
			return nil
		}
		select {
		case <-time.After(retryAfter):
		case <-s.broken:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// exchange sends a question once and waits for the answer. What becomes too old meanwhile is skipped.
func (s *Sender) exchange(ctx context.Context, t *time.Ticker, q []byte) ([]byte, error) {
	answer := make(chan []byte, 1)
	s.ask(q, func(b []byte) { answer <- slices.Clone(b) })
	for {
		select {
		case b := <-answer:
			return b, nil
		case <-t.C:
			if err := s.skip(); err != nil {
				return nil, err
			}
		case <-s.broken:
			return nil, errUnwanted // the run tells why
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// skip skips what is too old.
func (s *Sender) skip() error {
	err := s.copier.Skip()
	s.skipped.Store(s.copier.Skipped())
	return err
}

// end ends the Sender. If rest is set, it sends what is left, for 2 s at the most, and its error says what the leader lacks.
func (s *Sender) end(rest bool) error {
	if s.ask == nil || stopped(s.stop) {
		return nil // it was not started, or was ended before
	}
	defer s.cancel()
	close(s.stop)
	if !rest {
		s.cancel()
	}
	wait := time.NewTimer(sendTimeout)
	defer wait.Stop()
	select {
	case <-s.done:
	case <-wait.C:
		s.cancel()
		select {
		case <-s.done:
		case <-time.After(sendTimeout): // the goroutine waits for the disk, or for a connection that takes nothing
			return fmt.Errorf("recording: the disk, or the connection to the node that leads, took nothing for %v", 2*sendTimeout)
		}
	}
	switch {
	case s.err != nil && !errors.Is(s.err, context.Canceled):
		return fmt.Errorf("recording: the node that leads does not show what this node does: %w", s.err)
	case rest && s.total > s.sent:
		return tooMany(s.total - s.sent)
	}
	return nil
}

// tooMany is the error that so many events of this node are not at the node that leads.
func tooMany(events uint64) error {
	return fmt.Errorf("recording: this node had %d more events than the node that leads or the network took", events)
}
