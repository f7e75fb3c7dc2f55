package capi

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/coord/etcd/server"
	"github.com/godwit-ps/godwit/internal/certtest"
	"github.com/godwit-ps/godwit/transport/tcp"
)

// certificates writes a certificate of 127.0.0.1, or of a name where one is given, that signed itself, with its key.
func certificates(t *testing.T, name string) *tcp.TLSFiles {
	t.Helper()
	own := certtest.SelfSigned(t, name)
	return &tcp.TLSFiles{Cert: own.Cert, Key: own.Key, CA: own.Cert, Name: name}
}

// runOf opens the clusters of a run's processes, of which each is a Member.
func runOf(t *testing.T, n int, of func(rank int, coordinator string) Member) []*Cluster {
	t.Helper()
	var cs []*Cluster
	at := "127.0.0.1:0"
	for i := range n {
		m := of(i, at)
		b, err := json.Marshal(Config{Nodes: n, Tables: twoTables, Member: &m})
		must(t, err)
		c, err := Open(b)
		must(t, err)
		if c.Address() != "" {
			at = c.Address()
		}
		cs = append(cs, c)
	}
	return cs
}

// Processes form one run, in which each has the id of its rank, whatever they meet by.
func TestMembersOfARun(t *testing.T) {
	const n = 3
	secure := certificates(t, "")
	named := certificates(t, "godwit")
	start := func(files *tcp.TLSFiles) *server.Server {
		var cfg server.Config
		if files != nil {
			cfg.TLS = &server.TLSFiles{Cert: files.Cert, Key: files.Key, CA: files.CA}
		}
		e, err := server.Start(t.Context(), cfg)
		must(t, err)
		t.Cleanup(func() { must(t, e.Close()) })
		return e
	}
	e, es := start(nil), start(named)
	for name, of := range map[string]func(int, string) Member{
		"one serves": func(rank int, at string) Member {
			return Member{Run: "r", Rank: rank, Serve: rank == 0, Coordinator: at, Token: "token"}
		},
		"one serves, by TLS": func(rank int, at string) Member {
			return Member{Run: "r", Rank: rank, Serve: rank == 0, Coordinator: at, Token: "token", TLS: secure}
		},
		"one serves, by TLS of a name": func(rank int, at string) Member {
			return Member{Run: "r", Rank: rank, Serve: rank == 0, Coordinator: at, Token: "token", TLS: named}
		},
		"etcd": func(rank int, _ string) Member {
			return Member{Run: "r", Rank: n - 1 - rank, Etcd: e.Endpoints(), Token: e.Token()}
		},
		"etcd, by TLS of a name": func(rank int, _ string) Member {
			return Member{Run: "r", Rank: n - 1 - rank, Etcd: es.Endpoints(), Token: es.Token(), TLS: named}
		},
	} {
		t.Run(name, func(t *testing.T) {
			cs := runOf(t, n, of)
			for _, c := range cs {
				_, err := c.Ready(-1)
				must(t, err)
				speaks(t, c.Reached(), of(0, "").TLS)
			}
			trains(t, cs, of)
		})
	}
}

// speaks checks that a node speaks TLS, and only with who has a certificate, where the run has TLS (files), and else does not.
func speaks(t *testing.T, addr string, files *tcp.TLSFiles) {
	t.Helper()
	dial := func(config *tls.Config) error { return certtest.Accepted(t.Context(), addr, config) }
	if files == nil {
		if err := dial(&tls.Config{InsecureSkipVerify: true}); err == nil {
			t.Errorf("a node of a run without TLS speaks it at %s", addr)
		}
		return
	}
	own, err := files.Config()
	must(t, err)
	if own.ServerName == "" {
		own.ServerName = "127.0.0.1"
	}
	if err := dial(own); err != nil {
		t.Errorf("with a certificate, a node says at %s: %v", addr, err)
	}
	own.Certificates = nil
	if err := dial(own); err == nil || !strings.Contains(err.Error(), "certificate required") {
		t.Errorf("without a certificate, a node says at %s: %v", addr, err)
	}
}

// trains has the members of a run write and read each other's rows.
func trains(t *testing.T, cs []*Cluster, of func(int, string) Member) {
	for i, c := range cs {
		_, err := c.Ready(-1)
		must(t, err)
		if w := worker(t, c, 0); w.w.ID().Node != godwit.NodeID(of(i, "").Rank) {
			t.Errorf("rank %d is %v", of(i, "").Rank, w.w.ID())
		}
		if b, err := c.Stats(); err != nil || !strings.Contains(string(b), `"address":"127.0.0.1:`) {
			t.Errorf("the address of rank %d is not told: %s, %v", i, b, err)
		}
	}
	rows := make([]int64, 1000)
	for i := range rows {
		rows[i] = int64(i)
	}
	for _, c := range cs {
		done(t, worker(t, c, 0))(worker(t, c, 0).Push(0, rows, slices.Repeat([]float32{1}, 4000), 0, 1, 0, 0))
	}
	dst := make([]float32, 4000)
	done(t, worker(t, cs[1], 0))(worker(t, cs[1], 0).Pull(0, rows, dst, 0, 0))
	if i := slices.IndexFunc(dst, func(x float32) bool { return x != float32(len(cs)) }); i >= 0 {
		t.Errorf("float %d is %v, want %d", i, dst[i], len(cs))
	}
	for i := range dst {
		dst[i] = float32(i)
	}
	done(t, worker(t, cs[2], 0))(worker(t, cs[2], 0).Write(0, rows, dst, Values, 0))
	got := make([]float32, 4000)
	done(t, worker(t, cs[0], 0))(worker(t, cs[0], 0).Read(0, rows, got, Values|State, 0))
	if !slices.Equal(got, dst) {
		t.Error("rows that one rank has written at their owners are others when another one reads them")
	}
	closeAll(t, cs)
}

// Processes whose tables differ are told in what, and one that is alone what it waited for.
func TestMembersThatDoNotFit(t *testing.T) {
	for want, others := range map[string][]Table{
		"the list of tables of this one": twoTables[:1],
		"the table " + twoTables[0].Name: {func() Table { x := twoTables[0]; x.Rows++; return x }(), twoTables[1]},
		"not all nodes arrived: 1 of 2":  nil,
	} {
		open := func(rank int, at string, tables []Table) *Cluster {
			m := Member{Run: "r", Rank: rank, Serve: rank == 0, Coordinator: at, Token: "token"}
			if others == nil {
				m.JoinMs = 100
			}
			b, err := json.Marshal(Config{Nodes: 2, Tables: tables, Member: &m})
			must(t, err)
			c, err := Open(b)
			must(t, err)
			return c
		}
		cs := []*Cluster{open(0, "127.0.0.1:0", twoTables)}
		if others != nil {
			cs = append(cs, open(1, cs[0].Address(), others))
		}
		for _, c := range cs {
			if _, err := c.Ready(-1); err == nil || !strings.Contains(err.Error(), want) || others == nil && (CodeOf(err) != Lost || !strings.Contains(err.Error(), fmt.Sprintf("tables [%q", twoTables[0].Name))) {
				t.Errorf("%v, want an error with %q", err, want)
			}
		}
		for _, c := range cs {
			_, _ = c.Close(-1)
		}
	}
}

func closeAll(t *testing.T, cs []*Cluster) {
	var wg sync.WaitGroup
	for _, c := range cs {
		wg.Go(func() {
			if _, err := c.Close(-1); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestMembersThatCannotBe(t *testing.T) {
	secure := certificates(t, "")
	for _, wrong := range []Member{
		{Run: "r", Rank: 3, Coordinator: "127.0.0.1:1"},
		{Run: "", Rank: 1, Coordinator: "127.0.0.1:1"},
		{Run: "r", Serve: true, Coordinator: "127.0.0.1:0"}, // without a token
		{Run: "r"},
		{Run: "r", Coordinator: "127.0.0.1:1", Etcd: []string{"127.0.0.1:1"}},
		{Run: "r", Coordinator: "127.0.0.1:1", TLS: &tcp.TLSFiles{Cert: "no such file"}},
	} {
		b, err := json.Marshal(Config{Nodes: 3, Tables: twoTables, Member: &wrong})
		must(t, err)
		if _, err := Open(b); CodeOf(err) != Argument {
			t.Errorf("%+v: %v", wrong, err)
		}
	}
	// Who does not trust the coordinator's certificate ends, and does not send it the token.
	other := certificates(t, "")
	cs := runOf(t, 2, func(rank int, at string) Member {
		return Member{Run: "r", Rank: rank, Serve: rank == 0, Coordinator: at, Token: "token", JoinMs: 1000, TLS: []*tcp.TLSFiles{secure, other}[rank]}
	})
	if _, err := cs[1].Ready(-1); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("another authority's certificate: %v", err)
	}
	if _, err := cs[0].Ready(-1); err == nil {
		t.Error("a run began without a node")
	}
	for _, c := range cs {
		_, _ = c.Close(-1)
	}
}

func TestANodeListensAndIsToldByItsAddresses(t *testing.T) {
	for _, c := range []struct{ listen, advertise, listens, told string }{
		{"", "10.0.0.7", "10.0.0.7:0", "10.0.0.7:99"},
		{"", "::1", "[::1]:0", "[::1]:99"},
		{"0.0.0.0:7000", "host", "0.0.0.0:7000", "host:99"},
		{"0.0.0.0:7000", "host:8000", "0.0.0.0:7000", "host:8000"},
		{"127.0.0.1:7000", "", "127.0.0.1:7000", "127.0.0.1:99"},
		{"0.0.0.0:7000", "", "0.0.0.0:7000", ""}, // nobody can be told that
		{"", "host:8000", "", "host:8000"},       // … or where that leads to
	} {
		m := Member{Listen: c.listen, Advertise: c.advertise}
		got, err := m.listens()
		if got != c.listens || (err != nil) != (c.listens == "") {
			t.Errorf("listen %q, advertise %q: listens at %q, %v; want %q", c.listen, c.advertise, got, err, c.listens)
		}
		if c.listens == "" {
			continue
		}
		host, _, _ := net.SplitHostPort(c.listens)
		told, err := m.told(net.JoinHostPort(host, "99"))
		if told != c.told || (err != nil) != (c.told == "") {
			t.Errorf("listen %q, advertise %q: others are told %q, %v; want %q", c.listen, c.advertise, told, err, c.told)
		}
	}
}

// Where nobody is reached who coordinates the run, it is lost: nobody cancelled anything, but by Ctrl-C.
func TestACoordinatorThatIsNotReachedIsLost(t *testing.T) {
	for _, c := range []struct {
		err  error
		code Code
	}{
		{fmt.Errorf("run: %w: no word", coord.ErrCoordinator), Lost},
		{fmt.Errorf("etcd: %w: %w", coord.ErrCoordinator, context.DeadlineExceeded), Lost},
		{fmt.Errorf("etcd: %w: %w", coord.ErrCoordinator, context.Canceled), Cancelled},
	} {
		if got := CodeOf(c.err); got != c.code {
			t.Errorf("%v: code %d, want %d", c.err, got, c.code)
		}
	}
}
