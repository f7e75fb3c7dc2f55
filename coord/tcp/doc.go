// Package tcp is the coordinator of a run without a program of its own: one of its processes
// serves ([Serve]), and all nodes connect to it ([Join]). It suits runs whose processes are
// started together by something that tells them an address and a token, such as torchrun.
//
// The server gives the messages of all nodes one order, and sends them to all: each node
// has a replica of the run's state. Nothing is stored. When the server's process dies, the run
// is over, as it is when any other node dies.
//
// Whoever knows the token can join. Connections are encrypted where the server's listener and the
// nodes ([Join]) speak TLS.
package tcp
