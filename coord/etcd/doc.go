// Package etcd coordinates runs through an etcd. It holds the client only: package
// coord/etcd/server runs an etcd in this process.
//
// # Keys
//
// All keys of run R begin with godwit/R/. Those under nodes/ and words/ hang on
// the lease of their node, so nothing of a node outlives it by more than a TTL:
//
//	godwit/R/config       the run's configuration blob (no lease; see coord.Coordinator)
//	godwit/R/nodes/00002  node 2's registration: {"addr":…,"fingerprint":…,"nodes":…,"share":…,"roster":…,"sealed":…}
//	godwit/R/words/00002  the last message of node 2
//
// A node sends each message (arrived at a barrier, its part of an exchange, stop,
// failed, left) by overwriting its one key under words/, and every session
// follows godwit/R/ by one watch. etcd delivers every revision of a key in
// the order of the store, so no message is missed, all sessions
// see the same order, a barrier costs one put per node, and there is nothing to
// clean up. What was tried in thought and lost: a key per barrier and node,
// which needs a second write to remove it and a rule for when that is safe.
//
// # Access
//
// A server of package coord/etcd/server answers only calls that give its token
// ([Access].Token). An etcd with users is given a user and password, and one
// without is open to all who reach it.
//
// # Joining
//
//  1. The node registers under the lowest free id, in a transaction that fails if
//     another was faster, and watches from that revision on.
//  2. A roster in which all ids are taken is named by the newest registration's create
//     revision. A node that sees a full roster writes that number into its
//     registration.
//  3. The run is sealed at the first revision at which all ids are taken and
//     all name that roster. All nodes see the same revisions, so they agree.
//  4. A node that sees the seal marks its registration "sealed", and Join returns.
//
// The members' shares, random bytes in their registrations, make the secret of the run: a
// hash of all, in the order of ids ([coord.Session]).
//
// Without step 2, this can happen: A registers as node 0, is killed and started again,
// registers as node 1, and believes that it forms a run of two with its own dead lease.
// With it, the dead one never confirms, its id becomes free with its lease, and
// the next node gets it.
//
// Without step 4, a node that comes when a member of a sealed run has just gone
// cannot tell that run from a starting one. It may still take the free id
// before any other has been marked; then it finds no confirmation of its roster,
// sees a mark, and frees the id again.
//
// # Loss
//
// A node renews its lease every third of the TTL. etcd looks for expired
// leases every half second and deletes their keys, which the others' watches
// show. Whoever is not acknowledged for the TTL stops itself ([coord.Session]).
// The TTL is rounded up to whole seconds, and the server may grant more.
package etcd
