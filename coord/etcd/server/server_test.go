package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/godwit-ps/godwit/coord/etcd"
)

// asServer makes the test binary run a server until it is killed.
const asServer = "GODWIT_TEST_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(asServer) != "" {
		serverMain()
		return
	}
	os.Exit(m.Run())
}

func serve(t *testing.T) *Server {
	t.Helper()
	s, err := Start(t.Context(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// access is the access to a server.
func access(s *Server) etcd.Access { return etcd.Access{Endpoints: s.Endpoints(), Token: s.Token()} }

func TestEmbeddedLeavesNothingBehind(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	e, err := Start(t.Context(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	if fs, _ := os.ReadDir(os.TempDir()); len(fs) != 1 {
		t.Errorf("%d temporary folders while it runs, want 1", len(fs))
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if fs, _ := os.ReadDir(os.TempDir()); len(fs) != 0 {
		t.Errorf("%v is left behind", fs)
	}
}

// A killed process leaves its folder, and the next one removes it; nobody takes the
// folder of one that runs, or is about to.
func TestFoldersOfKilledProcessesAreRemovedAndNoOthers(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	killed := exec.Command(os.Args[0], "-test.run=^$")
	killed.Env = append(os.Environ(), asServer+"=1")
	out, err := killed.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	killed.Stderr = os.Stderr
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "serves\n" {
		t.Fatalf("the other process said %q, %v", line, err)
	}
	left, err := filepath.Glob(filepath.Join(dir, tempPrefix+"*"))
	if err != nil || len(left) != 1 {
		t.Fatalf("it has the folders %v, %v", left, err)
	}
	starting, foreign := filepath.Join(dir, tempPrefix+"starting"), filepath.Join(dir, tempPrefix+"foreign")
	for _, d := range []string{starting, foreign} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(starting, ownerFile), nil, 0o600); err != nil { // about to be locked
		t.Fatal(err)
	}
	check := func(when string, others ...string) {
		t.Helper()
		e, err := Start(t.Context(), Config{})
		if err != nil {
			t.Fatal(err)
		}
		sweep(dir) // this process' own is of use to somebody as well
		got, err := filepath.Glob(filepath.Join(dir, tempPrefix+"*"))
		want := append([]string{e.temp.dir}, others...)
		slices.Sort(want)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: the folders are %v, want %v; %v", when, got, want, err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
	check("while the other runs", left[0], starting, foreign)
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = killed.Wait() // it was killed
	if _, err := os.Stat(left[0]); err != nil {
		t.Fatalf("the test is vacuous: %v", err)
	}
	check("when it was killed", starting, foreign)
}

func TestEmbeddedKeepsTheDataOfAGivenFolder(t *testing.T) {
	dir := t.TempDir()
	for i := range 2 {
		e, err := Start(t.Context(), Config{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			err = access(e).Configure(t.Context(), "r", []byte("blob"))
		} else {
			var b []byte
			b, err = access(e).Configuration(t.Context(), "r")
			if string(b) != "blob" {
				t.Errorf("got %q, want what the first server was told", b)
			}
		}
		if err != nil {
			t.Error(err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestEmbeddedNamesTheAddressThatItCannotListenOn(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	t.Setenv("TMPDIR", t.TempDir())
	for _, addr := range []string{l.Addr().String(), "no port"} {
		if _, err := Start(t.Context(), Config{Listen: addr}); err == nil || !strings.Contains(err.Error(), addr) {
			t.Errorf("%s: got %v, want an error that names it", addr, err)
		}
	}
	if fs, _ := os.ReadDir(os.TempDir()); len(fs) != 0 {
		t.Errorf("%v is left behind", fs)
	}
}

func TestATokenCanBeChosen(t *testing.T) {
	for token, says := range map[string]string{
		"chosen-beforehand":       "",
		strings.Repeat("x", 15):   "at least 16",
		"user:and-their-password": "no users",
		"with blanks in the text": "blanks",
		"and-letters-such-as-ü":   "'ü'",
		strings.Repeat("x", 257):  "at most 256",
	} {
		e, err := Start(t.Context(), Config{Token: token})
		if err == nil {
			if cerr := access(e).Configure(t.Context(), "r", []byte("x")); e.Token() != token || cerr != nil {
				t.Errorf("%q: %v", token, cerr)
			}
			_ = e.Close()
		}
		if (err == nil) != (says == "") || says != "" && !strings.Contains(err.Error(), says) {
			t.Errorf("%q: got %v, want %q", token, err, says)
		}
	}
	for _, n := range []int{16, 256} {
		if err := CheckToken(strings.Repeat("x", n)); err != nil {
			t.Errorf("a token of %d bytes: %v", n, err)
		}
	}
	a, b := serve(t), serve(t)
	if x, y := a.Token(), b.Token(); x == y || CheckToken(x) != nil || len(x) < minToken {
		t.Errorf("two servers made the tokens %q and %q", x, y)
	}
}

// Beside gRPC, etcd tells by HTTP how it is and how its process was started.
func TestTheClientsPortTellsNothingByHTTP(t *testing.T) {
	e := serve(t)
	for _, path := range []string{"/metrics", "/debug/vars", "/health", "/version", "/v3/kv/range", "/"} {
		for _, host := range []string{"", "*", "localhost", "127.0.0.1"} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, e.Endpoints()[0]+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Host = host
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				continue // no answer is none
			}
			if answer.StatusCode != http.StatusMisdirectedRequest { // whatever there is at the path
				t.Errorf("%s of %q is answered: %s", path, host, answer.Status)
			}
			_ = answer.Body.Close()
		}
	}
}

func TestAListenerOnAllAddressesIsReachedOnThisMachine(t *testing.T) {
	for ip, want := range map[string]string{"0.0.0.0": "127.0.0.1:7", "::": "127.0.0.1:7", "10.1.2.3": "10.1.2.3:7", "127.0.0.1": "127.0.0.1:7"} {
		if got := reachable(&net.TCPAddr{IP: net.ParseIP(ip), Port: 7}); got != want {
			t.Errorf("%s: %s, want %s", ip, got, want)
		}
	}
	if got := reachable(&net.UnixAddr{Name: "/a/socket", Net: "unix"}); got != "/a/socket" {
		t.Errorf("a socket that is a file: %s", got)
	}
}

// serverMain starts a server, says so, and waits for its end.
func serverMain() {
	var cfg Config
	if dir := os.Getenv(asServer); filepath.IsAbs(dir) {
		cfg.Dir = dir
	}
	e, err := Start(context.Background(), cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("serves")
	<-e.etcd.Server.StopNotify() // which nobody asks for
	_ = e.Close()
}

// What keeps a server from starting is found in the error.
func TestAServerThatCannotStartKeepsTheCause(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	absent, file := filepath.Join(t.TempDir(), "absent"), filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancelCause(t.Context())
	reason := errors.New("somebody pressed a key")
	end(reason)
	for what, x := range map[string]struct {
		ctx  context.Context
		cfg  Config
		want error
	}{
		"an address in use":   {t.Context(), Config{Listen: l.Addr().String()}, syscall.EADDRINUSE},
		"TLS files not there": {t.Context(), Config{TLS: &TLSFiles{Cert: absent, Key: absent, CA: absent}}, fs.ErrNotExist},
		"a file as a folder":  {t.Context(), Config{Dir: filepath.Join(file, "below"), Log: slog.New(slog.DiscardHandler)}, syscall.ENOTDIR},
		"a context that ends": {ended, Config{}, reason},
	} {
		if s, err := Start(x.ctx, x.cfg); !errors.Is(err, x.want) {
			t.Errorf("%s: got %v, want %v", what, err, x.want)
			if err == nil {
				_ = s.Close()
			}
		}
	}
}

// locked stays so until the process ends: etcd would go on in a folder that was removed.
var locked []*os.File

// A file system that does not answer holds up neither a start nor an end for ever. Here the file of the database is locked by somebody else, for which etcd waits without end.
func TestDataThatDoNotAnswerAreNotWaitedForForEver(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	db := filepath.Join(dir, "member", "snap", "db")
	if err := os.MkdirAll(filepath.Dir(db), 0o700); err != nil {
		t.Fatal(err)
	}
	lock, err := os.OpenFile(db, os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil {
		err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX)
	}
	if err != nil {
		t.Fatal(err)
	}
	locked = append(locked, lock)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = Start(ctx, Config{Dir: dir})
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "127.0.0.1:0") {
		t.Errorf("a start whose data do not answer: %v, want an error that names %s", err, dir)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), closeTime)
		defer cancel()
		began, free := time.Now(), make(chan struct{})
		answered, err := waitFor(ctx, 0, func() error { <-free; return nil })
		if answered || err != nil || time.Since(began) != closeTime {
			t.Errorf("an end that does not come: %v after %v", err, time.Since(began))
		}
		close(free)
	})
}
