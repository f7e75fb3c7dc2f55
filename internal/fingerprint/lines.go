// Package fingerprint writes what nodes have in common so that the error of nodes that differ says in what.
package fingerprint

import (
	"fmt"
	"strings"
)

// Lines are the fingerprint of a coord.Config: lines of the form "name: value". The zero value has none.
type Lines struct{ b strings.Builder }

// room is how many bytes the lines may have, of the 4 KiB of coord.Config.
const room = 3 << 10

var plain = strings.NewReplacer("\n", " ", ": ", ":")

// Add adds a line, if there is room.
func (l *Lines) Add(name, format string, args ...any) {
	line := plain.Replace(name) + ": " + plain.Replace(fmt.Sprintf(format, args...)) + "\n"
	if l.b.Len()+len(line) <= room {
		l.b.WriteString(line)
	}
}

// End returns the fingerprint. All stands for everything that nodes have in common: its line, the last one, counts, as it has what there was no room for.
func (l *Lines) End(all string) string { return l.b.String() + "configuration and build: " + all }
