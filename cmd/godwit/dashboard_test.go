package main

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/godwit-ps/godwit/job/cli"
)

func TestTheDashboardIsShownToThisMachineOnly(t *testing.T) {
	dir := t.TempDir()
	for args, want := range map[string]struct {
		code int
		says string
	}{
		"dashboard":                                               {2, "accepts 1 arg"},
		"dashboard " + dir + "/none":                              {1, "no such file"},
		"dashboard dashboard_test.go":                             {2, "is a file"},
		"dashboard " + dir + " --addr 0.0.0.0:0":                  {2, "--tls-cert"},
		"dashboard " + dir + " --addr here":                       {2, "--addr"},
		"train kge --dashboard 0.0.0.0:0":                         {2, "--dashboard"},
		"node --etcd 127.0.0.1:1 --run x --dashboard=127.0.0.1:0": {2, "unknown flag: --dashboard"}, // the node that leads shows the run
		"demo --dashboard=here:x":                                 {2, "--dashboard"},
	} {
		if code, _, stderr := run(t, strings.Fields(args)...); code != want.code || !strings.Contains(stderr, want.says) {
			t.Errorf("godwit %s: exit code %d, want %d and %q:\n%s", args, code, want.code, want.says, stderr)
		}
	}
}

// The run may be yet to begin, so a folder without one is no error.
func TestTheDashboardOfAFolderWithoutARunSaysSo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/else", nil, 0o666); err != nil {
		t.Fatal(err)
	}
	p := start(t, "dashboard", dir)
	said := func() bool {
		out, errs := p.said()
		return strings.Contains(out, "http://") && strings.Contains(errs, "no run is there yet: trace: there are no segments in "+dir)
	}
	for deadline := time.Now().Add(limit); !said(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not say so")
		}
	}
	p.send(syscall.SIGINT)
	p.exits(cli.OK, limit)
}
