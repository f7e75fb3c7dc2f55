// Package sampling draws the random keys that a task asks for, such as the
// negatives of an embedding model, by a scheme that trades conformity to the
// target distribution for locality.
//
// Which keys a task samples is random, so unlike the keys of its data they can
// be chosen: a task that says "I will need n samples" (Prepare) long before it
// says "give me m of them" (Pull) leaves the server time, or a choice. These
// are the sampling primitives of NuPS (SIGMOD 2022) with the logical clocks of
// AdaPM (CIKM 2023).
//
// There are three ideas. A [Distribution] over the rows of a table is the
// target: [Uniform], [LogUniform], [Power] of any frequencies, or the task's
// own. A [Level] is what the task needs: how closely its samples must conform
// to the target. A [Scheme] is how they are drawn; the system picks the one
// that sends least for the level ([Level.Scheme]), and a run may name another
// ([SchemeNamed]). A [Spec] joins them:
//
//	scheme       promises     keys come from            drawn at  what is sent
//	independent  iid          the target                Pull      every sample that is not here by chance
//	prepared     iid          the target                Prepare   every sample moves or is replicated ahead of time
//	reuse        bounded      a pool, each 16 times     Prepare   one sample in 16 moves or is replicated
//	postpone     long-term    a pool; local ones first  Prepare   the same, and pulls wait less
//	local        best-effort  the target, until local   Pull      only where no local key was found
//	repurpose    best-effort  keys accessed directly    Pull      only where none of them is here
//
// With Spec.Distinct a sample is drawn without replacement: its keys are
// distinct, each drawn from the target conditioned on the ones before it, and
// come in the order of the draws, which is as random as the draws. (AdaPM hands
// them out in the order of a hash set.)
//
// # What is demanded
//
// Each worker has its own [Sampler] of a Spec, with its own seed, and calls it
// from its own goroutine. Specs, distributions and schemes are immutable and
// shared by all workers. A sample that is not pulled to its end is finished by
// [Sampler.Finish].
//
// # What is promised
//
// The keys are a function of the Spec, the seed, the order of calls and, for
// the schemes local, repurpose and postpone, of what PullIfLocal answered.
// Nothing is allocated once the buffers have grown to the task's sizes. No call
// loops for ever, however little is local and however few keys are left.
package sampling
