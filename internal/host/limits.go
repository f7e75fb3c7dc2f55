package host

// Limits are the bounds of a node's queues, in bytes where nothing else is said.
// They keep a stalled peer from costing memory without end and are far beyond
// what a run that makes progress needs. What a node asks for is bounded where it
// is asked for; so are the answers, which never wait.
type Limits struct {
	Frame   int // a frame is sent when it is this long, or when the sender has no more
	Copies  int // no refreshes and deltas to a node with more than this queued
	Asked   int // what the workers of a node may have under way, requests and answers; each has an equal part
	Rows    int // rows that a node may have asked for because of intents, and not got
	Answers int // no answers that can wait to a node with more than this queued
	Owed    int // a node for which more answers than this are queued does not keep to the above: the run ends
	Ops     int // operations that one worker may have outstanding; and as many of PullAfter
	Kept    int // bytes of copies that a cut may keep in any case; 0: as package protocol has it
	Idle    int // bytes of replicas that nobody wants, in any case; 0: as package protocol has it; less: none
	Share   int // keys after which a member of a Team has a helper begin; 0: as usual
	Ahead   int // keys that the workers of a node may have asked for by PullAfter and not got
}

// Usual are the limits of a real node. A peer that keeps to them has at most
// Asked + Rows of answers, and Answers of what may wait, in a queue.
var Usual = Limits{Frame: 256 << 10, Copies: 256 << 10, Asked: 64 << 20, Rows: 16 << 20, Answers: 16 << 20, Owed: 128 << 20, Ops: 1 << 12, Share: 256, Ahead: 1 << 22}
