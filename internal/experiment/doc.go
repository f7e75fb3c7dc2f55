// Package experiment measures what Godwit claims about many machines: named
// experiments on simulated nodes (package sim), with the real protocol and the
// real training code, in virtual time.
//
// A [Lab] says on what data and how large; [Run] runs one experiment of [Names]
// and returns a [Report], which prints as a table, as CSV and as SVG plots.
//
// # What is compared
//
// Every run trains several epochs and evaluates the model after each, outside of
// virtual time. Its raw speed-up is that of an epoch over one node's. Its
// effective speed-up, as the paper on NuPS has it, is that of the time until the
// model is by nine tenths as good as the best of one node's.
//
// # Models
//
// The network is one of sim's named ones. A training step costs what it costs
// on the machine that runs the experiment, in processor time, measured on a real
// node with one worker, or what is given. Accesses, announcing, loading, messages
// and bytes cost what [MeasuredCosts] says, or what is given, on the cores that the
// node's workers use: see [Lab.Compute]. Each report says what was charged. With
// Lab.Step given, it follows from the lab alone.
//
// Experiments run with several seeds; figures are medians, with their ranges.
package experiment
