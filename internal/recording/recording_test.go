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

// In the first seconds of a run there are new keys in each sample, and few to look at.
func TestTheFirstSamplesHaveACensusEach(t *testing.T) {
	for sample := range 3 * censusEvery {
		if want := sample < censusEvery || sample == censusEvery || sample == 2*censusEvery; counts(sample) != want {
			t.Errorf("sample %d has a census: %v, want %v", sample, counts(sample), want)
		}
	}
}
