package node

import (
	"context"
	"fmt"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/wire"
)

// MaxQuestion is the largest length in bytes of a question to another node, and of an answer.
const MaxQuestion = wire.MaxAsk

// Ask sends a question to another node, over the connection that rows take, and returns at once. Deliver is called with the
// answer, from any goroutine: it must not wait or use the node, nor keep the answer. Wait returns when deliver has
// returned, or with an error: the context's, or why the run ended. Any number of goroutines may
// call Ask and wait.
func (n *Node) Ask(to godwit.NodeID, question []byte, deliver func(answer []byte)) (wait func(context.Context) error) {
	if to == n.self || int(to) >= n.links.Nodes() || len(question) > MaxQuestion {
		err := fmt.Errorf("node: a question of %d bytes to node %d, want at most %d, and another node of the run's %d", len(question), to, MaxQuestion, n.links.Nodes())
		return func(context.Context) error { return err }
	}
	return n.receiver.Asks.Ask(to, question, deliver)
}

// Serve has the questions of other nodes answered, one at a time, by whoever takes them from a connection: answer
// must not wait or use the node, nor keep the question. Questions that came before Serve was called are answered by it, and
// those that come after a call with nil wait for the next call. An answer of more than MaxQuestion bytes ends the run, with an error that says so.
func (n *Node) Serve(answer func(node int, question []byte) []byte) { n.receiver.Asks.Serve(answer) }
