package arena

import (
	"errors"
	"strings"
	"testing"
)

func TestWhenTheSystemHasNoMoreTheReserveIsHandedOutAndSomebodyIsTold(t *testing.T) {
	var told []string
	full := errors.New("full")
	left := 3 // regions, the reserve among them
	a := Arena{
		Short: func(used int, err error) {
			if used != 2*region || !errors.Is(err, full) {
				t.Errorf("%d bytes were handed out when the system said %v", used, err)
			}
			told = append(told, err.Error())
		},
		more: func(n int) ([]byte, error) {
			if left--; left < 0 {
				return nil, full
			}
			return take(n)
		},
	}
	if err := a.Reserve(); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		b := a.Alloc(region)
		b[0], b[region-1] = 1, 1
		if len(told) != i/2 {
			t.Errorf("after %d regions it was told %q", i+1, told)
		}
	}
	defer func() {
		if p, _ := recover().(string); !strings.Contains(p, "64 MiB") {
			t.Errorf("more than the reserve panics with %q", p)
		}
		if err := a.Free(); err != nil {
			t.Error(err)
		}
	}()
	if err := a.Reserve(); !errors.Is(err, full) {
		t.Errorf("a second reserve: %v", err)
	}
	a.Alloc(1)
}
