// Package sampling draws the random keys that a task asks for, such as the
// negatives of an embedding model, by a scheme that trades conformity to the
// target distribution for locality.
//
// The keys that a task samples are random, so that the server can choose among them,
// unlike among the keys of data. A task announces that it will need n samples (Prepare)
// long before it takes m of them (Pull). The server uses that time to bring keys to the
// node, or chooses keys that are there. These are the sampling primitives of NuPS
// (SIGMOD 2022) with the logical clocks of AdaPM (CIKM 2023).
//
// There are three concepts. A [Distribution] over the rows of a table is the
// target: [Uniform], [LogUniform], [Power] of any frequencies, or the task's
// own. A [Level] says how closely samples must conform to the target. A
// [Scheme] says how they are drawn; the system picks the scheme that sends least for
// the level ([Level.Scheme]), and a run may name another
// ([SchemeNamed]). A [Spec] joins them:
//
//	scheme       promises     keys come from            drawn at  what is sent
//	independent  iid          the target                Pull      every sample that happens not to be here
//	prepared     iid          the target                Prepare   every sample moves or is replicated ahead of time
//	reuse        bounded      a pool, each 16 times     Prepare   one sample in 16 moves or is replicated
//	postpone     long-term    a pool; local ones first  Prepare   the same, and pulls wait less
//	local        best-effort  the target, until local   Pull      only where no local key was found
//	repurpose    best-effort  keys accessed directly    Pull      only where none of them is here
//
// With Spec.Distinct a sample is drawn without replacement: its keys are
// distinct, each drawn from the target conditioned on the ones before it, and
// come in the order of the draws, which is random, too. (AdaPM returns them in the order
// of a hash set.)
//
// # Requirements
//
// Each worker has its own [Sampler] of a Spec, with its own seed, and calls it
// from its own goroutine. Specs, distributions and schemes are immutable and
// shared by all workers. A sample that is not pulled to its end is finished by
// [Sampler.Finish].
//
// # Guarantees
//
// The keys are a function of the Spec, the seed, the order of calls and, for
// the schemes local, repurpose and postpone, of what PullIfLocal answered.
// Nothing is allocated once the buffers have grown to the task's sizes. Every call
// ends, however few keys are local or left.
package sampling
