// Package experiment measures what Godwit claims about many machines: named
// experiments on simulated nodes (package sim), with the real protocol and the
// real training code, in virtual time.
//
// A [Lab] says on what data and how large; [Run] runs one experiment of [Names]
// and returns a [Report], which prints as a table, as CSV and as SVG plots.
//
// # What is compared
//
// Every run trains several epochs and judges the model after each, outside of
// virtual time. Its raw speed-up is that of an epoch over one node's. Its
// effective speed-up, as the paper on NuPS has it, is that of the time until the
// model is by nine tenths as good as the best of one node's.
//
// # Models
//
// The network is one of sim's named ones. A training step costs what it costs
// on the machine that runs the experiment, measured on a real node with one
// worker, or what is given. The costs of the server are fixed:
// see [Lab.Compute]. With Lab.Step given, a report follows from the lab alone.
package experiment
