package receive

import (
	"fmt"
	"slices"
	"time"

	"github.com/godwit-ps/godwit/internal/wire"
)

// This file is what happens when a peer refers to a list of keys that is not
// known here (package wire, lists). The list is asked for, and the frame and
// all that come behind it wait, so that everything is taken in the order in
// which it was sent. Questions and answers themselves do not wait.

// A lack is a list of keys that a peer refers to and that is not known here.
type lack struct {
	waits bool          // the decoder waits for it,
	came  chan struct{} // … which closes this when it comes,
	held  [][]byte      // … and so do the frames behind its frame
	bytes int           // of these
}

// maxHeld bounds the bytes that wait behind a list. A peer that keeps to the
// bounds of its own queue has less under way.
const maxHeld = 128 << 20

// listTimeout bounds how long a peer may take to send a list. The question goes
// before all that is queued for it, and so does the answer, so that only who
// stands still takes so long. Workers may wait for what is held back, without a
// deadline of their own.
const listTimeout = time.Minute

// lacks asks a peer for a list, and sees that it comes.
func (in *Inbound) lacks(e *wire.UnknownListError) {
	in.r.lacked.Add(1)
	came := make(chan struct{})
	in.lack.waits, in.lack.came = true, came
	in.d.Keep()
	in.r.Links.To(in.from).Push(e.Question())
	in.out.Touch(in.from)
	from := in.from
	in.r.Host.Go(func() {
		if in.r.Host.Sleep(listTimeout, came, in.r.Host.Stop()) < 0 && in.r.Host.Err() == nil {
			in.r.Run.Broke(from, fmt.Errorf("did not send within %v a list of keys that it refers to and was asked for: %w", listTimeout, e))
		}
	})
}

// hold keeps a frame until what comes before it was taken.
func (in *Inbound) hold(frame []byte) error {
	if in.lack.bytes += len(frame); in.lack.bytes > maxHeld {
		return fmt.Errorf("sent %d bytes behind a list of keys that it was asked for and does not send", in.lack.bytes)
	}
	in.lack.held = append(in.lack.held, slices.Clone(frame))
	return nil
}

// learn takes a list that was asked for, and goes on with what waited for it.
func (in *Inbound) learn(answer []byte) error {
	if !in.lack.waits {
		return fmt.Errorf("sent a list of keys that nobody asked for")
	}
	if err := in.known.Learn(answer); err != nil {
		return err
	}
	in.lack.waits = false
	close(in.lack.came)
	err := in.goOn()
	for ; err == nil && !in.lack.waits && len(in.lack.held) > 0; in.lack.held = in.lack.held[1:] {
		in.lack.bytes -= len(in.lack.held[0])
		err = in.begin(in.lack.held[0])
	}
	if len(in.lack.held) == 0 {
		in.lack.held = nil
	}
	return err
}

// tell answers a peer that lacks a list.
func (in *Inbound) tell(question []byte) error {
	if err := in.r.Links.To(in.from).List(question); err != nil {
		return err
	}
	in.out.Touch(in.from)
	return in.flooded()
}
