package host

import (
	"bufio"
	"bytes"
	"io/fs"
	"math"
	"os"
	"path"
	"strconv"
	"strings"
)

// Available returns how many bytes of memory processes can still get, as the kernel
// estimates, up to the limit of this process's control group.
func Available() uint64 { return availableIn(os.DirFS("/")) }

func availableIn(root fs.FS) uint64 {
	most := uint64(math.MaxUint64)
	for key, value := range fields(root, "proc/meminfo", ":") {
		if n, err := strconv.ParseUint(strings.TrimSuffix(value, " kB"), 10, 53); key == "MemAvailable" && err == nil {
			most = n << 10
		}
	}
	for _, file := range limits(root) {
		b, err := fs.ReadFile(root, file)
		if err != nil {
			continue // the group, or the control of memory, is mounted elsewhere or not at all
		}
		if n, err := strconv.ParseUint(string(bytes.TrimSpace(b)), 10, 64); err == nil { // else "max"
			most = min(most, n)
		}
	}
	return most
}

// limits returns where the limits of this process's control group and those above it
// are, of both versions of control groups.
func limits(root fs.FS) (files []string) {
	for _, group := range fields(root, "proc/self/cgroup", ":") {
		controllers, dir, ok := strings.Cut(group, ":")
		if !ok {
			continue
		}
		at, file := "sys/fs/cgroup", "memory.max"
		if controllers != "" {
			if !strings.Contains(","+controllers+",", ",memory,") {
				continue
			}
			at, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		}
		for d := path.Clean("/" + dir); ; d = path.Dir(d) {
			files = append(files, path.Join(at, d, file))
			if d == "/" {
				break
			}
		}
	}
	return files
}

// fields yields what stands before and behind the first separator of each line of a
// file; nothing if it cannot be read.
func fields(root fs.FS, file, separator string) func(yield func(key, value string) bool) {
	return func(yield func(key, value string) bool) {
		b, _ := fs.ReadFile(root, file)
		for lines := bufio.NewScanner(bytes.NewReader(b)); lines.Scan(); {
			key, value, ok := strings.Cut(lines.Text(), separator)
			if ok && !yield(key, strings.TrimSpace(value)) {
				return
			}
		}
	}
}
