package coord

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/setting"
)

func TestATTLOfADayIsTheLongest(t *testing.T) {
	for ttl, ok := range map[time.Duration]bool{-1: false, 0: true, time.Second: true, MaxTTL: true, MaxTTL + 1: false} {
		c, err := Config{Run: "r", Nodes: 2, Addr: "a:1", TTL: ttl}.Checked()
		if (err == nil) != ok {
			t.Errorf("a TTL of %v: %v", ttl, err)
		}
		if ok && ttl > 0 && c.TTL != ttl || ttl == 0 && c.TTL != DefaultTTL {
			t.Errorf("a TTL of %v became %v", ttl, c.TTL)
		}
	}
}

func TestAConfigNamesTheFieldAtFault(t *testing.T) {
	good := Config{Run: "r-1.a_B", Nodes: 1, Addr: "a:1"}
	largest := Config{Run: "azAZ09" + strings.Repeat("r", 122), Nodes: godwit.MaxNodes, Addr: strings.Repeat("a", 512), Fingerprint: strings.Repeat("f", 4096), Join: 1}
	for _, c := range []Config{good, largest} {
		got, err := c.Checked()
		if want := max(c.Join, 1) == c.Join; err != nil || want && got.Join != c.Join || !want && got.Join != DefaultJoin {
			t.Fatalf("%+v became %+v, %v", c, got, err)
		}
	}
	for what, x := range map[string]struct {
		field string
		spoil func(*Config)
	}{
		"no name":           {"Run", func(c *Config) { c.Run = "" }},
		"a long name":       {"Run", func(c *Config) { c.Run = strings.Repeat("r", 129) }},
		"a name of a path":  {"Run", func(c *Config) { c.Run = "a/b" }},
		"no text":           {"Run", func(c *Config) { c.Run = "\xff" }},
		"no nodes":          {"Nodes", func(c *Config) { c.Nodes = 0 }},
		"too many":          {"Nodes", func(c *Config) { c.Nodes = godwit.MaxNodes + 1 }},
		"no address":        {"Addr", func(c *Config) { c.Addr = "" }},
		"a long one":        {"Addr", func(c *Config) { c.Addr = strings.Repeat("a", 513) }},
		"a long text":       {"Fingerprint", func(c *Config) { c.Fingerprint = strings.Repeat("f", 4097) }},
		"a negative TTL":    {"TTL", func(c *Config) { c.TTL = -1 }},
		"a TTL over a day":  {"TTL", func(c *Config) { c.TTL = MaxTTL + 1 }},
		"a negative wait":   {"Join", func(c *Config) { c.Join = -1 }},
		"an address in hex": {"Addr", func(c *Config) { c.Addr = "\xff" }},
	} {
		c := good
		x.spoil(&c)
		var e *setting.Error
		if _, err := c.Checked(); !errors.As(err, &e) || e.Of != "coord.Config" || e.Field != x.field {
			t.Errorf("%s: got %v, want a *setting.Error of %s", what, err, x.field)
		}
	}
}
