// Package sampling draws the random keys that a task asks for, such as the
// negatives of an embedding model, by a scheme that trades conformity to the
// target distribution for locality.
//
// Which keys a task samples is random, so unlike the keys of its data they can
// be chosen: a task that says "I will need n samples" (Prepare) long before it
// says "give me m of them" (Pull) leaves the server time, or a choice. These
// are the sampling primitives of NuPS (SIGMOD 2022) with the logical clocks of
// AdaPM (CIKM 2023). A [Spec] joins a table, a [Distribution] over its rows and
// a [Scheme]:
//
//	scheme        drawn at  samples                        network
//	Independent   Pull      i.i.d.                         every sample that is not here by chance
//	Prepared      Prepare   i.i.d.                         every sample moves or is replicated ahead of time
//	Local         Pull      biased to what is local, see   only where no local key was found
//	              Local
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
// Local, of what PullIfLocal answered. Nothing is allocated once the buffers
// have grown to the task's sizes. No call loops for ever, however little is
// local and however few keys are left.
package sampling
