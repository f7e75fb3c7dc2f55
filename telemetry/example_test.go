package telemetry_test

import (
	"fmt"

	"github.com/godwit-ps/godwit/telemetry"
)

// Of 25 rows that came for replicas, 5 were overwritten before anybody accessed them.
func Example() {
	s := telemetry.Snapshot{Waste: telemetry.Waste{Refreshes: 25, Unread: 5}}
	fmt.Printf("%.0f %% of refreshes were in vain\n", 100*float64(s.Waste.Unread)/float64(s.Waste.Refreshes))
	// Output: 20 % of refreshes were in vain
}
