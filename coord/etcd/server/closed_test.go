package server

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/godwit-ps/godwit/coord"
)

// listening returns the inode and local address of each TCP socket at which this
// process listens.
func listening(t *testing.T) map[string]string {
	t.Helper()
	own := map[string]bool{}
	fds, _ := filepath.Glob("/proc/self/fd/*") // the pattern is good
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil && strings.HasPrefix(to, "socket:[") {
			own[strings.TrimSuffix(strings.TrimPrefix(to, "socket:["), "]")] = true
		}
	}
	at := map[string]string{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		b, err := os.ReadFile(table)
		if err != nil && table == "/proc/net/tcp" {
			t.Skipf("no table of sockets: %v", err)
		}
		for _, line := range strings.Split(string(b), "\n") {
			const state, listens, inode = 3, "0A", 9
			if f := strings.Fields(line); len(f) > inode && f[state] == listens && own[f[inode]] {
				at[f[inode]] = f[1]
			}
		}
	}
	return at
}

func TestNothingListensBesideTheClientsPort(t *testing.T) {
	before := listening(t)
	e := serve(t)
	addr := e.etcd.Clients[0].Addr().(*net.TCPAddr)
	var got []string
	for inode, at := range listening(t) {
		if before[inode] == "" {
			got = append(got, at)
		}
	}
	if want := fmt.Sprintf("0100007F:%04X", addr.Port); len(got) != 1 || got[0] != want {
		t.Errorf("it listens at %v, want only the port of clients, %s", got, want)
	}
	info, err := os.Stat(e.temp.dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("its folder is %v, %v; want one of this user alone", info, err)
	}
}

// A process may be given little address space, and several servers may share a
// machine.
func TestAServerTakesLittleAddressSpace(t *testing.T) {
	e := serve(t)
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		t.Skipf("no list of mappings: %v", err)
	}
	defer maps.Close()
	const most = 1 << 30
	var total uint64
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		var from, to uint64
		if _, err := fmt.Sscanf(lines.Text(), "%x-%x", &from, &to); err == nil && strings.Contains(lines.Text(), e.temp.dir) {
			total += to - from
		}
	}
	if total == 0 || total > most {
		t.Errorf("it maps %d bytes of its folder, want up to %d", total, uint64(most))
	}
}

// etcd ends its process itself where that may open few files.
func TestAServerThatEndsItsProcessLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	c := exec.Command("sh", "-c", `ulimit -n 120 && exec "$0" -test.run='^$'`, os.Args[0])
	c.Env = append(os.Environ(), asServer+"=1", "TMPDIR="+dir)
	out, err := c.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "file descriptor limit") {
		t.Fatalf("got %v, want that the process ends for want of files; it said\n%s", err, out)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("%v is left behind", left)
	}
}

// As for a disk that is full, etcd panics.
func TestAServerThatCannotWriteItsDataEndsWithWords(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "member", "snap", "db"), 0o700); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(os.Args[0], "-test.run=^$")
	c.Env = append(os.Environ(), asServer+"="+dir)
	out, err := c.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "is a directory") || !strings.Contains(string(out), "data="+dir) || strings.Contains(string(out), "goroutine ") {
		t.Errorf("a folder in place of the database: %v; want words that name %s, and no stack:\n%s", err, dir, out)
	}
}

// Sessions watch and renew their leases all the time, and begin anew when that ends.
func TestAServerDoesNotWaitForSessions(t *testing.T) {
	for range 5 {
		e, err := Start(t.Context(), Config{Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		s, err := access(e).Join(t.Context(), coord.Config{Run: "r", Nodes: 1, Addr: "a:1"})
		began := time.Now()
		if cerr := e.Close(); err != nil || cerr != nil {
			t.Fatal(err, cerr)
		}
		if took := time.Since(began); took > 4*time.Second { // of the 5.4 that etcd waits for calls under way
			t.Errorf("a session held up the end of its server for %v", took)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		_ = s.Close(gone) // which nobody hears of
	}
}
