// Package index keeps what the dashboard shows of a trace, in bounded memory: the state of the traced
// keys at the ends of equal windows of time (a grid), and counts by key, node and window. It reads each segment of the trace once,
// also while a run writes them.
//
// Nodes are read independently of each other, so what the index says does not depend on when it read what. Windows
// become twice as long when there would be too many. What happened between their ends is read from the segments again.
package index
