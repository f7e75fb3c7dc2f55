// Package cuts is the owner of the cuts of a node ([Owner]), which are made while training goes on. What becomes of the rows is its
// [Taker]'s matter.
//
// Owners of all nodes meet in rounds: an exchange that the leader's owner enters when there is to be a cut, and the others at once.
// Then each has its node make the cut and its Taker take it, the nodes tell each other how far each has come with training ([train.State]), and
// what their Takers report. All nodes go through all of that, whatever fails at one of them, so that nobody waits for a node that does not come.
//
// A cut is made at one of two moments. One that falls due ([Config].Due) is made where workers are: it is within an epoch mostly. One at
// a [Owner.Boundary] is made while no worker of any node does anything; training waits until workers have crossed, which takes
// milliseconds, and not until the rows are taken. It comes first: what fell due and has not ended is given up for it, by each node when
// it is there.
package cuts
