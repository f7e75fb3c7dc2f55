package coord

import (
	"testing"
	"time"
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
