// Package link is how a node sends: a queue and a connection to each peer ([Link]),
// the bounds of the queues ([host.Limits]), and what one goroutine sends by ([Sender], the
// protocol's Out).
//
// It owns the queues' locks, under which only that of free memory is taken, and those of operations while a
// sender keeps a queue; and it owns the counts of rows
// that were asked for because of intents. The goroutine of a link's writer belongs to who
// calls [Link.Write]. A sender that keeps a queue ([Sender.Keep]) tries the locks of others
// only, and lets go of it before it waits for anything.
//
// It calls the connection, and one function that is above it: [Links.Answered], for replies
// of this node to itself. It rings the bell of the rounds when rows can be asked for. It never
// reads a connection, and knows neither shards nor operations.
package link
