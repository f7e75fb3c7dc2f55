package cli

import (
	"net"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit/job"
	"github.com/godwit-ps/godwit/telemetry/trace"
	"github.com/godwit-ps/godwit/transport/tcp"
)

// A name that a run gets when it is restarted is no other run's: who looks at the records of both would take one for the other's last part.
func TestARunIsNotCalledAsARestart(t *testing.T) {
	for name, bad := range map[string]bool{"x": false, trace.Restarted("x", 3): true, "x-restarted": false, "x-restart": false, "x-restart03": false, trace.Restarted(trace.Restarted("x", 1), 2): true} {
		spec := job.Spec{Nodes: 1, Workers: 1}
		if err := (&cluster{run: name}).prepare(&spec); (err != nil) != bad || bad && !strings.Contains(err.Error(), "--run "+name) {
			t.Errorf("a run %s: %v", name, err)
		}
	}
}

func TestTheCommandToJoinIsThatOfThisProgram(t *testing.T) {
	e := job.Event{Run: "r", Waiting: &job.Waiting{Endpoints: []string{"a:1", "b:2"}, Token: "made"}}
	node := program() + " node --etcd a:1,b:2 --run r"
	for want, c := range map[string]*cluster{
		job.TokenEnv + "=made " + node: {},
		job.TokenEnv + "=made " + node + " --tls-cert CERT --tls-key KEY --tls-ca CA --tls-name n": {node: job.NodeConfig{TLS: &tcp.TLSFiles{Name: "n"}}},
	} {
		if got := c.joinCommand(e); got != want {
			t.Errorf("the command is %q, want %q", got, want)
		}
	}
	e.Waiting.Token = ""
	if got, want := (&cluster{token: "chosen"}).joinCommand(e), job.TokenEnv+"=TOKEN "+node; got != want {
		t.Errorf("with a token of the environment, the command is %q, want %q", got, want)
	}
}

// Who says where a node listens has said by that which network its etcd is for.
func TestTheEtcdOfANodeThatWaitsListensAtTheNodesAddress(t *testing.T) {
	own, err := job.OwnAddress()
	if err != nil {
		own = "" // the machine has loopback only
	}
	for listen, want := range map[string]string{
		"127.0.0.1:0": "127.0.0.1", "127.0.0.1:2391": "127.0.0.1", "[::1]:0": "::1", "localhost:0": "localhost",
		"": own, "0.0.0.0:2391": own, "[::]:0": own, ":2391": own, "node0.example:2391": own,
	} {
		c := &cluster{node: job.NodeConfig{Listen: listen}}
		err := c.listen()
		host, port, serr := net.SplitHostPort(c.etcdListen)
		switch {
		case want == "":
			if err == nil {
				t.Errorf("--listen %q: the etcd is to listen at %s, where no other machine reaches it", listen, c.etcdListen)
			}
		case err != nil || serr != nil || host != want || port != "0":
			t.Errorf("--listen %q: the etcd listens at %q (%v), want any port of %s", listen, c.etcdListen, err, want)
		case listen != "" && c.node.Listen != listen:
			t.Errorf("--listen %q has become %s", listen, c.node.Listen)
		}
	}
	c := &cluster{node: job.NodeConfig{Listen: "0.0.0.0:0"}, etcdListen: "127.0.0.1:2390"}
	if err := c.listen(); err != nil || c.etcdListen != "127.0.0.1:2390" {
		t.Errorf("--etcd-listen has become %s: %v", c.etcdListen, err)
	}
}
