package etcd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/coord/etcd/server"
)

// asNode makes the test binary a node of the run at these endpoints.
const asNode = "GODWIT_TEST_NODE"

// itsToken is the token of the etcd there.
const itsToken = "GODWIT_TEST_TOKEN"

func TestMain(m *testing.M) {
	if ep := os.Getenv(asNode); ep != "" {
		nodeMain(Access{Endpoints: []string{ep}, Token: os.Getenv(itsToken)})
		return
	}
	os.Exit(m.Run())
}

func processConfig(addr string, ttl time.Duration) coord.Config {
	return coord.Config{Run: "processes", Nodes: 2, Addr: addr, TTL: ttl, Join: limit}
}

// nodeMain joins, says so, and reports how its session ends.
func nodeMain(a Access) {
	s, err := a.Join(context.Background(), processConfig("child:1", brief))
	if err != nil {
		fmt.Println("join:", err)
		return
	}
	fmt.Println("joined")
	<-s.Done()
	fmt.Println("done:", s.Err())
	_ = s.Close(context.Background())
}

// child starts a node in a process of its own, and joins the same run.
func child(t *testing.T, e *ownServer) (*exec.Cmd, *bufio.Reader, coord.Session) {
	t.Helper()
	c := exec.Command(os.Args[0], "-test.run=^$")
	c.Env = append(os.Environ(), asNode+"="+e.Access().Endpoints[0], itsToken+"="+e.Access().Token)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_, _ = io.Copy(io.Discard, out)
		_ = c.Wait()
	})
	s, err := e.Access().Join(t.Context(), processConfig("parent:1", ttl))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	r := bufio.NewReader(out)
	if line, err := r.ReadString('\n'); line != "joined\n" {
		t.Fatalf("the other process said %q, %v", line, err)
	}
	return c, r, s
}

// lossAfter waits in a barrier for the loss of the child that a signal brings.
func lossAfter(t *testing.T, c *exec.Cmd, s coord.Session, sig syscall.Signal) {
	t.Helper()
	wait := make(chan error, 1)
	go func() { wait <- s.Barrier(t.Context(), "epoch 3") }()
	begin := time.Now()
	if err := c.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-wait:
		t.Logf("%v: noticed after %v: %v", sig, time.Since(begin).Round(time.Millisecond), err)
		if !errors.Is(err, godwit.ErrPeerLost) || !strings.Contains(err.Error(), "(child:1) did not arrive") {
			t.Errorf("got %v, want the loss of child:1", err)
		}
	case <-time.After(limit):
		t.Fatalf("not noticed within %v", limit)
	}
}

func TestOthersNoticeAKilledProcess(t *testing.T) {
	t.Parallel() // to the other waits for a lease
	c, _, s := child(t, serve(t))
	lossAfter(t, c, s, syscall.SIGKILL)
}

func TestOthersNoticeAStoppedProcessAndItNoticesItself(t *testing.T) {
	t.Parallel()
	c, out, s := child(t, serve(t))
	lossAfter(t, c, s, syscall.SIGSTOP)
	begin := time.Now()
	if err := c.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	line, err := out.ReadString('\n')
	t.Logf("noticed itself after %v: %s", time.Since(begin).Round(time.Millisecond), strings.TrimSpace(line))
	if !strings.HasPrefix(line, "done: ") || !strings.Contains(line, "(child:1): node lost: lease expired") {
		t.Errorf("the stopped process said %q, %v; want that it is lost itself", line, err)
	}
}

func TestAllNodesNoticeALostCoordinator(t *testing.T) {
	t.Parallel()
	e, err := startServer(t.Context(), server.Config{})
	if err != nil {
		t.Fatal(err)
	}
	cfg := coord.Config{Run: "r", Nodes: 1, Addr: "a:1", TTL: brief}
	s, err := e.Access().Join(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	// A write does not hang either; it waits for etcd to come back until the
	// lease is lost.
	if err := s.Barrier(t.Context(), "b"); !errors.Is(err, coord.ErrCoordinator) {
		t.Errorf("barrier: got %v, want %v", err, coord.ErrCoordinator)
	}
	select {
	case <-s.Done():
		t.Logf("noticed after %v: %v", time.Since(begin).Round(time.Millisecond), s.Err())
	case <-time.After(limit):
		t.Fatalf("not noticed within %v", limit)
	}
	if err := s.Err(); !errors.Is(err, coord.ErrCoordinator) {
		t.Errorf("got %v, want %v", err, coord.ErrCoordinator)
	}
	s.Fail(errors.New("nobody hears it")) // must return
	if err := s.Close(t.Context()); err != nil {
		t.Errorf("close: %v", err)
	}
}

// An etcd that comes back without its data knows no lease. That is no loss of the nodes.
func TestAnEtcdThatLostItsDataIsALostCoordinator(t *testing.T) {
	t.Parallel()
	first, err := startServer(t.Context(), server.Config{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := first.Access().Join(t.Context(), coord.Config{Run: "r", Nodes: 1, Addr: "a:1", TTL: ttl})
	if cerr := first.Close(); err != nil || cerr != nil {
		t.Fatal(err, cerr)
	}
	u, err := url.Parse(first.Endpoints()[0])
	if err != nil {
		t.Fatal(err)
	}
	second, err := startServer(t.Context(), server.Config{Listen: u.Host, Token: first.Token()})
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if err := s.Barrier(t.Context(), "b"); !errors.Is(err, coord.ErrCoordinator) || errors.Is(err, godwit.ErrPeerLost) {
		t.Errorf("barrier: got %v, want %v", err, coord.ErrCoordinator)
	}
	select {
	case <-s.Done():
		t.Log(s.Err())
	case <-time.After(limit):
		t.Fatalf("not noticed within %v", limit)
	}
	if err := s.Err(); !errors.Is(err, coord.ErrCoordinator) {
		t.Errorf("got %v, want %v", err, coord.ErrCoordinator)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Errorf("close: %v", err)
	}
}
