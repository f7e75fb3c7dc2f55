package host

import (
	"math"
	"testing"
	"testing/fstest"
)

func TestMemoryIsWhatTheMachineAndTheControlGroupsLeave(t *testing.T) {
	const meminfo = "MemTotal:       24000000 kB\nMemFree:        100 kB\nMemAvailable:   20000000 kB\n"
	for name, x := range map[string]struct {
		files map[string]string
		want  uint64
	}{
		"nothing known": {nil, math.MaxUint64},
		"the machine":   {map[string]string{"proc/meminfo": meminfo}, 20_000_000 << 10},
		"version 2": {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a/b\n",
			"sys/fs/cgroup/a/b/memory.max": "max\n", "sys/fs/cgroup/a/memory.max": "1073741824\n"}, 1 << 30},
		"version 1": {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "9:name=systemd:/\n4:cpu,memory:/x\n0::/\n",
			"sys/fs/cgroup/memory/x/memory.limit_in_bytes": "2147483648\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 2 << 30},
		"a container": {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/../x\n",
			"sys/fs/cgroup/memory.max": "4096\n"}, 4096},
		"nonsense": {map[string]string{"proc/meminfo": "MemAvailable: much\nMemAvailable\n", "proc/self/cgroup": "0\n:\n::\n",
			"sys/fs/cgroup/memory.max": "-3"}, math.MaxUint64},
	} {
		root := fstest.MapFS{}
		for f, text := range x.files {
			root[f] = &fstest.MapFile{Data: []byte(text)}
		}
		if got := availableIn(root); got != x.want {
			t.Errorf("%s: %d bytes, want %d", name, got, x.want)
		}
	}
	if n := Available(); n < 1<<20 || n > 1<<50 {
		t.Errorf("this machine has %d bytes", n)
	}
}
