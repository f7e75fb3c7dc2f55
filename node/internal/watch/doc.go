// Package watch finds out what the adaptation of a node is good for: which refreshes, replicas,
// moves and intents were followed by an access of a worker. It owns what is known of the keys of a
// sample, one of 256, chosen by a hash of the key, the same at all nodes.
//
// The shards tell it what becomes of keys ([Watch.Happened], under their locks), and workers what
// they access ([Watch.Accessed]). It never changes anything, and takes no lock but its own, under
// which it calls nobody. A [Tracer] writes what becomes of the keys that are traced to the run's folder.
package watch
