// Agree compares the simulator with real processes behind a slower network.
//
//	go run ./internal/agree                       # make agree
//	go run ./internal/agree -match kge -nodes 2
//
// Each run trains on processes of this machine whose connections go through proxies
// (package slownet) that delay them and limit their bandwidth, and then on as many
// simulated nodes that share this machine's cores, over a network of the same delay
// and bandwidth. It prints the times of an epoch, without the first, and their
// ratio.
//
// Two things are measured on the way and go into the simulation: the delay of a
// byte through a proxy, as timers are late, and the processor time that the proxies
// take for a frame, as they run on the same cores. The step and the costs are those
// of package experiment. Real times need an idle machine: the load is printed.
package main
