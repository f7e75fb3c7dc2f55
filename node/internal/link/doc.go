// Package link is how a node sends: a queue and a connection to each peer ([Link]),
// the bounds of the queues ([host.Limits]), and what one goroutine sends by ([Sender], the
// protocol's Out).
//
// It owns the queues' locks, under which only that of the spare memory of frames is taken; while
// a sender keeps a queue, also those of operations, of the bound or of WaitSync calls. And it owns
// the counts of rows that were asked for because of intents. The goroutine of a link's writer
// belongs to who calls [Link.Write]. Whoever keeps a queue ([Sender.Keep]) only tries the lock of
// a shard, and lets go of the queue before it waits for one ([Sender.LetGo]).
//
// It calls the connection, and one function that is above it: [Links.Answered], for replies
// of this node to itself; in a simulation also Links.Strains and what [Links.Imagine] was given. It rings the bell of the rounds when rows can be asked for. It never
// reads a connection, and knows neither shards nor operations.
package link
