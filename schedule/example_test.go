package schedule_test

import (
	"fmt"

	"github.com/godwit-ps/godwit/schedule"
)

// Two nodes lease chunks in bulk, each from its own half of the epoch.
func ExamplePool() {
	pool := schedule.NewPool(schedule.Plan{Chunks: 16, Epochs: 1, Workers: []int{1, 1}})
	for i := range 3 {
		leases, _, err := pool.Ask(i%2, schedule.Report{})
		fmt.Printf("node %d gets %v %v\n", i%2, leases, err)
	}
	// Output:
	// node 0 gets [{1 {0 4} 0}] <nil>
	// node 1 gets [{1 {8 10} 0}] <nil>
	// node 0 gets [] <nil>
}
