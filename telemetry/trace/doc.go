// Package trace records what becomes of single keys in a run: who owns them, where replicas are set up,
// refreshed and given up, which intents there are, and how often workers access them. It writes
// folders of segments, one folder a node, and reads them.
//
// A node that traces gives its events to a [Writer], which never makes it wait: what a slow or
// full disk does not take is dropped and counted. A process that is killed loses the events of its last
// quarter of a second.
//
// [Open] reads a trace. Events of a key are put in order by the epochs of its ownership, which no
// clock of a machine has a part in ([Trace.Life]). A segment begins with what the node had of
// each traced key, so that a reader can begin anywhere ([Trace.At]).
//
// The format is described in docs/file-formats.md.
package trace
