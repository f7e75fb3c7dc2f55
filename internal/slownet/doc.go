// Package slownet puts a slower network between processes of one machine: TCP
// proxies that delay what they pass on, and that pass on no more than interfaces of
// a bandwidth could.
//
// Every node has an interface, which sends one piece after the other and,
// independently, receives one after the other, as those of package sim do. A node
// is reached by an address of the proxy. Between which nodes a connection is stands
// in its wire.Hello, which the proxy reads in passing; what comes before that is
// delayed only.
//
// Each direction of a connection has a goroutine that reads and one that waits and
// writes; Close ends them. A direction holds a bounded number of pieces, then it
// stops reading.
package slownet
