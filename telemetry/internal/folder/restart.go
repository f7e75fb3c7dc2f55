package folder

import (
	"fmt"
	"strconv"
	"strings"
)

// restarted is between the name of a run and the number of a restart.
const restarted = "-restart"

// Restarted returns the name under which a run goes on by itself for the n-th time, from 1 on.
func Restarted(run string, n int) string { return fmt.Sprintf("%s%s%d", run, restarted, n) }

// Restarts returns the name that a run began under, and how often it has gone on by itself since, from its name now; 0: it is as it was begun.
func Restarts(name string) (run string, n int) {
	if i := strings.LastIndex(name, restarted); i >= 0 {
		if n, err := strconv.Atoi(name[i+len(restarted):]); err == nil && n > 0 && Restarted(name[:i], n) == name {
			return name[:i], n
		}
	}
	return name, 0
}
