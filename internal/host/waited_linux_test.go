package host

import (
	"testing"
	"testing/fstest"
	"time"
)

func TestThreadsThatWaitForProcessorsAreCounted(t *testing.T) {
	tasks := fstest.MapFS{"1/schedstat": {Data: []byte("100 2000 3\n")}, "17/schedstat": {Data: []byte("1 1000000000 2\n")}, "18/schedstat": {Data: []byte("?\n")}, "1/stat": {}}
	if got := waitIn(tasks); got != time.Second+2000 {
		t.Errorf("they waited for %v", got)
	}
}
