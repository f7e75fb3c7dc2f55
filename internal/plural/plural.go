// Package plural writes numbers of things for people: "1 node", "2 nodes".
package plural

import "fmt"

// Of returns a number of things. More is what several of them are called, if that is not the name of one with an s.
func Of[N int | int32 | int64 | uint32 | uint64](n N, one string, more ...string) string {
	switch {
	case n == 1:
	case len(more) > 0:
		one = more[0]
	default:
		one += "s"
	}
	return fmt.Sprintf("%d %s", n, one)
}
