package node

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

// maxHeld bounds the bytes that wait behind a list. A peer that keeps to the
// bounds of its own queue has less under way.
const maxHeld = 128 << 20

// listPatience bounds how long a peer may take to send a list. The question goes
// before all that is queued for it, and so does the answer, so that only who
// stands still takes so long. Workers may wait for what is held back, without a
// deadline of their own.
const listPatience = time.Minute

// lacks asks a peer for a list, and sees that it comes.
func (n *Node) lacks(in *inbound, e *wire.UnknownListError) {
	n.listMisses.Add(1)
	came := make(chan struct{})
	in.waits, in.came = true, came
	in.d.Keep()
	n.links.To(in.from).Push(e.Question())
	in.out.Touch(in.from)
	from := in.from
	n.Go(func() {
		if n.Sleep(listPatience, came, n.Stop()) < 0 && n.Err() == nil {
			n.run.Broke(from, fmt.Errorf("did not send within %v a list of keys that it refers to and was asked for: %w", listPatience, e))
		}
	})
}

// hold keeps a frame until what comes before it was taken.
func (in *inbound) hold(frame []byte) error {
	if in.bytes += len(frame); in.bytes > maxHeld {
		return fmt.Errorf("sent %d bytes behind a list of keys that it was asked for and does not send", in.bytes)
	}
	in.held = append(in.held, slices.Clone(frame))
	return nil
}

// learn takes a list that was asked for, and goes on with what waited for it.
func (n *Node) learn(in *inbound, answer []byte) error {
	if !in.waits {
		return fmt.Errorf("sent a list of keys that nobody asked for")
	}
	if err := in.known.Learn(answer); err != nil {
		return err
	}
	in.waits = false
	close(in.came)
	err := n.goOn(in)
	for ; err == nil && !in.waits && len(in.held) > 0; in.held = in.held[1:] {
		in.bytes -= len(in.held[0])
		err = n.begin(in, in.held[0])
	}
	if len(in.held) == 0 {
		in.held = nil
	}
	return err
}

// tell answers a peer that lacks a list.
func (n *Node) tell(in *inbound, question []byte) error {
	if err := n.links.To(in.from).List(question); err != nil {
		return err
	}
	in.out.Touch(in.from)
	return nil
}
