// Package round is the sync rounds of a node ([Loop]): what replicas and their owners have for
// each other is sent, WaitSync calls move on, and stages ([Stage]) have their turn.
//
// It owns one goroutine, which [Loop.Run] is, the helpers that go over the shards with it where processors are free ([host.Team]), and the locks of the WaitSync calls and of the echoes ([Echoes]). No other
// is taken under these, and they are taken under none but the queue of a link that a sender keeps.
// The goroutine sleeps until its bell rings, and then spends no more processor time than the
// [host.Budget] allows.
//
// It calls the shards and links, and, upwards, the three methods of each stage. It never reads a
// connection and decides nothing about keys.
package round
