package node

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/internal/racing"
)

// rowsOfChild, where set, makes the test a process whose memory is measured: it has
// two nodes and a table of so many rows, 2^n, pushes to random keys and says what that
// took.
const rowsOfChild = "GODWIT_TEST_LOG_ROWS"

// Memory follows the keys in use: however many rows a table could have, a process
// takes what Stats tells of and little more, and starts at once.
func TestMemoryFollowsTheKeysInUse(t *testing.T) {
	if log := os.Getenv(rowsOfChild); log != "" {
		useKeys(t, log)
		return
	}
	if testing.Short() || racing.Enabled {
		t.Skip("starts processes with 300,000 keys, whose memory is measured")
	}
	least, most := math.Inf(1), 0.0
	for _, log := range []int{20, 30, 38, 46} {
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-seed="+fmt.Sprint(*seed))
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", rowsOfChild, log))
		out, err := cmd.CombinedOutput()
		var rss, bytes float64
		i := strings.Index(string(out), "rss ")
		if err != nil || i < 0 {
			t.Fatalf("-seed %d: 2^%d rows: %v\n%s", *seed, log, err, out)
		}
		if _, err := fmt.Sscanf(string(out[i:]), "rss %f bytes %f", &rss, &bytes); err != nil {
			t.Fatalf("2^%d rows: %v\n%s", log, err, out)
		}
		t.Logf("2^%d rows: %.1f MB, Stats.Bytes is %.1f MB", log, rss/1e6, bytes/1e6)
		if rss > 2*bytes+30e6 {
			t.Errorf("-seed %d: 2^%d rows: the process has %.0f MB, want at most 30 and twice what Stats.Bytes says, %.0f", *seed, log, rss/1e6, bytes/1e6)
		}
		least, most = min(least, rss), max(most, rss)
	}
	if most > 2*least {
		t.Errorf("-seed %d: processes with tables of different size have %.0f … %.0f MB", *seed, least/1e6, most/1e6)
	}
}

func useKeys(t *testing.T, log string) {
	const keys, dim, batch = 300_000, 8, 1000
	shift, err := strconv.Atoi(log)
	must(t, err)
	c := local(t, 2, Config{Model: model(t, 1<<shift, dim), Workers: 1, Seed: *seed})
	each(t, c, func(ctx context.Context, w godwit.Worker, rng *rand.Rand) error {
		list, ones := make([]godwit.Key, batch), make([]float32, batch*dim)
		for range keys / 2 / batch {
			for i := range list {
				list[i] = godwit.Key(rng.Uint64N(1 << shift))
			}
			if err := w.Push(ctx, list, ones); err != nil {
				return err
			}
		}
		n := 0
		for _, err := range w.Scan(ctx, 0, 1<<shift, godwit.NoNode) {
			if n++; err != nil {
				return err
			}
		}
		if n < keys/4 {
			return fmt.Errorf("a scan finds %d keys", n)
		}
		return nil
	})
	statm, err := os.ReadFile("/proc/self/statm")
	must(t, err)
	var size, resident int
	_, err = fmt.Sscan(string(statm), &size, &resident)
	must(t, err)
	fmt.Printf("rss %d bytes %d\n", resident*os.Getpagesize(), sum(c).Bytes)
}
