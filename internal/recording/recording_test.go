package recording

import (
	"testing"
	"time"

	"github.com/godwit-ps/godwit/telemetry/record"
)

// Samples whose time is before that of the one before are none, so the clock of the machine does not count.
func TestTheTimesOfSamplesDoNotFollowAClockThatIsSetBack(t *testing.T) {
	begin := time.Now()
	r := &Node{begin: begin, header: record.Header{Start: begin.Add(time.Hour).UnixNano()}} // as if it had been set back by an hour
	if age := r.age(); age < 0 || age > int64(time.Hour) {
		t.Errorf("a record that has just begun is %v old", time.Duration(age))
	}
}
