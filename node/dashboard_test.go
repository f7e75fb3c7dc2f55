package node

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/cookiejar"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
	cmem "github.com/godwit-ps/godwit/coord/mem"
	"github.com/godwit-ps/godwit/dashboard"
	"github.com/godwit-ps/godwit/internal/protocol"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/telemetry/trace"
)

// traced starts nodes that write a trace.
func traced(t *testing.T, dir string, nodes int, m *godwit.Model) (*Cluster, []*trace.Writer) {
	t.Helper()
	ctx := background(t)
	hub, err := cmem.New(coord.Config{TTL: patience, Run: "test", Nodes: nodes})
	must(t, err)
	keys, err := trace.ParseKeys("", m)
	must(t, err)
	c, writers, errs := &Cluster{Nodes: make([]*Node, nodes), Hub: hub}, make([]*trace.Writer, nodes), make([]error, nodes)
	var wg sync.WaitGroup
	for i := range nodes {
		wg.Go(func() {
			cfg := Config{Model: m, Policy: placement.AdaPM, Workers: 2, Run: "test"}
			if cfg.Network, cfg.Listener, errs[i] = overTCP(i); errs[i] != nil {
				return
			}
			defer cfg.Listener.Close()
			if cfg.Session, errs[i] = hub.Join(ctx, cfg.Listener.Addr()); errs[i] != nil {
				return
			}
			self := cfg.Session.Self()
			header := trace.Header{Run: "test", Policy: cfg.Policy.Name(), Node: self, Nodes: nodes, Start: 1e18, Tables: trace.TablesOf(m)}
			if cfg.Trace, errs[i] = trace.Create(trace.Config{Dir: dir, Keys: keys, Header: header}); errs[i] != nil {
				return
			}
			writers[self] = cfg.Trace
			c.Nodes[self], errs[i] = Start(ctx, cfg)
		})
	}
	wg.Wait()
	must(t, errors.Join(errs...))
	t.Cleanup(func() {
		closeAll(t, c)
		for _, w := range writers {
			must(t, w.Close())
		}
	})
	return c, writers
}

// use has every worker use keys that it announced. It leaves intents open, so that keys stay where they are wanted.
func use(t *testing.T, c *Cluster, rows int) {
	t.Helper()
	each(t, c, func(ctx context.Context, w godwit.Worker, rng *rand.Rand) error {
		for range 20 {
			keys := make([]godwit.Key, 5)
			for i := range keys {
				keys[i] = godwit.Key(rng.IntN(rows))
			}
			slices.Sort(keys)
			keys = slices.Compact(keys)
			if err := w.Intent(keys, w.Clock()+1, w.Clock()+1+godwit.Clock(rng.IntN(30))); err != nil {
				return err
			}
			w.Advance()
			if err := w.Push(ctx, keys, make([]float32, len(keys))); err != nil {
				return err
			}
		}
		return everywhere(ctx, w)
	})
}

// shown returns where the dashboard says that keys are: as text, a key a line.
func shown(client *http.Client, at string, nodes int) (string, error) {
	r, err := client.Get(at + "/api/instant?sort=key&t=1e8")
	if err != nil {
		return "", err
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%d %.200s (%w)", r.StatusCode, b, err)
	}
	n := int(binary.LittleEndian.Uint32(b[4:]))
	owners, replicas := b[24+8*n:], b[24+10*n:]
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "%d: %d", i, owners[i])
		for node := range nodes {
			if replicas[i]&(1<<node) != 0 {
				fmt.Fprintf(&text, " +%d", node)
			}
		}
		text.WriteByte('\n')
	}
	return text.String(), nil
}

// held returns where the nodes themselves say that keys are.
func held(t *testing.T, c *Cluster, rows int) string {
	t.Helper()
	var text strings.Builder
	for k := range godwit.Key(rows) {
		owner, replicas := 255, ""
		for n, node := range c.Nodes {
			_, here, err := node.ReadRow(k, nil)
			must(t, err)
			if here {
				owner = n
			} else if node.place(k) == protocol.AtReplica {
				replicas += fmt.Sprintf(" +%d", n)
			}
		}
		fmt.Fprintf(&text, "%d: %d%s\n", k, owner, replicas)
	}
	return text.String()
}

// written returns where the trace says that keys are.
func written(t *testing.T, dir string, nodes, rows int) string {
	t.Helper()
	tr, err := trace.Open(dir)
	must(t, err)
	has := make([]map[godwit.Key]trace.Copy, nodes)
	for n := range has {
		has[n], err = tr.At(godwit.NodeID(n), 1e17)
		must(t, err)
	}
	var text strings.Builder
	for k := range godwit.Key(rows) {
		owner, replicas := 255, ""
		for n := range has {
			if x, ok := has[n][k]; ok && x.Main {
				owner = n
			} else if ok {
				replicas += fmt.Sprintf(" +%d", n)
			}
		}
		fmt.Fprintf(&text, "%d: %d%s\n", k, owner, replicas)
	}
	return text.String()
}

// When a run of three nodes rests, the dashboard, the trace and the nodes themselves say the same of every key.
func TestTheDashboardShowsWhereKeysAre(t *testing.T) {
	const nodes, rows = 3, 60
	dir := t.TempDir()
	m := model(t, rows, 1)
	c, writers := traced(t, dir, nodes, m)
	s, err := dashboard.Serve(dashboard.Config{Dir: dir, Addr: ":0", Live: true})
	must(t, err)
	defer func() { must(t, s.Close(background(t))) }()
	jar, err := cookiejar.New(nil)
	must(t, err)
	client := &http.Client{Jar: jar}
	r, err := client.Get(s.URL())
	must(t, err)
	must(t, r.Body.Close())
	at := "http://" + r.Request.URL.Host
	copies := 0
	for range 3 {
		use(t, c, rows)
		var page, nodesSay string
		eventually(t, "the dashboard to show where keys are", func() bool {
			nodesSay = held(t, c, rows)
			for _, w := range writers {
				w.Flush()
			}
			page, err = shown(client, at, nodes)
			return err == nil && page == nodesSay && nodesSay == written(t, dir, nodes, rows)
		})
		copies += strings.Count(nodesSay, "+")
	}
	if s := sum(c); s.Moves == 0 || copies == 0 {
		t.Errorf("nothing moved (%d) or no replica was there (%d) when it was looked at", s.Moves, copies)
	}
}
