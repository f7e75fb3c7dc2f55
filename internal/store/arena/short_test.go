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
	if err := a.Reserve(0); err != nil {
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
	if err := a.Reserve(0); !errors.Is(err, full) {
		t.Errorf("a second reserve: %v", err)
	}
	a.Alloc(1)
}

// A piece that is larger than a region fits into the reserve that was made for it, with a region beside.
func TestAReserveHasRoomForTheLargestPiece(t *testing.T) {
	const piece = 3*region/2 + 1
	told, full := 0, false
	a := Arena{
		Short: func(int, error) { told++ },
		more: func(n int) ([]byte, error) {
			if full {
				return nil, errors.New("full")
			}
			return take(n)
		},
	}
	if err := a.Reserve(piece); err != nil {
		t.Fatal(err)
	}
	full = true
	for _, n := range []int{piece, region} {
		b := a.Alloc(n)
		b[0], b[n-1] = 1, 1
	}
	if told != 1 {
		t.Errorf("it was told %d times that only the reserve is left", told)
	}
	if err := a.Free(); err != nil {
		t.Error(err)
	}
}
