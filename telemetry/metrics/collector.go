package metrics

import (
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/godwit-ps/godwit/node"
	"github.com/godwit-ps/godwit/telemetry"
)

// A Node is what metrics are made of: a node.Node.
type Node interface {
	Stats() node.Stats            // see node.Node.Stats
	Snapshot() telemetry.Snapshot // see node.Node.Snapshot
}

// A collector makes metrics of a node when Prometheus asks.
type collector struct {
	node   Node
	labels prometheus.Labels // of all metrics
	policy string            // of the run
}

// Describe sends nothing: which labels there are is known when there is a snapshot.
func (c *collector) Describe(chan<- *prometheus.Desc) {}

func (c *collector) Collect(ch chan<- prometheus.Metric) {
	s, x := c.node.Stats(), c.node.Snapshot()
	o := output{ch, c.labels}
	o.accesses(&s)
	o.adaptation(&s, &x)
	o.waits(&s, &x)
	o.peers(&s, &x)
	o.holdings(&s, &x)
	o.tables(x.Tables, c.policy)
	o.waste(&x.Waste)
}

// An output is where the metrics of one scrape go.
type output struct {
	ch     chan<- prometheus.Metric
	labels prometheus.Labels
}

func (o output) desc(name, help string, labels []string) *prometheus.Desc {
	return prometheus.NewDesc("godwit_"+name, help, labels, o.labels)
}

// counter sends a counter. Labels are names and values in turns.
func (o output) counter(name, help string, v float64, labels ...string) {
	o.send(prometheus.CounterValue, name, help, v, labels)
}

func (o output) gauge(name, help string, v float64, labels ...string) {
	o.send(prometheus.GaugeValue, name, help, v, labels)
}

func (o output) send(t prometheus.ValueType, name, help string, v float64, labels []string) {
	names, values := split(labels)
	o.ch <- prometheus.MustNewConstMetric(o.desc(name, help, names), t, v, values...)
}

// label returns a name as the value of a label, which is UTF-8: others are quoted.
func label(name string) string {
	if utf8.ValidString(name) {
		return name
	}
	return strconv.Quote(name)
}

func split(labels []string) (names, values []string) {
	for i := 0; i < len(labels); i += 2 {
		names, values = append(names, labels[i]), append(values, labels[i+1])
	}
	return names, values
}

// histogram sends a histogram of values of which so many make one of the metric's unit. Buckets
// between from and to are shown.
func (o output) histogram(name, help string, h telemetry.Histogram, unit float64, from, to int, labels ...string) {
	names, values := split(labels)
	buckets, below := map[float64]uint64{}, uint64(0)
	for i, n := range h.Of[:len(h.Of)-1] {
		if below += n; i >= from && i <= to {
			buckets[(math.Exp2(float64(i))-integral(unit))/unit] = below
		}
	}
	o.ch <- prometheus.MustNewConstHistogram(o.desc(name, help, names), h.Count(), float64(h.Sum)/unit, buckets, values...)
}

// integral is by how much the bound of a bucket, which is greater than all values in it, is
// greater than the greatest one: 1 of whole numbers. Times are not whole numbers of their unit.
func integral(unit float64) float64 {
	if unit == 1 {
		return 1
	}
	return 0
}

const micros = 1e6 // in a second

func (o output) accesses(s *node.Stats) {
	x := s.Sampled
	for _, p := range []struct {
		place       string
		all, sample uint64
	}{{"owner", s.Local, x.Local}, {"replica", s.Replica, x.Replica}, {"ahead", s.Ahead, x.Ahead}, {"queued", s.Queued, x.Queued}, {"remote", s.Remote, x.Remote}} {
		const name, help = "accesses_total", "Keys of pulls and pushes, by where they were served: at the main copy or a replica here, by a value fetched ahead, after waiting for the key on its way here, or by messages. What is remote was not announced, or too late, or is a push that goes to the owner of a key elsewhere."
		o.counter(name, help, float64(p.all-p.sample), "place", p.place, "by", "worker")
		o.counter(name, help, float64(p.sample), "place", p.place, "by", "sampler")
	}
	o.counter("calls_total", "Pulls and pushes of workers.", float64(s.Calls))
	o.counter("slow_calls_total", "Pulls and pushes that could not be served at once.", float64(s.SlowCalls))
	o.counter("fetched_ahead_keys_total", "Keys whose values were fetched ahead of their use.", float64(s.Fetched))
	o.counter("late_accesses_total", "Accesses that were announced and found the key on its way.", float64(s.Late))
}

func (o output) adaptation(s *node.Stats, x *telemetry.Snapshot) {
	o.counter("moves_total", "Keys that moved to this node.", float64(s.Moves))
	o.counter("replicas_set_up_total", "Replicas that were set up at this node.", float64(s.Copies))
	o.counter("replicas_dropped_total", "Replicas that this node gave up.", float64(s.Drops))
	o.counter("deltas_sent_total", "Updates of replicas sent to owners.", float64(s.Deltas))
	o.counter("refreshes_sent_total", "Values sent to replicas.", float64(s.Refreshes))
	o.counter("forwarded_requests_total", "Requests of other nodes that were passed on.", float64(s.Forwards))
	o.counter("learned_keys_total", "Keys and copies asked for because of accesses that were not announced, or not in time.", float64(s.Learned))
	o.histogram("intent_lead_seconds", "Time from asking for a key, because of an intent, to its arrival.", x.Leads, micros, 4, 24)
	o.gauge("intent_keys", "Keys that the workers' intents hold.", float64(x.Announced))
	o.gauge("intent_window_clocks", "For how many clocks ahead intents are acted on, of the worker that looks furthest.", float64(s.Window))
	o.counter("sync_rounds_total", "Sync rounds.", float64(s.Rounds))
	o.counter("sync_round_seconds_total", "Processor time of sync rounds and of acting on intents.", s.RoundTime.Seconds())
}

func (o output) waits(s *node.Stats, x *telemetry.Snapshot) {
	for _, w := range x.Waits {
		o.counter("wait_seconds_total", "Time that workers waited in calls, by what for, summed over workers.", w.Time.Seconds(), "cause", w.For)
		o.counter("waits_total", "How often workers waited in calls, by what for.", float64(w.N), "cause", w.For)
	}
	o.counter("parked_requests_total", "Requests that waited at this node for a clock.", float64(s.Parked))
	o.gauge("open_operations", "Operations of workers that are under way.", float64(x.Open))
	o.gauge("asked_bytes", "Bytes of rows that were asked for because of intents and have not come.", float64(x.Asked))
}

func (o output) peers(s *node.Stats, x *telemetry.Snapshot) {
	latency := func(h telemetry.Histogram, peer string) {
		o.histogram("remote_latency_seconds", "Time from an operation's request to its last answer, by the node that was asked; \"several\": more than one, or a key on its way here.", h, micros, 4, 24, "peer", peer)
	}
	latency(x.Latency, "several")
	for _, p := range x.Peers {
		peer := strconv.Itoa(int(p.Node))
		latency(p.Latency, peer)
		o.histogram("last_answer_seconds", "Time from the request to the last answer of operations that several nodes were asked for, by the node that gave that.", p.Last, micros, 4, 24, "peer", peer)
		o.counter("sent_bytes_total", "Bytes sent to other nodes.", float64(p.Bytes), "peer", peer)
		o.counter("sent_uncompressed_bytes_total", "Bytes sent to other nodes, as they were before compression.", float64(p.Plain), "peer", peer)
		o.counter("sent_frames_total", "Frames sent to other nodes.", float64(p.Frames), "peer", peer)
		o.gauge("queued_bytes", "Bytes for other nodes that have not left.", float64(p.Queued), "peer", peer)
	}
	for _, k := range x.Sent {
		o.counter("sent_record_bytes_total", "Bytes of records for other nodes, by kind, before lists of keys and compression.", float64(k.Bytes), "record", k.Record)
	}
	o.counter("received_bytes_total", "Bytes received from other nodes.", float64(s.ReceivedBytes))
}

func (o output) holdings(s *node.Stats, x *telemetry.Snapshot) {
	o.gauge("keys", "Keys that are here, by their copy.", float64(s.Owned), "copy", "main")
	o.gauge("keys", "Keys that are here, by their copy.", float64(s.Replicas), "copy", "replica")
	for _, m := range x.Memory {
		o.gauge("memory_bytes", "Memory off the Go heap, and beside it, by what it is for.", float64(m.Bytes), "for", m.For)
	}
}

// mostTables is of how many tables metrics are told one by one. What is beyond is told as one of the name others,
// so that the number of series stays bounded.
const (
	mostTables = 128
	others     = "(others)"
)

func (o output) tables(ts []telemetry.Table, policy string) {
	if len(ts) > mostTables {
		rest := telemetry.Table{Name: others}
		for _, t := range ts[mostTables-1:] {
			rest.Main += t.Main
			rest.Replica += t.Replica
			rest.Missing += t.Missing
			rest.Moves += t.Moves
			rest.Copies += t.Copies
			rest.Drops += t.Drops
			rest.Refreshes += t.Refreshes
		}
		ts = append(ts[:mostTables-1:mostTables-1], rest)
	}
	for _, t := range ts {
		of := []string{"table", label(t.Name), "policy", policy}
		for place, n := range map[string]uint64{"main": t.Main, "replica": t.Replica, "missing": t.Missing} {
			o.counter("table_accesses_total", "Keys of pulls and pushes of a table, by where they were: the main copy or a replica here, or missing: fetched ahead, waited for or asked for.", float64(n), append(of[:4:4], "place", place)...)
		}
		o.counter("table_moves_total", "Keys of a table that moved to this node.", float64(t.Moves), of...)
		o.counter("table_replicas_set_up_total", "Replicas of a table's keys that were set up at this node.", float64(t.Copies), of...)
		o.counter("table_replicas_dropped_total", "Replicas of a table's keys that this node gave up.", float64(t.Drops), of...)
		o.counter("table_refreshes_total", "Rows that came for replicas of a table's keys.", float64(t.Refreshes), of...)
	}
}

func (o output) waste(w *telemetry.Waste) {
	const sample = " Of a sample: one of 256 keys."
	o.counter("sampled_accesses_total", "Accesses of workers."+sample, float64(w.Accesses))
	pair := func(name, help string, all, vain uint64) {
		o.counter(name, help+sample, float64(all-vain), "used", "yes")
		o.counter(name, help+sample, float64(vain), "used", "no")
	}
	pair("sampled_refreshes_total", "Rows that came for replicas and were followed by the next one or the end, by whether they were accessed before.", w.Refreshes, w.Unread)
	pair("sampled_replicas_dropped_total", "Replicas that ended, by whether they were accessed.", w.Drops, w.DroppedUnread)
	pair("sampled_intents_total", "Intents that ended, a key each, by whether the key was accessed meanwhile.", w.Intents, w.Unused)
	o.histogram("sampled_move_accesses", "Accesses of keys that moved away, from their arrival on."+sample, w.Touches, 1, 0, 12)
	o.histogram("sampled_replica_age_seconds", "Time between refreshes of a replica."+sample, w.Age, micros, 7, 24)
	o.histogram("sampled_replica_age_clocks", "Clocks between refreshes of a replica."+sample, w.AgeClocks, 1, 0, 16)
}
