package node

import "time"

// settingUp reports whether the workers still set their model up: none of them
// has advanced its clock.
func (n *Node) settingUp() bool {
	if n.trains.Load() {
		return false
	}
	for _, c := range n.clocks {
		if c.Now() > 0 {
			n.trains.Store(true)
			return false
		}
	}
	return true
}

// early reports whether the policy's rate has shards wait with what they have
// to send. Whoever waits for a WaitSync does not wait for that.
func (p *pacer) early(now int64, marks []mark) bool {
	if p.every == 0 || p.n.rows.Idle() {
		return false
	}
	if now < p.synced+int64(p.every) && len(marks) == 0 && p.waiting.Load() == 0 && !p.n.bound.pressed() && !p.n.settingUp() {
		return true
	}
	p.synced = now
	return false
}

// interval is the time between rounds at a rate, 0 if there is no limit.
func interval(rate float64) time.Duration {
	if rate == 0 {
		return 0
	}
	return time.Duration(min(float64(time.Second)/rate, float64(time.Hour)))
}
