// Package checkpoint keeps the state of a training run in files, from which the run can
// be resumed on any number of nodes.
//
// A checkpoint is a manifest, and the objects that it names: parts, which hold rows with
// the state of their update rules, and sections, which hold whatever else the run needs, each by a
// name that its writer chose. All of them are objects of a [Store], such as a folder ([OpenFolder]).
//
//	checkpoint-0000000012.jsonl                              the manifest of checkpoint 12
//	checkpoint-0000000012.5k3v…q2.0.rows                     the part of node 0
//	checkpoint-0000000012.5k3v…q2.0.0.section                a section of node 0
//
// # Writing
//
// Each node writes its part and its sections with [Write], which returns a [Piece]. The leader
// gathers the pieces and writes the manifest last ([Commit]). An object is durable and complete before
// the next step begins, so a process that is killed at any byte leaves checkpoints that
// are whole, and objects that no manifest names. [Lock.Prune] removes these.
//
// Rows that nobody accessed are not written: the manifest names the seed and the initializers
// from which they follow.
//
// # Changes
//
// An incremental checkpoint has the rows that changed since the one before it, and its manifest also names the parts of the ones
// that it builds on ([Manifest.BuildsOn]), up to one that has all rows. [Checkpoint.Rows] hands over each row once, as it was last
// written; [Incremental] says when all rows are to be written again.
//
// # One run at a time
//
// A run that writes to a store holds its lock ([Acquire]). The names of parts and sections contain a random word, which
// is another one for each attempt to write a checkpoint ([NewID]), so that no two attempts write the same object. The manifest of a
// number is created only if there is none, so two runs can never both write checkpoint 12, not even if both believe
// that they hold the lock.
//
// # Reading
//
// What is read may come from anywhere. Names of objects cannot lead out of the store; sizes
// are compared with those of the objects before memory is taken for them; and each byte that is used was
// covered by a SHA-256 that the manifest names. Errors name the object that is missing, cut short or
// was changed.
//
// docs/file-formats.md describes the bytes.
package checkpoint
