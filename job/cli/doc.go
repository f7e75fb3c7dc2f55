// Package cli makes a command of a training task, with everything that "godwit train"
// has. A program with a task of its own is one call:
//
//	func init() { task.Register(func() task.Settings { return defaults() }) }
//
//	func main() { cli.Main(cli.Task{Settings: defaults(), Short: "Predict clicks"}) }
//
// Its processes are the nodes of a run, whoever starts them:
//
//	clicks                          one node
//	clicks --nodes 4                four: this process leads, and starts three more
//	clicks --nodes 4 --await        four: this process leads, waits for three from
//	                                other machines, and prints what to run there:
//	GODWIT_TOKEN=… clicks node --etcd HOST:PORT --run NAME
//
// with flags for data, policies, filters, staleness, TLS, exports, JSON and profiles,
// and what the task adds ([Task].ModelFlags and so on). The exit codes are those of
// godwit ([ExitCodes]); an interrupt ends a run in order, a second one at once.
// Policies that the program registered ([placement.Register]) can be chosen by name.
//
// # What a leader starts
//
// A process that leads starts its own program with the command "node" and the flags
// --quiet, --etcd, --run and --leader, which names its process; --workers, --data,
// --profile, --log-format json, --metrics, --pprof, --trace, --trace-keys and the --tls
// flags where it was given them. The token is in the
// environment (GODWIT_TOKEN). Stdin is a pipe that ends when the leader does: a
// process that has --leader and waits for the run to begin gives up then.
// [NodeCommand] does all that.
package cli
