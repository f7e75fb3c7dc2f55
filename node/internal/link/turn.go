package link

// A Turn is when a worker makes room for others again. It belongs to the worker's goroutine.
type Turn struct{ next int64 }

// Give takes what has arrived, and lets goroutines run that are ready, where so many workers
// keep all processors busy: a worker that never waits keeps the others from its processor
// until it is preempted, after 10 ms, and nobody looks at the network meanwhile. A worker calls it
// between steps, and it does something so seldom that it takes little of the worker's time,
// however many peers there are.
func (t *Turn) Give(ls *Links, workers int) {
	now := ls.host.Now()
	if now < t.next || ls.Alone() {
		return
	}
	t.next = now + int64(ls.Nodes()-1)*givesEvery
	if !ls.host.Crowded(workers) {
		return
	}
	for _, l := range ls.All {
		if c := l.Shared(); c != nil {
			c.Poll()
		}
	}
	ls.host.Yield()
}

// givesEvery is how many nanoseconds pass until a worker looks at the network again, for each peer. A look that finds
// nothing takes about half a microsecond.
const givesEvery = 50_000
