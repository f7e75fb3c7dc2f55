package protocol

import "github.com/godwit-ps/godwit"

// departures are which rows left a shard last: who has read one of them at this node must not go back to what another node said before.
// A row that moves here counts as well. Workers have used it here, as a replica or since it came, and as long as the move is not over an access may have to
// wait for it (Shard.first).
type departures struct {
	n    uint64 // so many so far
	last [knownDepartures]godwit.Key
}

// knownDepartures is of how many rows it is known whose they were. Few leave between the request for a value and its use.
const knownDepartures = 16

// note notes that the row of a key left, or moves here.
func (d *departures) note(k godwit.Key) {
	d.last[d.n%knownDepartures] = k
	d.n++
}

// Departures returns how many rows have left the shard so far: that moved to other nodes, or were replicas and were dropped. Those that moved here count
// as well.
func (s *Shard) Departures() uint64 { return s.departures.n }

// DepartedSince reports whether the row of a key may have left the shard, or moved here, since so many rows had.
func (s *Shard) DepartedSince(k godwit.Key, since uint64) bool {
	d := &s.departures
	if d.n-since > knownDepartures {
		return true
	}
	for ; since < d.n; since++ {
		if d.last[since%knownDepartures] == k {
			return true
		}
	}
	return false
}
