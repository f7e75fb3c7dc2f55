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

// An Ask asks the node that has the [Collector], as [node.Node.Ask] does.
type Ask func(question []byte, deliver func(answer []byte)) (wait func(context.Context) error)

// How a Sender goes about it.
const (
	sendBytes   = 64 << 10 // of a piece of the trace, about: rows wait for no more on a connection
	sendEvery   = 250 * time.Millisecond
	again       = 20 * time.Millisecond // a question is asked again
	samplesHeld = 64                    // samples that wait to be sent; of more, the oldest are dropped
	sendTimeout = 2 * time.Second       // for what is left at the end
)

// A Sender sends the record of a node to the one that leads the run, from the node's folder. It has one question open at a time. What
// the leader is too slow for waits in the folder, and is left out when that has three segments of it.
type Sender struct {
	header  record.Header
	copier  *trace.Copier
	samples chan []byte
	skipped atomic.Uint64 // events of the trace that were left out
	ask     Ask
	broken  <-chan struct{} // closed when no answer comes any more
	cancel  context.CancelFunc
	stop    chan struct{}
	done    chan struct{}

	// of the goroutine that sends, until done is closed
	total uint64 // events of which pieces tell, and those that were not read
	told  uint64 // … of which pieces tell that were taken
	lacks uint64 // events that the leader lacks
	err   error  // why it ended early
}

var errOver = errors.New("nothing of this node is wanted")

// newSender returns the Sender of a record that was begun.
func newSender(dir string, h record.Header, temporary bool) *Sender {
	return &Sender{header: h, copier: trace.NewCopier(dir, h.Node, temporary), samples: make(chan []byte, samplesHeld), stop: make(chan struct{}), done: make(chan struct{})}
}

// start begins to send.
func (s *Sender) start(ask Ask, broken <-chan struct{}) {
	ctx, cancel := context.WithCancel(context.Background())
	s.ask, s.broken, s.cancel = ask, broken, cancel
	go s.run(ctx)
}

// sample has a sample sent. It does not wait.
func (s *Sender) sample(x record.Sample) {
	x.Lost += s.skipped.Load()
	b, err := json.Marshal(x)
	if err != nil || len(b) > mostData {
		return // a sample that is missing does no harm
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

// run sends until there is nothing to be sent any more.
func (s *Sender) run(ctx context.Context) {
	defer close(s.done)
	s.err = s.send(ctx)
	if errors.Is(s.err, errOver) {
		s.err = nil
		return
	}
	told := s.copier.Skipped()
	rest, err := s.copier.End()
	s.total += rest
	s.lacks, s.err = s.total-s.told+told, errors.Join(s.err, err)
	s.ask((&message{kind: leaves, total: s.total}).encode(), func([]byte) {}) // who leads may be stuck: no answer is waited for
}

func (s *Sender) send(ctx context.Context) error {
	t := time.NewTicker(sendEvery)
	defer t.Stop()
	h, err := json.Marshal(s.header)
	if err != nil {
		return err
	}
	if err := s.say(ctx, t, &message{kind: comes, text: h}); err != nil {
		return err
	}
	for {
		last := stopped(s.stop) // what was written before is sent
		more, err := s.some(ctx, t)
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
			return nil // the run says why
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

// some sends the next sample or piece, if there is one.
func (s *Sender) some(ctx context.Context, t *time.Ticker) (more bool, err error) {
	select {
	case b := <-s.samples:
		return true, s.say(ctx, t, &message{kind: sampled, text: b})
	default:
	}
	p, err := s.copier.Next(sendBytes)
	s.skipped.Store(s.copier.Skipped())
	if err != nil || len(p.Data) == 0 {
		return false, err
	}
	if len(p.Data) > mostData {
		return false, fmt.Errorf("recording: the header of a segment has %d bytes, more than a message between nodes takes", len(p.Data))
	}
	events, err := p.Events()
	if err != nil {
		return false, err
	}
	s.total += events
	if err = s.say(ctx, t, &message{kind: traced, piece: p}); err == nil {
		s.told += events
	}
	return true, err
}

// say asks until the answer is not to wait.
func (s *Sender) say(ctx context.Context, t *time.Ticker, m *message) error {
	q := m.encode()
	for {
		answer, err := s.answer(ctx, t, q)
		switch {
		case err != nil:
			return err
		case len(answer) == 0:
			return errors.New("recording: an empty answer")
		case answer[0] == bad:
			return errors.New(string(answer[1:]))
		case answer[0] == over:
			return errOver
		case answer[0] != wait:
			return nil
		}
		if err := s.skip(); err != nil {
			return err
		}
		select {
		case <-time.After(again):
		case <-s.broken:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// answer asks once. While no answer comes, what grows too old is left out.
func (s *Sender) answer(ctx context.Context, t *time.Ticker, q []byte) ([]byte, error) {
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
			return nil, errOver // the run says why
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (s *Sender) skip() error {
	err := s.copier.Skip()
	s.skipped.Store(s.copier.Skipped())
	return err
}

// end sends what is left, for 2 s at the most, or nothing more. It says what the leader lacks.
func (s *Sender) end(rest bool) error {
	if s.ask == nil || stopped(s.stop) {
		return nil // it was never begun, or has ended
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
		case <-time.After(sendTimeout): // it waits for the disk, or for a connection that takes nothing
			return fmt.Errorf("recording: node 0 of the record was not told the end within %v", 2*sendTimeout)
		}
	}
	switch {
	case s.err != nil && !errors.Is(s.err, context.Canceled):
		return fmt.Errorf("what this node does is not shown at the node that leads: %w", s.err)
	case s.lacks > 0:
		return fmt.Errorf("the node that leads lacks %d events of this node's trace: it or the network took less than there were", s.lacks)
	}
	return nil
}
