package tick

import "github.com/godwit-ps/godwit"

// Pending counts what is under way by a time that only grows as things are added: a
// [Tick], or a clock. It is sorted and short: operations of a few clocks. The zero
// value is empty.
type Pending[T ~uint64] []UnderWay[T]

// UnderWay is what is under way of one time.
type UnderWay[T ~uint64] struct {
	At  T
	Key godwit.Key // of one of the things
	n   int
}

// Add notes one more thing of a time.
func (p *Pending[T]) Add(at T, k godwit.Key) {
	q := *p
	i := len(q)
	for i > 0 && Tick(at).Before(Tick(q[i-1].At)) {
		i--
	}
	if i > 0 && q[i-1].At == at {
		q[i-1].n++
		return
	}
	q = append(q, UnderWay[T]{})
	copy(q[i+1:], q[i:])
	q[i] = UnderWay[T]{at, k, 1}
	*p = q
}

// Remove ends one thing of a time that was added.
func (p *Pending[T]) Remove(at T) {
	q := *p
	for i := range q {
		if q[i].At == at {
			if q[i].n--; q[i].n == 0 {
				*p = append(q[:i], q[i+1:]...)
			}
			return
		}
	}
}

// First returns what is oldest; false: nothing is under way.
func (p Pending[T]) First() (u UnderWay[T], ok bool) {
	if len(p) == 0 {
		return u, false
	}
	return p[0], true
}
