// Package record writes what the nodes of a run tell of themselves to files, a sample a second, and
// reads it, while the run goes on or later.
//
// A node has a [Writer], which takes samples and writes them beside the node's trace (package
// telemetry/trace). Whoever leads the run writes what happened in it by a [Diary]: nodes, epochs,
// evaluations, the end. Neither makes anybody wait: what a slow or full disk does not take is
// dropped and counted.
//
// [Open] reads a folder of both. [Run.Poll] reads what was added since. [Begin] and [Run.PollSome] read it bit by bit. [Recent] reads
// the last samples only, and [Outline] and [Run.Each] read all of them and hold none. A line that is not whole, as
// a process that was killed leaves it, is passed over.
//
// The counters of a [Sample] are totals since the node began, so that a rate follows from any two
// samples ([Sample.Since]), and a sample that is missing does no harm.
//
// The format is described in docs/file-formats.md.
package record
