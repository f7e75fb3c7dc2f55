// Package flight keeps what a process did in its last seconds, and writes it down when somebody
// waited too long: Go's flight recorder (runtime/trace), bounded in number and size of its files.
//
// A recording is an execution trace, which "go tool trace" shows: what each goroutine did and
// waited for. A worker's steps are tasks in it, and its waits regions named by their cause, such as
// "wait: answers".
//
// The runtime has one recorder, so all recorders of a process share its window. While there is one, the runtime
// traces, which costs a few percent of the processor time of programs that wait often; so none begins
// by itself.
package flight
