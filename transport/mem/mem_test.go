package mem

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godwit-ps/godwit/internal/transporttest"
)

func TestTransport(t *testing.T) {
	transporttest.Run(t, func(t *testing.T) transporttest.Setup {
		var n atomic.Int32
		return transporttest.Setup{
			Network: &Switch{timeout: 4 * time.Minute},
			Hasty:   &Switch{timeout: time.Second / 2},
			Timeout: time.Second / 2,
			Addr:    func() string { return fmt.Sprintf("node-%d", n.Add(1)) },
		}
	})
}

func TestAnEmptyAddressIsRefused(t *testing.T) {
	if _, err := new(Switch).Listen(""); err == nil {
		t.Error("listened at no address")
	}
}
