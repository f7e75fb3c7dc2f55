package node

import (
	"fmt"

	"github.com/godwit-ps/godwit"
)

// ReadRow appends the row of a key to dst, value and then the state of its rule, and reports
// whether its main copy is here. Pushes that this or another node has not sent yet are
// missing. Of a key that nobody has accessed it is the row that it has at first, and none is made. Any goroutine may call it, also an answer of Serve.
func (n *Node) ReadRow(k godwit.Key, dst []float32) (row []float32, here bool, err error) {
	if err := n.checkRow(k, 0, 0); err != nil {
		return dst, false, err
	}
	row, here = n.cuts.Rows.Row(k, dst)
	return row, here, n.Err()
}

// Used reports whether anybody has accessed a key, and known whether this node knows that without asking: the key's home
// does, and who has a row of it. A key that nobody has accessed has the value that First writes. No row is made. Any goroutine may call it, also
// an answer of Serve.
func (n *Node) Used(k godwit.Key) (used, known bool) { return n.rows.Used(k) }

// First writes the row that a key has at first, its value and then the state of its rule.
func (n *Node) First(k godwit.Key, row []float32) {
	t, _ := n.cfg.Model.Locate(k)
	n.proto.First(t, k, row)
}

// WriteRow overwrites floats of a key's row, from the float at on, and reports whether its main copy
// is here: else nothing was written. Replicas at other nodes follow in the next rounds. Unlike [godwit.Worker.Set]
// it leaves the other floats alone, and so may write a value and keep its state. Any goroutine may call it, also
// an answer of Serve.
func (n *Node) WriteRow(k godwit.Key, at int, part []float32) (here bool, err error) {
	if err := n.checkRow(k, at, len(part)); err != nil {
		return false, err
	}
	here = n.cuts.Rows.Restore(k, at, part, false)
	return here, n.Err()
}

func (n *Node) checkRow(k godwit.Key, at, floats int) error {
	m := n.cfg.Model
	if uint64(k) >= m.Keys() {
		return fmt.Errorf("node: row of key %d: %w: the model has keys 0 … %d", k, godwit.ErrKeyRange, m.Keys()-1)
	}
	if t, _ := m.Locate(k); at < 0 || at > m.TableRowLen(t)-floats {
		return fmt.Errorf("node: row of key %d: %w: %d floats from %d on, the row has %d with its state", k, godwit.ErrLength, floats, at, m.TableRowLen(t))
	}
	return nil
}
