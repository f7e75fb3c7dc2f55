package host

import (
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"
)

// ProcessorWait returns for how long the threads of this process were ready to run and got no processor, those that have ended not counted;
// 0 if the system does not say.
func ProcessorWait() time.Duration { return waitIn(os.DirFS("/proc/self/task")) }

func waitIn(tasks fs.FS) (sum time.Duration) {
	threads, _ := fs.Glob(tasks, "*/schedstat")
	for _, file := range threads {
		b, err := fs.ReadFile(tasks, file)
		if err != nil {
			continue // the thread has ended
		}
		if f := strings.Fields(string(b)); len(f) == 3 { // ran, waited, how often
			n, _ := strconv.ParseInt(f[1], 10, 64)
			sum += time.Duration(n)
		}
	}
	return sum
}
