// Package host is where a node gets time, goroutines, waiting and memory from, real or
// simulated ([World]), and what its goroutines share of its life ([Host]): that it is to
// stop, and why the run is over.
//
// It owns no goroutine of its own: those that Go starts belong to the World, and Join
// waits for them. It has no lock that others can hold. A [Bell] wakes a goroutine, and a
// [Budget] says how much processor time rounds and planner may take together.
//
// It calls nobody and knows neither keys nor peers.
package host
