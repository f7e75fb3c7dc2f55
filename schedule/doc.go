// Package schedule hands out the work of an epoch. It decides, and does nothing else: no
// time, goroutines, locks or messages, and no randomness that does not follow from a seed.
//
// An epoch is a pool of chunks. A chunk is some steps that follow each other: small, so that
// the last chunk of a slow worker delays the epoch little, and large enough that handing it
// out costs nothing beside training it. The division follows from the size of the data alone
// ([Cut]), so a run that goes on with another number of nodes has the same chunks. Where
// items may be trained in any order, [Items] says which items a step of a chunk has.
//
// # Leases
//
// One node, the leader, has the [Pool]. A node leases chunks from it in bulk and ahead, and
// tells it which chunks it has finished. These rules hold:
//
//	L1  A chunk of an epoch is leased to one node at a time, and finished once.
//	L2  A node gets the chunks of its own range, a run of consecutive chunks that
//	    is the same in each epoch, from the first on, while there are any.
//	L3  Without chunks of its own, it gets the last chunks of the range that would
//	    be finished last by its own node.
//	L4  What a node has leased and not finished is at most half of its fair share of
//	    what is unfinished of the epoch, but a chunk or two for each worker in any case. The
//	    share follows from how many chunks the nodes have finished. It is up to three
//	    quarters of the share, and to a quarter of what would be the node's of a whole epoch,
//	    where its workers must know so many chunks ahead of their training.
//	L5  A slow node gets no chunk that the other nodes would finish before it does.
//	L6  When an epoch has no chunks left for a node, it gets those of the next epoch.
//	    From then on it gets none of the former.
//	L7  All chunks of an epoch are leased in the end: L5 binds a node only while
//	    another one has chunks of the epoch to finish, and so will ask again.
//	L8  What a node begins with follows from the plan, which all nodes know: a quarter of
//	    its share. Nobody asks for it. A node that is told that nothing else is left
//	    for it does not ask again.
//
// # Positions
//
// A [Position] says what of a run is trained: the finished chunks, and how many steps of
// each chunk that is under way. A pool can begin at one, with any number of nodes.
package schedule
