package cli

import (
	"testing"

	"github.com/godwit-ps/godwit/job"
)

func TestTheCommandToJoinIsThatOfThisProgram(t *testing.T) {
	e := job.Event{Run: "r", Waiting: &job.Waiting{Endpoints: []string{"a:1", "b:2"}, Token: "made"}}
	node := program() + " node --etcd a:1,b:2 --run r"
	for want, c := range map[string]*cluster{
		job.TokenEnv + "=made " + node: {},
		job.TokenEnv + "=made " + node + " --tls-cert CERT --tls-key KEY --tls-ca CA --tls-name n": {node: job.NodeConfig{TLS: &job.TLS{Name: "n"}}},
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
