package metrics

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/certtest"
	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/node"
	"github.com/godwit-ps/godwit/telemetry"
)

const patience = time.Minute

// cluster starts nodes and has the first worker of each use keys that it announces.
func cluster(t testing.TB, nodes int) *node.Cluster {
	t.Helper()
	m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 1 << 12, Dim: 4, Rule: godwit.Add{}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := node.Local(ctx, nodes, node.Config{Model: m, Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := c.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	keys, v := make([]godwit.Key, 1<<11), make([]float32, 4<<11)
	for i := range keys {
		keys[i] = godwit.Key(i)
	}
	for _, n := range c.Nodes {
		w := n.Worker(0)
		for _, err := range []error{w.Pull(ctx, keys, v), w.Intent(keys, 1, 3), w.Push(ctx, keys, v)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		w.Advance()
		if err := w.Pull(ctx, keys, v); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func get(t testing.TB, c *http.Client, url string) (code int, body string) {
	t.Helper()
	r, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(b)
}

func TestANodeServesItsMetricsAndItsHealth(t *testing.T) {
	c := cluster(t, 3)
	s, err := Serve(c.Nodes[1], Config{Addr: ":0", Run: "r", Self: 1, Policy: "adaptive", Version: "v"})
	if err != nil {
		t.Fatal(err)
	}
	host, _, err := net.SplitHostPort(s.Addr())
	if ip := net.ParseIP(host); err != nil || !ip.IsLoopback() {
		t.Errorf("without a host the server listens at %s", s.Addr())
	}
	url := "http://" + s.Addr()
	expect := func(path string, want int, text string) {
		t.Helper()
		if code, body := get(t, http.DefaultClient, url+path); code != want || !strings.Contains(body, text) {
			t.Errorf("GET %s: %d, want %d:\n%.300s\nwant %q in it", path, code, want, body, text)
		}
	}
	expect("/healthz", 200, "ok")
	expect("/readyz", 503, "not begun")
	s.Ready()
	expect("/readyz", 200, "ok")
	expect("/debug/pprof/", 404, "")
	for _, line := range []string{`godwit_node_info{node="1",policy="adaptive",run="r",version="v"} 1`, `godwit_sent_bytes_total{node="1",peer="0",run="r"} `,
		`godwit_table_accesses_total{node="1",place="main",policy="adaptive",run="r",table="t"} `, `godwit_wait_seconds_total{cause="answers",node="1",run="r"} `, `godwit_remote_latency_seconds_count{node="1",peer="several",run="r"} `, `go_gc_duration_seconds_count{node="1",run="r"}`} {
		expect("/metrics", 200, "\n"+line)
	}
	_, text := get(t, http.DefaultClient, url+"/metrics")
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("promlint: %s: %s", p.Metric, p.Text)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		t.Error(err)
	}
	if _, err := http.Get(url + "/healthz"); err == nil {
		t.Error("a server that was closed answers")
	}
}

func TestProfilesAreServedWhereTheyAreAskedFor(t *testing.T) {
	s, err := Serve(wide{}, Config{Addr: "127.0.0.1:0", Profiles: true})
	if err != nil {
		t.Fatal(err)
	}
	if code, body := get(t, http.DefaultClient, "http://"+s.Addr()+"/debug/pprof/goroutine?debug=1"); code != 200 || !strings.Contains(body, "goroutine profile") {
		t.Errorf("got %d: %.100s", code, body)
	}
	if err := s.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestAddressesThatAreNoneAreRefused(t *testing.T) {
	for _, addr := range []string{"", "localhost", "9090", "host:port", "127.0.0.1:65536"} {
		if s, err := Serve(wide{}, Config{Addr: addr}); err == nil || !strings.Contains(err.Error(), "metrics: ") {
			t.Errorf("%q: error %v", addr, err)
			if err == nil {
				_ = s.Close(context.Background())
			}
		}
	}
}

// wide is a node of a run of 16, with all that there can be.
type wide struct{}

func (wide) Stats() (s node.Stats) { return s }

func (wide) Snapshot() (s telemetry.Snapshot) {
	h := telemetry.Histogram{Of: make([]uint64, 26)}
	for i := range h.Of {
		h.Of[i] = 1
	}
	s.Latency, s.Leads = h, h
	for i := range 1000 {
		s.Tables = append(s.Tables, telemetry.Table{Name: fmt.Sprintf("%d\xff", i), Moves: 1, Drops: 2, Copies: 3, Refreshes: 4})
	}
	s.Waste.Touches, s.Waste.Age, s.Waste.AgeClocks = h, h, h
	for i := range 15 {
		s.Peers = append(s.Peers, telemetry.Peer{Node: godwit.NodeID(i + 1), Latency: h, Last: h})
	}
	for k := 1; k < wire.Kinds; k++ {
		s.Sent = append(s.Sent, telemetry.Sent{Record: wire.Kind(k).String()})
	}
	for _, w := range []string{"answers", "room", "bound", "window", "barrier", "sync", "others"} {
		s.Waits = append(s.Waits, telemetry.Wait{For: w})
	}
	return s
}

func series(m *dto.Metric) int {
	if h := m.GetHistogram(); h != nil {
		return len(h.GetBucket()) + 3
	}
	if s := m.GetSummary(); s != nil {
		return len(s.GetQuantile()) + 2
	}
	return 1
}

func TestANodeOf16HasFewSeriesAndNoKeyInThem(t *testing.T) {
	families, err := Registry(wide{}, Config{Run: "r"}).Gather()
	if err != nil {
		t.Fatal(err)
	}
	n, tables := 0, map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			n += series(m)
			if strings.HasPrefix(f.GetName(), "godwit_table_") {
				tables[f.GetName()] += m.GetCounter().GetValue()
			}
			for _, l := range m.GetLabel() {
				switch l.GetName() {
				case "run", "node", "peer", "policy", "table", "version", "place", "by", "cause", "record", "copy", "for", "used", "quantile":
				default:
					t.Errorf("metric %s has the label %s", f.GetName(), l.GetName())
				}
			}
		}
	}
	t.Logf("%d series", n)
	if want := map[string]float64{"godwit_table_moves_total": 1000, "godwit_table_replicas_dropped_total": 2000, "godwit_table_replicas_set_up_total": 3000,
		"godwit_table_refreshes_total": 4000, "godwit_table_accesses_total": 0}; !maps.Equal(tables, want) {
		t.Errorf("of what became of 1000 tables, %v is told, want %v", tables, want)
	}
	if n > 3000 {
		t.Errorf("a node of 16 has %d series, want at most 3000", n)
	}
}

// Names that are not UTF-8 are quoted: labels are text.
func TestNamesThatAreNoTextAreQuoted(t *testing.T) {
	families, err := Registry(wide{}, Config{Run: "a\xff", Policy: "b\xfe", Version: "c\xfd"}).Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, f := range families {
		if f.GetName() == "godwit_node_info" {
			for _, l := range f.GetMetric()[0].GetLabel() {
				got[l.GetName()] = l.GetValue()
			}
		}
	}
	if want := map[string]string{"run": `"a\xff"`, "policy": `"b\xfe"`, "version": `"c\xfd"`, "node": "0"}; !maps.Equal(got, want) {
		t.Errorf("the labels are %q, want %q", got, want)
	}
}

// The buckets of a metric count the values that are not above their bounds.
func TestBucketsHaveTheValuesUpToTheirBounds(t *testing.T) {
	x := telemetry.Snapshot{Waste: telemetry.Waste{Touches: telemetry.Histogram{Of: make([]uint64, 26), Sum: 9}}}
	x.Waste.Touches.Of[0], x.Waste.Touches.Of[2] = 2, 3 // twice 0, three times 2 or 3
	empty := telemetry.Histogram{Of: make([]uint64, 26)}
	x.Latency, x.Leads, x.Waste.Age, x.Waste.AgeClocks = empty, empty, empty, empty
	families, err := Registry(fixed{x}, Config{}).Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[float64]uint64{}
	for _, f := range families {
		if f.GetName() == "godwit_sampled_move_accesses" {
			h := f.GetMetric()[0].GetHistogram()
			for _, b := range h.GetBucket() {
				got[b.GetUpperBound()] = b.GetCumulativeCount()
			}
			if h.GetSampleCount() != 5 || h.GetSampleSum() != 9 {
				t.Errorf("%d values, sum %v, want 5 and 9", h.GetSampleCount(), h.GetSampleSum())
			}
		}
	}
	for bound, want := range map[float64]uint64{0: 2, 1: 2, 3: 5, 7: 5} {
		if got[bound] != want {
			t.Errorf("%d values up to %v, want %d", got[bound], bound, want)
		}
	}
}

type fixed struct{ x telemetry.Snapshot }

func (fixed) Stats() (s node.Stats)          { return s }
func (f fixed) Snapshot() telemetry.Snapshot { return f.x }

// connect sends a server the begin of a request.
func connect(t *testing.T, s *Server, request string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	return c
}

// Who asks and does not go on holds up the server's end only as long as Close may wait.
func TestCloseLeavesClientsThatDoNotEnd(t *testing.T) {
	s, err := Serve(wide{}, Config{Addr: ":0", Profiles: true})
	if err != nil {
		t.Fatal(err)
	}
	connect(t, s, "GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n")
	connect(t, s, "GET /debug/pprof/profile?seconds=600 HTTP/1.1\r\nHost: x\r\n\r\n")
	for _, body := get(t, http.DefaultClient, "http://"+s.Addr()+"/debug/pprof/goroutine?debug=1"); !strings.Contains(body, "pprof.Profile+"); {
		_, body = get(t, http.DefaultClient, "http://"+s.Addr()+"/debug/pprof/goroutine?debug=1")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	closed := make(chan error, 1)
	go func() { closed <- s.Close(ctx) }()
	select {
	case err := <-closed:
		if err != nil {
			t.Errorf("a server with such clients ends with %v", err)
		}
	case <-time.After(patience):
		t.Fatal("clients that do not end keep the server from its end")
	}
}

// A profile may last longer than a request may take to come.
func TestProfilesLastLongerThanRequests(t *testing.T) {
	s, err := Serve(wide{}, Config{Addr: ":0", Profiles: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close(context.Background()) }()
	if s.http.ReadTimeout == 0 || s.http.WriteTimeout < scrapeTimeout {
		t.Errorf("a request may take %v to come, and %v to be answered", s.http.ReadTimeout, s.http.WriteTimeout)
	}
	quick := httptest.NewUnstartedServer(s.http.Handler)
	quick.Config.ReadTimeout, quick.Config.WriteTimeout = 100*time.Millisecond, patience
	quick.Start()
	defer quick.Close()
	begin := time.Now()
	code, _ := get(t, http.DefaultClient, quick.URL+"/debug/pprof/trace?seconds=0.5")
	if d := time.Since(begin); code != 200 || d < 500*time.Millisecond {
		t.Errorf("a trace of 0.5 s was answered by %d after %v", code, d)
	}
}

// With certificates, metrics are served by TLS, and only to who shows one of the same authority.
func TestMetricsAreServedToHoldersOfACertificate(t *testing.T) {
	own := certtest.SelfSigned(t, "")
	loaded, err := tls.LoadX509KeyPair(own.Cert, own.Key)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(loaded.Leaf)
	pair := []tls.Certificate{loaded}
	s, err := Serve(wide{}, Config{Addr: ":0", TLS: &tls.Config{Certificates: pair, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context())
	get := func(scheme string, config *tls.Config) (int, error) {
		transport := &http.Transport{TLSClientConfig: config}
		defer transport.CloseIdleConnections()
		answer, err := (&http.Client{Transport: transport, Timeout: 10 * time.Second}).Get(scheme + "://" + s.Addr() + "/healthz")
		if err != nil {
			return 0, err
		}
		return answer.StatusCode, answer.Body.Close()
	}
	if code, err := get("https", &tls.Config{RootCAs: pool, Certificates: pair}); code != http.StatusOK || err != nil {
		t.Errorf("with a certificate: %d, %v", code, err)
	}
	if code, err := get("https", &tls.Config{RootCAs: pool}); err == nil {
		t.Errorf("without a certificate: %d", code)
	}
	if code, err := get("http", nil); err == nil && code < 400 {
		t.Errorf("in plain: %d", code)
	}
}

// stated is a node with given statistics.
type stated struct {
	s node.Stats
	x telemetry.Snapshot
}

func (n stated) Stats() node.Stats            { return n.s }
func (n stated) Snapshot() telemetry.Snapshot { return n.x }

// Each figure is told by the metric of its name.
func TestMetricsTellTheFiguresOfTheirNames(t *testing.T) {
	empty := telemetry.Histogram{Of: make([]uint64, 26)}
	n := stated{
		node.Stats{Local: 101, Replica: 102, Ahead: 103, Queued: 104, Remote: 105, Fetched: 6, Calls: 7, SlowCalls: 8, Late: 9, Moves: 10, Copies: 11, Drops: 12, Deltas: 13, Refreshes: 14,
			Forwards: 15, Learned: 16, Rounds: 17, RoundTime: 18 * time.Second, Parked: 19, ReceivedBytes: 20, Owned: 21, Replicas: 22, Window: 23,
			Sampled: node.Sampled{Local: 1, Replica: 2, Ahead: 3, Queued: 4, Remote: 5}},
		telemetry.Snapshot{Latency: empty, Leads: empty, Announced: 30, Open: 31, Asked: 32,
			Waits:  []telemetry.Wait{{For: "room", N: 33, Time: 34 * time.Second}},
			Peers:  []telemetry.Peer{{Node: 7, Latency: empty, Last: empty, Bytes: 35, Frames: 36, Plain: 37, Queued: 38}},
			Sent:   []telemetry.Sent{{Record: "pull", Bytes: 39}},
			Memory: []telemetry.Memory{{For: "rows", Bytes: 40}},
			Tables: []telemetry.Table{{Name: "t", Main: 41, Replica: 42, Missing: 43, Moves: 44, Copies: 45, Drops: 46, Refreshes: 47}},
			Waste: telemetry.Waste{Accesses: 50, Refreshes: 151, Unread: 51, Drops: 252, DroppedUnread: 52, Intents: 353, Unused: 53,
				Touches: empty, Age: empty, AgeClocks: empty}},
	}
	want := map[string]float64{
		"accesses_total owner worker": 100, "accesses_total replica worker": 100, "accesses_total ahead worker": 100, "accesses_total queued worker": 100, "accesses_total remote worker": 100,
		"accesses_total owner sampler": 1, "accesses_total replica sampler": 2, "accesses_total ahead sampler": 3, "accesses_total queued sampler": 4, "accesses_total remote sampler": 5,
		"fetched_ahead_keys_total": 6, "calls_total": 7, "slow_calls_total": 8, "late_accesses_total": 9, "moves_total": 10, "replicas_set_up_total": 11, "replicas_dropped_total": 12,
		"deltas_sent_total": 13, "refreshes_sent_total": 14, "forwarded_requests_total": 15, "learned_keys_total": 16, "sync_rounds_total": 17, "sync_round_seconds_total": 18,
		"parked_requests_total": 19, "received_bytes_total": 20, "keys main": 21, "keys replica": 22, "intent_window_clocks": 23,
		"intent_keys": 30, "open_operations": 31, "asked_bytes": 32, "waits_total room": 33, "wait_seconds_total room": 34,
		"sent_bytes_total 7": 35, "sent_frames_total 7": 36, "sent_uncompressed_bytes_total 7": 37, "queued_bytes 7": 38, "sent_record_bytes_total pull": 39, "memory_bytes rows": 40,
		"table_accesses_total main t": 41, "table_accesses_total replica t": 42, "table_accesses_total missing t": 43, "table_moves_total t": 44, "table_replicas_set_up_total t": 45,
		"table_replicas_dropped_total t": 46, "table_refreshes_total t": 47,
		"sampled_accesses_total": 50, "sampled_refreshes_total yes": 100, "sampled_refreshes_total no": 51, "sampled_replicas_dropped_total yes": 200, "sampled_replicas_dropped_total no": 52,
		"sampled_intents_total yes": 300, "sampled_intents_total no": 53, "node_info v": 1,
	}
	families, err := Registry(n, Config{Run: "r", Policy: "p", Version: "v"}).Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		short, own := strings.CutPrefix(f.GetName(), "godwit_")
		if !own || f.GetType() == dto.MetricType_HISTOGRAM {
			continue
		}
		for _, m := range f.GetMetric() {
			name := short
			labels := m.GetLabel()
			for _, at := range []string{"place", "by", "cause", "peer", "record", "copy", "for", "used", "table", "version"} {
				for _, l := range labels {
					if l.GetName() == at {
						name += " " + l.GetValue()
					}
				}
			}
			value, known := want[name]
			if got := m.GetCounter().GetValue() + m.GetGauge().GetValue(); !known || got != value {
				t.Errorf("%s is %v, want %v (%v)", name, got, value, known)
			}
			delete(want, name)
		}
	}
	if len(want) > 0 {
		t.Errorf("there are no metrics of %v", want)
	}
}
