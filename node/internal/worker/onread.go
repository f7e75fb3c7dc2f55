package worker

import "github.com/godwit-ps/godwit"

// reads takes note of keys that the worker pulls, for policies that want to know.
func (w *Worker) reads(keys []godwit.Key) error {
	if w.g.Hot != nil {
		w.g.Hot.Accessed(w.id.Local, keys)
	}
	if w.g.onRead {
		return w.wantRead(keys)
	}
	return nil
}

// wantRead announces what a worker has just read, under a policy that keeps what
// was read for some clocks (placement.OnRead).
func (w *Worker) wantRead(keys []godwit.Key) error {
	clock := w.Clock()
	for len(keys) > 0 {
		i, _ := w.g.Model.Locate(keys[0])
		n := w.g.Rows.Of(i).Run(keys)
		if err := w.announce(keys[:n], clock, clock+1+godwit.Clock(w.g.keeps(i))); err != nil {
			return err
		}
		keys = keys[n:]
	}
	return nil
}

// keeps returns for how many clocks a node keeps what it read of a table.
func (g *Group) keeps(table int) int64 {
	if s, ok := g.Bound.Limit(table); ok {
		return s
	}
	return g.stays
}
