package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// A quota is a control group whose processes get a share of a processor.
type quota struct{ dir string }

// The first version of control groups has a folder for each resource, the second one for all.
const (
	first  = "/sys/fs/cgroup/cpu"
	second = "/sys/fs/cgroup"
)

// newQuota makes a group of which the processes get a share of a processor, together, in each period. They get it before
// other work on the machine.
func newQuota(name string, share float64, period time.Duration) (*quota, error) {
	full, part := period.Microseconds(), int64(share*float64(period.Microseconds()))
	files, dir := map[string]string{"cpu.max": fmt.Sprintf("%d %d", part, full), "cpu.weight": "10000"}, second
	if _, err := os.Stat(filepath.Join(first, "cpu.cfs_quota_us")); err == nil {
		files, dir = map[string]string{"cpu.cfs_period_us": strconv.FormatInt(full, 10), "cpu.cfs_quota_us": strconv.FormatInt(part, 10), "cpu.shares": "102400"}, first
	}
	q := &quota{filepath.Join(dir, name)}
	if err := os.Mkdir(q.dir, 0o755); err != nil {
		return nil, fmt.Errorf("a control group for processor time: %w", err)
	}
	for file, text := range files {
		if err := q.write(file, text); err != nil {
			return nil, errors.Join(err, q.close())
		}
	}
	return q, nil
}

func (q *quota) write(file, text string) error {
	return os.WriteFile(filepath.Join(q.dir, file), []byte(text), 0)
}

// hold puts a process into the group.
func (q *quota) hold(pid int) error { return q.write("cgroup.procs", strconv.Itoa(pid)) }

// release takes a process out of the group.
func (q *quota) release(pid int) error {
	return os.WriteFile(filepath.Join(filepath.Dir(q.dir), "cgroup.procs"), []byte(strconv.Itoa(pid)), 0)
}

// close removes the group, whose processes have ended.
func (q *quota) close() (err error) {
	for range 100 {
		if err = os.Remove(q.dir); err == nil {
			return nil
		}
		time.Sleep(10 * time.Millisecond) // the kernel still counts a process that was waited for
	}
	return err
}
