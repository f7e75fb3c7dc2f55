package job

import "github.com/godwit-ps/godwit/node"

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
