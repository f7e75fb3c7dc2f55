package checkpoint

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/godwit-ps/godwit/internal/seedtest"
)

var kills = flag.Int("kills", 5, "how many processes to kill while they write")

// writerEnv has the test binary write checkpoints to a folder until it is killed.
const writerEnv = "GODWIT_TEST_WRITES_TO"

func TestMain(m *testing.M) {
	if dir := os.Getenv(writerEnv); dir != "" {
		fmt.Fprintln(os.Stderr, writeForEver(dir))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// changesOf are what a checkpoint has since the one before it, and ofNumber is its model; both follow from its number. Each
// fourth one has all rows.
func changesOf(n uint64) model { return newModel(rand.New(rand.NewPCG(n, 7)), 1500) }

func ofNumber(n uint64) model {
	if n%4 == 1 {
		return changesOf(n)
	}
	return ofNumber(n - 1).with(changesOf(n))
}

// lastOf is the checkpoint that one of a number builds on, nil if it has all rows.
func lastOf(ctx context.Context, s Store, n uint64) (*Manifest, error) {
	if n%4 == 1 {
		return nil, nil
	}
	c, err := Open(ctx, s, n-1)
	if err != nil {
		return nil, err
	}
	return c.Manifest(), nil
}

// writeForEver goes on after the last checkpoint of a folder, and prints the numbers of those that were acknowledged.
func writeForEver(dir string) error {
	ctx, rng := context.Background(), rand.New(rand.NewPCG(1, 1))
	s, err := OpenFolder(dir)
	if err != nil {
		return err
	}
	lock, err := Acquire(ctx, s, Holder{Run: "writer", PID: os.Getpid()})
	if err != nil {
		return err
	}
	for {
		n, err := Next(ctx, s)
		if err != nil {
			return err
		}
		last, err := lastOf(ctx, s, n)
		if err != nil {
			return err
		}
		if _, err := saveOn(ctx, rng, s, last, NewID(n), changesOf(n), 2, map[string][]byte{"n": fmt.Append(nil, n)}); err != nil {
			return err
		}
		if _, err := fmt.Println(n); err != nil {
			return err
		}
		if _, err := lock.Prune(ctx, s, 2); err != nil {
			return err
		}
	}
}

// Real processes are killed while they write. What they acknowledged is whole, and the next one goes on at once.
func TestKilledProcessesLeaveWholeCheckpoints(t *testing.T) {
	rng, s := seedtest.Rand(t), folder(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	total := uint64(0)
	for i := range *kills {
		acknowledged, err := writeAndKill(self, s.dir, rng)
		if err != nil {
			t.Fatalf("process %d: %v", i, err)
		}
		c, err := Open(t.Context(), s, 0)
		if errors.Is(err, ErrNone) && acknowledged == 0 && total == 0 {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		n := c.Manifest().Number
		if n < max(acknowledged, total) {
			t.Fatalf("checkpoint %d was acknowledged, and %d is the last", max(acknowledged, total), n)
		}
		if _, err := c.Verify(t.Context()); err != nil {
			t.Fatal(err)
		}
		if m, err := read(t.Context(), c, nil); err != nil || !m.equal(ofNumber(n)) {
			t.Fatalf("checkpoint %d has other rows than were written: %v", n, err)
		}
		total = n
	}
	t.Logf("%d processes were killed, which wrote %d checkpoints", *kills, total)
}

// writeAndKill starts a process that writes, kills it at some time, and returns the last number that it
// acknowledged, or 0.
func writeAndKill(self, dir string, rng *rand.Rand) (last uint64, err error) {
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), writerEnv+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	wait := time.AfterFunc(time.Duration(rng.Int64N(int64(150*time.Millisecond))), func() { _ = cmd.Process.Kill() }) // it may have ended by itself
	defer wait.Stop()
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if last, err = strconv.ParseUint(lines.Text(), 10, 64); err != nil {
			return 0, err
		}
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != -1 {
		return 0, fmt.Errorf("it was not killed: %w", err)
	}
	return last, nil
}
