// Package monitoring_test compares dashboard.json and alerts.yml with the metrics that there are; "make
// monitoring" evaluates them by a Prometheus.
package monitoring_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/node"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/telemetry/metrics"
)

// An expression is of a panel of the dashboard.
type expression struct{ panel, expr string }

func expressions(t *testing.T) (es []expression) {
	t.Helper()
	b, err := os.ReadFile("dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	for _, p := range d.Panels {
		for _, x := range p.Targets {
			es = append(es, expression{p.Title, x.Expr})
		}
	}
	if len(es) < 10 {
		t.Fatalf("the dashboard has %d expressions", len(es))
	}
	return es
}

// run is a run of three nodes whose workers are at work until it is closed.
func run(t *testing.T) *node.Cluster {
	t.Helper()
	m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: 1 << 14, Dim: 4})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := node.Local(ctx, 3, node.Config{Model: m, Workers: 1, Policy: placement.AdaPM})
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for i, n := range c.Nodes {
		wg.Go(func() { work(t, n.Worker(0), uint64(i), stop) })
	}
	t.Cleanup(func() {
		close(stop)
		wg.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := c.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return c
}

// work announces keys and accesses some of them, and some that were not announced. All workers use the same
// keys for a quarter of a second, however far apart their steps are, so that replicas are set up and given
// up all the time.
func work(t *testing.T, w godwit.Worker, seed uint64, stop <-chan struct{}) {
	const rows, shared = 1 << 14, 256
	ctx := context.Background()
	keys, v := make([]godwit.Key, 64), make([]float32, 4*64)
	all := make([]godwit.Key, shared)
	for step := uint64(0); ; step++ {
		select {
		case <-stop:
			w.Finish()
			return
		default:
		}
		for i := range keys { // of this worker alone, mostly
			keys[i] = godwit.Key((step*64 + uint64(i)*seed*17 + uint64(i)) % rows)
		}
		slot := uint64(time.Now().UnixMilli() / 250)
		for i := range all {
			all[i] = godwit.Key((slot*shared + uint64(i)) % rows)
		}
		copy(keys[:32], all)
		for _, err := range []error{w.Intent(all, w.Clock()+1, w.Clock()+4), w.Intent(keys[32:60], w.Clock()+4, w.Clock()+8), w.Pull(ctx, keys, v), w.Push(ctx, keys, v)} {
			if err != nil {
				t.Error(err)
				return
			}
		}
		w.Advance()
		time.Sleep(time.Millisecond)
	}
}

var metric = regexp.MustCompile(`\b(godwit|go|process)_[a-z_]+`)

// Every metric that a panel or an alert names is one that a node serves.
func TestPanelsAndAlertsNameMetricsThatThereAre(t *testing.T) {
	families, err := metrics.Registry(run(t).Nodes[0], metrics.Config{Run: "r"}).Gather()
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, f := range families {
		known[f.GetName()] = true
	}
	alerts, err := os.ReadFile("alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{string(alerts)}
	for _, e := range expressions(t) {
		texts = append(texts, e.expr)
	}
	n := 0
	for _, text := range texts {
		for _, name := range metric.FindAllString(text, -1) {
			n++
			base := strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum")
			if !known[name] && !known[base] {
				t.Errorf("%s is no metric", name)
			}
		}
	}
	if n < 30 {
		t.Errorf("looked at %d names", n)
	}
}

// tool returns a program of Prometheus: of the folder GODWIT_PROMETHEUS.
func tool(t *testing.T, name string) string {
	t.Helper()
	dir := os.Getenv("GODWIT_PROMETHEUS")
	if dir == "" {
		t.Skip("GODWIT_PROMETHEUS does not name the folder of prometheus and promtool (Debian: prometheus): \"make monitoring\" looks for them")
	}
	return filepath.Join(dir, name)
}

func TestPromtoolFindsNoFaultAndEachIllFiresItsAlert(t *testing.T) {
	promtool := tool(t, "promtool")
	for _, args := range [][]string{{"check", "rules", "alerts.yml"}, {"test", "rules", "alerts_test.yml"}} {
		if out, err := exec.Command(promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// A Prometheus scrapes a run of three nodes: no panel is empty, and no alert fires.
func TestPanelsOfARunAreNotEmpty(t *testing.T) {
	prometheus := tool(t, "prometheus")
	c := run(t)
	var targets []string
	for i, n := range c.Nodes {
		s, err := metrics.Serve(n, metrics.Config{Addr: ":0", Run: "r", Self: i, Policy: "adapm", Version: "v"})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close(context.Background())
		targets = append(targets, "'"+s.Addr()+"'")
	}
	dir, address := t.TempDir(), free(t)
	rules, err := filepath.Abs("alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf("global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: ['%s']\nscrape_configs:\n- job_name: godwit\n  static_configs:\n  - targets: [%s]\n", rules, strings.Join(targets, ", "))
	if err := os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(config), 0o666); err != nil {
		t.Fatal(err)
	}
	p := exec.Command(prometheus, "--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address, "--log.level=error")
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = p.Process.Kill(), p.Wait() }()
	for _, e := range expressions(t) {
		q := strings.NewReplacer(`$run`, ".*", "$__rate_interval", "10s", "[5m]", "[10s]").Replace(e.expr)
		if !eventually(func() bool { return results(address, q) > 0 }) {
			t.Errorf("panel %q is empty: %s", e.panel, q)
		}
	}
	if n := results(address, `ALERTS{alertstate="firing"}`); n != 0 {
		t.Errorf("%d alerts fire", n)
	}
}

func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func eventually(ok func() bool) bool {
	for until := time.Now().Add(time.Minute); !ok(); time.Sleep(500 * time.Millisecond) {
		if time.Now().After(until) {
			return false
		}
	}
	return true
}

// results asks Prometheus, and returns how many numbers the answer has; -1: there was none.
func results(address, query string) int {
	r, err := http.Get("http://" + address + "/api/v1/query?query=" + url.QueryEscape(query))
	if err != nil {
		return -1
	}
	defer r.Body.Close()
	var answer struct {
		Status string
		Data   struct {
			Result []struct{ Value [2]any }
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&answer); err != nil || answer.Status != "success" {
		return -1
	}
	n := 0
	for _, x := range answer.Data.Result {
		if x.Value[1] != "NaN" {
			n++
		}
	}
	return n
}
