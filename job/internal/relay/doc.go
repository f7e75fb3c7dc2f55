// Package relay carries rows of a model between the nodes of a run and the one that leads its cuts, which evaluates them, or has the checkpoints where
// the others do not see their folder: to it at a cut ([Hub.Take], [Sender]), and from it before training ([Hub.Give], [Receive]).
//
// Nodes ask, and the [Hub] answers at once, as questions between nodes are ([node.Node.Serve]): a question brings rows, or asks for
// some. Where none are there yet, the answer says so, and the node asks again a little later. Where there is no room for rows, it asks for
// room in the same way, by a short question, and sends the rows again when it has it: twice at the most. So at
// most a few questions' rows are in memory at the hub, and one question's at another node.
package relay
