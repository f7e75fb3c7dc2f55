package node

import "github.com/godwit-ps/godwit"

// wantRead announces what a worker has just read, under a policy that keeps what
// was read for some clocks (placement.OnRead).
func (w *worker) wantRead(keys []godwit.Key) error {
	clock := w.Clock()
	for len(keys) > 0 {
		i, _ := w.n.model.Locate(keys[0])
		n := 1
		for n < len(keys) && w.n.tables[i].has(keys[n]) {
			n++
		}
		if err := w.announce(keys[:n], clock, clock+1+godwit.Clock(w.n.keeps(i))); err != nil {
			return err
		}
		keys = keys[n:]
	}
	return nil
}

// keeps returns for how many clocks a node keeps what it read of a table.
func (n *Node) keeps(table int) int64 {
	if n.bound != nil {
		if s := n.bound.limits[table].Load(); s != unlimited {
			return s
		}
	}
	return n.keep
}
