package godwit_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// linked returns what a program links that imports packages: a property of each
// package that it reaches, once, sorted.
func linked(t *testing.T, property string, packages ...string) []string {
	t.Helper()
	out, err := exec.Command("go", append([]string{"list", "-deps", "-f", property}, packages...)...).Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	all := strings.Fields(string(out))
	slices.Sort(all)
	return slices.Compact(all)
}

// A program that does not coordinate by etcd links neither its client nor gRPC, and
// few modules at all; one with an etcd of others links no server.
func TestProgramsWithoutEtcdLinkNone(t *testing.T) {
	const modules, path = "{{with .Module}}{{.Path}}{{end}}", "{{.ImportPath}}"
	small := []string{
		".", "./job", "./node", "./optim", "./filter", "./placement", "./sampling", "./sim", "./train/...", "./data/...",
		"./coord/mem", "./transport/mem", "./transport/tcp",
	}
	want := []string{module, "github.com/klauspost/compress", "github.com/klauspost/cpuid/v2", "github.com/zeebo/xxh3", "golang.org/x/sys"}
	if got := linked(t, modules, small...); !slices.Equal(got, want) {
		t.Errorf("a program without etcd links %v, want %v", got, want)
	}
	for _, p := range linked(t, path, "./job", "./coord/etcd", "./cmd/libgodwit") {
		if strings.HasPrefix(p, "go.etcd.io/etcd/server/") || strings.HasPrefix(p, "go.etcd.io/bbolt") {
			t.Errorf("a leader with an etcd of others links %s", p)
		}
	}
	if all := linked(t, path, "./cmd/godwit"); !slices.Contains(all, "go.etcd.io/etcd/server/v3/embed") {
		t.Error("the check is vacuous: the command links no server")
	}
}
