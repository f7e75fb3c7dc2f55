package node

import (
	"fmt"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/filter"
	"github.com/godwit-ps/godwit/optim"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/sampling"
)

// A renamed rule has a name that could be taken for lines of its own.
type renamed struct{ optim.AdaGrad }

func (renamed) Name() string { return "a\nb: c" }

// The first line in which the fingerprints of nodes differ names what the nodes have to agree on. All fit into what a coordinator takes.
func TestAFingerprintNamesWhatDiffers(t *testing.T) {
	configOf := func(change func(c *Config, ts []godwit.Table)) Config {
		ts := []godwit.Table{{Name: "users", Rows: 10, Dim: 2}, {Name: "items", Rows: 20, Dim: 2}}
		for i := range 200 {
			ts = append(ts, godwit.Table{Name: fmt.Sprint("more ", i), Rows: 1, Dim: 1})
		}
		c := Config{Workers: 1, Samplers: []sampling.Spec{{Name: "negatives", Dist: sampling.Uniform(10)}}}
		change(&c, ts)
		c.Model = modelOf(t, ts...)
		return c
	}
	same := configOf(func(*Config, []godwit.Table) {})
	for _, x := range []struct {
		what   string // differs
		change func(c *Config, ts []godwit.Table)
	}{
		{"policy", func(c *Config, _ []godwit.Table) { c.Policy = placement.Static }},
		{"seed", func(c *Config, _ []godwit.Table) { c.Seed = 7 }},
		{"list of tables", func(_ *Config, ts []godwit.Table) { ts[0].Name = "people" }},
		{"list of samplers", func(c *Config, _ []godwit.Table) { c.Samplers = nil }},
		{"table users", func(_ *Config, ts []godwit.Table) { ts[0].Rows++ }},
		{"table items", func(_ *Config, ts []godwit.Table) { ts[1].Dim++ }},
		{"table items", func(_ *Config, ts []godwit.Table) { ts[1].Rule = optim.SGD{LR: 0.5} }},
		{"table items", func(_ *Config, ts []godwit.Table) { ts[1].Rule = renamed{optim.AdaGrad{LR: 0.5}} }},
		{"table items", func(_ *Config, ts []godwit.Table) { ts[1].Init = godwit.Normal{Std: 1} }},
		{"table items", func(_ *Config, ts []godwit.Table) { ts[1].Filters = []godwit.Filter{filter.Sparse{}} }},
		{"table items", func(_ *Config, ts []godwit.Table) { ts[1].Staleness = godwit.Within(1) }},
		{"table items", func(_ *Config, ts []godwit.Table) { ts[1].Counts = true }},
		{"table items", func(_ *Config, ts []godwit.Table) { ts[1].Relaxed = true }},
		{"configuration and build", func(_ *Config, ts []godwit.Table) { ts[len(ts)-1].Rows++ }}, // there is no room for its line
		{"configuration and build", func(c *Config, _ []godwit.Table) { c.NoHints = true }},
		{"configuration and build", func(c *Config, _ []godwit.Table) { c.OneClock = true }},
		{"", func(c *Config, _ []godwit.Table) { c.Policy, c.Workers = placement.Adaptive, 3 }},
	} {
		c := configOf(x.change)
		a, b := strings.Split(same.Fingerprint(), "\n"), strings.Split(c.Fingerprint(), "\n")
		got := ""
		for i := range min(len(a), len(b)) {
			name, value, ok := strings.Cut(a[i], ": ")
			if other, v, _ := strings.Cut(b[i], ": "); ok && other == name && v != value {
				got = name
				break
			}
		}
		if got != x.what {
			t.Errorf("%q differs, want %q:\n%s", got, x.what, c.Fingerprint())
		}
		if n := len(c.Fingerprint()); n > 4096 || len(c.short()) > 128 {
			t.Errorf("%d and %d bytes", n, len(c.short()))
		}
		if (c.short() != same.short()) != (x.what != "") {
			t.Errorf("%s: connections have the fingerprint %s", x.what, c.short())
		}
	}
}
