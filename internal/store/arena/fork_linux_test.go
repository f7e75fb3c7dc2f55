package arena

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"
	"unsafe"
)

// A child that is forked does not inherit rows. The kernel says so of a mapping by the flag
// "dc": do not copy on fork.
func TestMemoryIsNotInheritedByForkedChildren(t *testing.T) {
	var a Arena
	b := a.Alloc(region)
	defer func() { _ = a.Free() }()
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	at := uintptr(unsafe.Pointer(&b[0]))
	within := false
	for s := bufio.NewScanner(f); s.Scan(); {
		var lo, hi uintptr
		if n, _ := fmt.Sscanf(s.Text(), "%x-%x ", &lo, &hi); n == 2 {
			within = lo <= at && at < hi
		}
		if flags, ok := strings.CutPrefix(s.Text(), "VmFlags:"); ok && within {
			if !strings.Contains(" "+flags+" ", " dc ") {
				t.Errorf("the memory of rows has the flags %s, without dc", flags)
			}
			return
		}
	}
	t.Skip("this kernel shows no flags of the mapping")
}
