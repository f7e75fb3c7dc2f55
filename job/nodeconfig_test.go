package job

import (
	"net"
	"testing"
)

func TestANodeListensWhereItReachesItsCoordinator(t *testing.T) {
	for _, c := range []struct{ listen, endpoint, host string }{
		{"", "http://127.0.0.1:2379", "127.0.0.1"},
		{"", "127.0.0.1:2379", "127.0.0.1"},
		{"10.0.0.1:7", "http://127.0.0.1:2379", "10.0.0.1"},
	} {
		p := NodeConfig{Listen: c.listen}
		addr, err := p.listenAddr([]string{c.endpoint})
		if err != nil {
			t.Fatal(err)
		}
		if host, _, err := net.SplitHostPort(addr); err != nil || host != c.host {
			t.Errorf("with --listen %q and etcd at %s it listens at %s", c.listen, c.endpoint, addr)
		}
	}
}

func TestAnAddressToAdvertiseReplacesWhatItGives(t *testing.T) {
	for _, c := range []struct{ advertise, listener, want string }{
		{"", "10.0.0.1:700", "10.0.0.1:700"},
		{"outside", "0.0.0.0:700", "outside:700"},
		{"outside:80", "0.0.0.0:700", "outside:80"},
		{"fd00::1", "[::]:700", "[fd00::1]:700"},
		{"[fd00::1]:80", "[::]:700", "[fd00::1]:80"},
		{"", "[::]:700", ""}, // nobody can dial it
	} {
		p := NodeConfig{Advertise: c.advertise}
		if got, err := p.advertised(c.listener); got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("--advertise %q of a listener at %s gives %q, %v, want %q", c.advertise, c.listener, got, err, c.want)
		}
	}
}

func TestAddressesThatAreNoneAreRefused(t *testing.T) {
	for addr, c := range map[string]struct{ listen, advertise bool }{
		"": {true, true}, "outside": {false, true}, "fd00::1": {false, true}, "[fd00::1]": {false, true}, "[fd00::1]:7": {true, true}, "outside:80": {true, true},
		"outside:0": {true, true}, ":7": {}, "0.0.0.0:0": {false, true}, "[::]:7": {false, true}, "a:b:c": {}, "[fd00::1": {}, "outside:99999": {}, "outside:x y": {}, "a]": {},
	} {
		if err := (&NodeConfig{Listen: addr}).Check(); (err == nil) != c.listen {
			t.Errorf("--listen %q: %v", addr, err)
		}
		if err := (&NodeConfig{Advertise: addr}).Check(); (err == nil) != c.advertise {
			t.Errorf("--advertise %q: %v", addr, err)
		}
	}
	for _, all := range []string{":7", "0.0.0.0:0", "[::]:7"} {
		if err := (&NodeConfig{Listen: all, Advertise: "outside"}).Check(); err != nil {
			t.Errorf("--listen %q, --advertise outside: %v", all, err)
		}
	}
}
