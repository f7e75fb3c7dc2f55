package wire

import "github.com/godwit-ps/godwit"

// A Kind says what a record is. The comment of each kind names its direction,
// the fields that it carries beside Kind and Key, and its meaning.
type Kind uint8

const (
	// Requests. They travel from the node of the asking worker to the key's
	// owner, over whoever is believed to be it, and carry Origin (who asks and
	// gets the reply), Op (the operation's id at the origin), Index (the key's
	// position in that operation), Hops and Coming.
	Pull     Kind = iota + 1 // read the value; Rough, Whole
	Push                     // Vals: the pushed vector, applied by the owner's update rule
	Set                      // Vals: the new value; Seq: replica updates of the origin up to here are overwritten (0: the origin holds no replica)
	Localize                 // move the key to the origin

	// Replies to requests, to their origin: Op, Index.
	PullReply // Vals: the value, or the row
	Done      // the push, set or localize is complete

	// Copies. Origin is the node that holds or wants the copy; Hops and Coming
	// as with requests, on the way to the owner.
	Interest // origin → owner: the node wants the key; Seq: all its replica updates to come are later
	Delta    // origin → owner: Seq; Vals: the difference that pushes at the replica made to the row
	End      // origin → owner: the node wants the key no longer; Seq; Vals: the last difference, or none

	// Answers of the owner to the node that holds or wants the copy.
	Refresh // Epoch, Version; Seq: the last of the receiver's updates that is contained; Vals: the row
	Ack     // Version; Seq: as Refresh, where the receiver's copy is already equal to the row, or is to hear later what it lacks
	Dropped // Seq: the End was taken; the replica may go
	Refuse  // the owner's policy gives no copy

	// Moves.
	Transfer // old owner → new: Epoch (of the new ownership), Version, Vals: the row, Holders
	Claim    // new owner → home: Epoch; Origin: the new owner
	Release  // home → old owner: Epoch, Origin: the new owner; the frozen copy may go
	Drained  // old owner → new: Epoch; every request that came over the old owner has been passed on

	// Marks. They have no key.
	SyncMark // Op: send what is new for my replicas, then answer; 0: my workers read nothing before the next mark
	SyncAck  // Op: done

	// Scans. The questions and answers of one scan follow each other.
	Scan    // asker → home: Op; which keys of Key … Seq-1 whose home is here are in use?
	InUse   // home → asker: Op; this key is
	Scanned // home → asker: Op; all were named that are before Key
	// Bounded staleness. Op, Seq and Version are ticks (package node): times of
	// workers that only grow.
	Settled   // Op: every update of the sender's workers before this has reached its owner; Seq: the receiver's replicas contain what the sender had when all were so far; Version: what the sender waits for; Key: which of its workers is last, twice, plus 1 while updates of it are on their way
	PullAfter // as Pull; Seq: to be served when all nodes have settled this
	Rebound   // Op; Key: the first of a table, Seq: its new bound, Version: of the change; answered by SyncAck

	// Learned intents. A Bid may have no answer.
	Wish     // as Interest, of a node whose workers announced nothing
	Bid      // a node that uses the key → owner: of the changes since Version, Seq were this node's; Version 0: tell the version
	BidReply // owner → who bid: the key stays; Version: what its row has now. 0: the node may ask for the key

	// Cuts.
	Cut // Op: the number of a cut; Key: how far the sender has come with it (package cut of a node); Seq: 1 if it gave the cut up, plus 2 if the cut is of the changed rows; Version: the tick that the sender's workers do not pass before all know where to cross

	// Echoes of rounds. They have no key.
	RoundMark // Op: answer after your next sync round
	RoundDone // Op: done

	kinds // number of kinds + 1
)

// Kinds is one more than the greatest kind: the length of a table by kind.
const Kinds = int(kinds)

var kindNames = [...]string{
	Pull: "pull", Push: "push", Set: "set", Localize: "localize",
	PullReply: "pull-reply", Done: "done",
	Interest: "interest", Delta: "delta", End: "end",
	Refresh: "refresh", Ack: "ack", Dropped: "dropped", Refuse: "refuse",
	Transfer: "transfer", Claim: "claim", Release: "release", Drained: "drained",
	SyncMark: "sync-mark", SyncAck: "sync-ack",
	Scan: "scan", InUse: "in-use", Scanned: "scanned",
	Settled: "settled", PullAfter: "pull-after", Rebound: "rebound",
	Wish: "wish", Bid: "bid", BidReply: "bid-reply",
	Cut: "cut", RoundMark: "round-mark", RoundDone: "round-done",
}

// String returns the name of the kind, as in tests and errors.
func (k Kind) String() string {
	if int(k) < len(kindNames) && kindNames[k] != "" {
		return kindNames[k]
	}
	return "unknown"
}

// A Record is one protocol message about one key. Which fields mean something
// depends on the kind; the others are zero.
type Record struct {
	Kind    Kind           // what the record is; it says which other fields count
	Key     godwit.Key     // whose record it is
	Origin  godwit.NodeID  // the node that asked first, whoever passed the record on
	Op      uint64         // the operation of the origin that waits for an answer
	Index   uint32         // the position of the key in that operation
	Hops    uint8          // how often the record was passed on
	Odd     bool           // what changed the row, or the row that moves, is of an odd side of cuts
	Saved   bool           // the row that moves is as it was when a cut last had it
	Coming  bool           // the receiver will find the key on its way to it: wait, do not pass on
	Epoch   godwit.Epoch   // how often the ownership of the key has changed hands
	Version godwit.Version // of the row that the record brings or acknowledges
	Seq     uint64         // of an update of a replica, a set or a mark: its number at its origin
	Vals    []float32      // a value, a whole row, or an update
	Coding  Coding         // how Vals are written; it changes none of them
	Step    float32        // of Fixed8 and Fixed16
	Rough   bool           // of a Pull: the value may be rounded, where that is what gets it there in time
	Whole   bool           // of a Pull: the answer is the row, the value and the state of its rule
	Holders []Holder       // of a row that moves: who has replicas of it or waits for one
}

// A Holder is what the owner of a key knows of one node that holds a replica
// of it or waits for one. The list travels with the key.
type Holder struct {
	Node    godwit.NodeID  // the node with the replica
	Seq     uint64         // the last of the node's updates that the row contains
	Version godwit.Version // the version that the node's copy has, its own updates included
}
