package placement

// ReplicateAll is static full replication: every node holds every key from the
// start.
var ReplicateAll = Register(replicate{})

type replicate struct{}

func (replicate) Name() string            { return "replicate" }
func (replicate) OnIntent(bool) Ask       { return Nothing }
func (replicate) Everywhere(bool) bool    { return true }
func (replicate) Decide(Situation) Action { return Action{Verb: Replicate} }
