package job

import "github.com/godwit-ps/godwit/node"

// since returns what was done between two stocks of the same nodes, and what
// they held at the later one.
func since(now, before node.Stats) node.Stats {
	now.Local -= before.Local
	now.Replica -= before.Replica
	now.Queued -= before.Queued
	now.Remote -= before.Remote
	now.Calls -= before.Calls
	now.SlowCalls -= before.SlowCalls
	now.Moves -= before.Moves
	now.Copies -= before.Copies
	now.Drops -= before.Drops
	now.Deltas -= before.Deltas
	now.Refreshes -= before.Refreshes
	now.Forwards -= before.Forwards
	now.Late -= before.Late
	now.SentBytes -= before.SentBytes
	now.ReceivedBytes -= before.ReceivedBytes
	now.Frames -= before.Frames
	now.Rounds -= before.Rounds
	now.RoundTime -= before.RoundTime
	return now
}

// add adds an epoch's stats. Of what the nodes hold, the most counts: after the
// last epoch nobody wants replicas any more.
func (r *Result) add(s node.Stats) {
	t := r.Stats
	r.Stats.Add(s)
	r.Stats.LeadMs, r.Stats.Leads = s.LeadMs, s.Leads // is a mean from the start on
	r.Stats.Owned = s.Owned
	r.Stats.Replicas = max(t.Replicas, s.Replicas)
	r.Stats.Bytes = max(t.Bytes, s.Bytes)
}
