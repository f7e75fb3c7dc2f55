package round

import (
	"sync/atomic"
	"time"

	"github.com/godwit-ps/godwit/internal/host"
	"github.com/godwit-ps/godwit/node/internal/link"
	"github.com/godwit-ps/godwit/node/internal/shards"
)

// An over goes over the shards in a round. A team does so, each member with a part of the shards at a time and a sender of its own.
type over struct {
	rows *shards.Set
	team *host.Team
	outs []*link.Sender // of its members; the first has the round

	first        int  // the shard with which the round begins
	up           bool // no refreshes go
	all, bounded bool
	held         atomic.Bool
	stays        atomic.Int64 // how far behind first the first other shard is of which something had to stay; 0: there is none
}

// partShards is how many shards a part of a round has.
const partShards = 4

func newOver(c *Config, out *link.Sender) *over {
	o := &over{rows: c.Rows, outs: []*link.Sender{out}}
	o.team = host.NewTeam(c.Host, host.Rounds, c.Links.Limits.Share, o.parts(), o.part)
	for range o.team.Size() - 1 {
		s := c.Links.Sender()
		o.outs = append(o.outs, &s)
	}
	return o
}

func (o *over) parts() int { return (o.rows.Shards() + partShards - 1) / partShards }

// round has the shards that have work send what is new. It reports whether something had to stay, for want of room, and the processor time of
// helpers. The first shard of which something had to stay begins the next round: else the first could take all the room each time.
func (o *over) round(up, all, bounded bool) (held bool, helped time.Duration) {
	out := o.outs[0]
	out.ForgetFull()
	o.up, o.all, o.bounded = up, all, bounded
	o.held.Store(false)
	o.stays.Store(0)
	helped = o.team.Do(o.parts())
	for _, s := range o.outs[1:] {
		out.Join(s)
	}
	o.first = (o.first + int(o.stays.Load())) % o.rows.Shards()
	return o.held.Load(), helped
}

// part takes a part as a member of the team, and returns how many records that sent.
func (o *over) part(member, part int) (records int) {
	out := o.outs[member]
	shards := o.rows.Shards()
	for n := part * partShards; n < min((part+1)*partShards, shards); n++ {
		switch i := (o.first + n) % shards; {
		case !o.rows.HasWork(i):
		case !out.Rooms() || o.send(i, out):
			o.stayed(n)
		}
	}
	records, out.Records = out.Records, 0
	return records
}

// send has a shard send what the round is about. It reports whether something had to stay of it.
func (o *over) send(i int, out *link.Sender) (held bool) {
	if o.up {
		return o.rows.RoundUp(i, out)
	}
	return o.rows.Round(i, out, o.all, o.bounded)
}

// stayed takes note that something had to stay of a shard that is so far behind the first.
func (o *over) stayed(n int) {
	o.held.Store(true)
	for n > 0 {
		least := o.stays.Load()
		if least > 0 && least <= int64(n) || o.stays.CompareAndSwap(least, int64(n)) {
			return
		}
	}
}
