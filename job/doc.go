// Package job runs a training task on the nodes of a cluster, from the
// description of what to train to the result.
//
// A [Spec] says everything that the nodes must agree on. There are three ways
// to run one:
//
//   - [Local] runs all nodes in this process; one node is the plain case.
//   - [Lead] makes this process the first of several nodes. It leaves the spec for
//     the others at a coordinator ([coord.Coordinator]), such as an etcd, and
//     starts those of this machine as processes.
//   - [Join] makes this process one of the other nodes. It knows the coordinator
//     and the name of the run, and reads the spec there.
//
// This package knows no coordinator itself, so that programs that only use Local
// link no etcd. Package coord/etcd has the client, and coord/etcd/server an etcd
// that runs in the leader's process; package job/cli brings all together.
//
// Whichever way, each node does the same: it joins, starts a node.Node, trains,
// evaluates the model, and leaves. The nodes are equal, only that one writes the
// model ([NodeConfig].Export).
//
// # How a run ends
//
// All epochs are trained; or somebody asks for an end ([NodeConfig].Stop at any node),
// then every worker finishes its batch, and the model is evaluated and exported: as
// it is, or the best one of those in checkpoints; or a node fails or is lost, then the run ends everywhere, with an error
// that names the node. Whatever happened, when Local, Lead or Join return,
// nothing is left running of what they started, processes included.
package job
