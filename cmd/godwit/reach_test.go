//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/godwit-ps/godwit/job"
	"github.com/godwit-ps/godwit/job/cli"
)

// A yard is network namespaces of one machine behind a switch, of which two can be
// kept from reaching each other. It needs root and the tools of iproute2.
type yard struct {
	t    *testing.T
	name string
}

func newYard(t *testing.T, hosts int) *yard {
	y := &yard{t, fmt.Sprintf("godwit%d", os.Getpid())}
	if out, err := exec.Command("ip", "netns", "add", y.name).CombinedOutput(); err != nil {
		t.Skipf("network namespaces need root and iproute2: %v %s", err, out)
	}
	t.Cleanup(func() { y.ip("netns", "del", y.name) })
	y.ip("-n", y.name, "link", "add", "name", "switch", "type", "bridge")
	y.ip("-n", y.name, "link", "set", "switch", "up")
	for i := range hosts {
		y.ip("netns", "add", y.host(i))
		t.Cleanup(func() { y.ip("netns", "del", y.host(i)) })
		y.ip("-n", y.name, "link", "add", "name", y.port(i), "type", "veth", "peer", "name", "eth0", "netns", y.host(i))
		y.ip("-n", y.name, "link", "set", y.port(i), "master", "switch", "up")
		y.ip("-n", y.host(i), "addr", "add", y.addr(i)+"/24", "dev", "eth0")
		y.ip("-n", y.host(i), "link", "set", "eth0", "up")
		y.ip("-n", y.host(i), "link", "set", "lo", "up")
	}
	return y
}

func (y *yard) host(i int) string { return fmt.Sprintf("%s-%d", y.name, i) }
func (y *yard) port(i int) string { return fmt.Sprintf("port%d", i) }
func (y *yard) addr(i int) string { return fmt.Sprintf("10.77.0.%d", i+1) }

func (y *yard) ip(args ...string) {
	y.t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		y.t.Fatalf("ip %s: %v %s", strings.Join(args, " "), err, out)
	}
}

// part keeps hosts from reaching each other. They reach all others.
func (y *yard) part(hosts ...int) {
	for _, i := range hosts {
		y.ip("-n", y.name, "link", "set", y.port(i), "type", "bridge_slave", "isolated", "on")
	}
}

// start starts a command at a host.
func (y *yard) start(host int, token string, args ...string) *proc {
	p := prepare(y.t, args...)
	p.cmd = exec.Command("ip", append([]string{"netns", "exec", y.host(host)}, p.cmd.Args...)...)
	if token != "" {
		p.cmd.Env = append(os.Environ(), job.TokenEnv+"="+token)
	}
	p.start()
	return p
}

func TestTwoMachinesThatDoNotReachEachOtherEndTheRunAndAreNamed(t *testing.T) {
	t.Parallel()
	y := newYard(t, 3)
	lead := y.start(0, "", with("--epochs", "100000", "--nodes", "3", "--await", "--listen", y.addr(0)+":0", "--run", "reach", "--json", "--ttl", ttl)...)
	var wanted *job.Waiting
	lead.until("the call for nodes", func(e job.Event) bool { wanted = e.Waiting; return wanted != nil })
	procs := []*proc{lead}
	for i := 1; i < 3; i++ {
		procs = append(procs, y.start(i, wanted.Token, "node", "--etcd", wanted.Endpoints[0], "--run", "reach", "--listen", y.addr(i)+":0"))
	}
	began := lead.until("start", isStart)
	lead.until("an epoch", isEpoch)
	y.part(1, 2)
	cut := time.Now()
	for _, p := range procs {
		p.exits(cli.Lost, limit)
		_, errs := p.said()
		if want := fmt.Sprintf("nodes 1 (%s) and 2 (%s) do not reach each other", began.Start.Nodes[1].Addr, began.Start.Nodes[2].Addr); !strings.Contains(errs, want) {
			t.Errorf("a node does not say that %s:\n%s", want, errs)
		}
	}
	t.Logf("all processes ended %v after the cut, with a lease of %s", time.Since(cut), ttl)
}

// A process that stands still for less than the lease costs time only; one that
// stands still for longer is named.
func TestAStoppedProcessIsNamedWhenTheLeaseIsOver(t *testing.T) {
	t.Parallel()
	lease, err := time.ParseDuration(ttl)
	if err != nil {
		t.Fatal(err)
	}
	p := start(t, with("--epochs", "100000", "--nodes", "3", "--json", "--ttl", ttl)...)
	began := p.until("start", isStart)
	p.until("an epoch", isEpoch)
	other := began.Start.Nodes[(began.Start.Self+1)%3]
	stop := func(sig syscall.Signal) {
		t.Helper()
		if err := syscall.Kill(other.PID, sig); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = syscall.Kill(other.PID, syscall.SIGKILL) }) // it should be gone
	stop(syscall.SIGSTOP)
	time.Sleep(lease / 2)
	stop(syscall.SIGCONT)
	on := time.Now().Add(lease) // what a stop leads to comes within that
	p.until("an epoch after a short stop", func(e job.Event) bool { return isEpoch(e) && time.Now().After(on) })
	stop(syscall.SIGSTOP)
	p.exits(cli.Lost, limit)
	if _, errs := p.said(); !strings.Contains(errs, fmt.Sprintf("%d (%s)", other.ID, other.Addr)) {
		t.Errorf("node %d at %s is not named:\n%s", other.ID, other.Addr, errs)
	}
}
