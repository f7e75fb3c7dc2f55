// Package behind pushes the updates of steps that follow each other without waiting for the nodes that get them.
package behind

import (
	"context"

	"github.com/godwit-ps/godwit"
)

// most is how many pushes may be under way. A node that gets its processor time in portions, such as containers get
// every 100 ms, answers several steps at once.
const most = 8

// Pushes are those of one worker. It belongs to one goroutine.
type Pushes struct{ under []godwit.Handle } // the oldest first

// Push hands each key's vector to the key's update rule. It returns when at most some pushes are under way. The
// caller may reuse keys and vectors at once.
func (p *Pushes) Push(ctx context.Context, w godwit.Worker, keys []godwit.Key, push []float32) error {
	h, err := w.PushAsync(ctx, keys, push)
	if err != nil || h == 0 {
		return err
	}
	if p.under = append(p.under, h); len(p.under) <= most {
		return nil
	}
	oldest := p.under[0]
	p.under = append(p.under[:0], p.under[1:]...)
	return w.Wait(ctx, oldest)
}

// Flush returns when all pushes are complete.
func (p *Pushes) Flush(ctx context.Context, w godwit.Worker) error {
	err := w.Wait(ctx, p.under...)
	p.under = p.under[:0]
	return err
}
