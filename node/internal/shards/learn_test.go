package shards

import (
	"testing"

	"github.com/godwit-ps/godwit"
)

// Of a call of many keys a shard hears of some, of others the next time, and of each in turn.
func TestOfLargeCallsEachKeyIsNoticedInTurn(t *testing.T) {
	s := setOf(t, 2, godwit.Table{Name: "t", Rows: 4000, Dim: 1, Relaxed: true})
	_, out := senderOf(s)
	var keys []godwit.Key
	var positions []int
	for k := godwit.Key(0); len(keys) < 10*samples; k++ {
		if s.proto.Homes.Home(k) != s.proto.Self {
			positions = append(positions, len(keys), len(keys))
			keys = append(keys, k)
		}
	}
	teacher := s.Teacher(2)
	stride := 1 + len(keys)/(samples+1)
	calls := 0
	for ; s.Totals().Learned == 0; calls++ {
		teacher.Missed(out, keys, positions, false)
	}
	if calls < 2*stride || calls > 3*stride {
		t.Errorf("the first copy is asked for after %d calls, of which each tells of one key in %d", calls, stride)
	}
	if got := s.Totals().Learned; got > samples+1 {
		t.Errorf("a call tells of %d keys", got)
	}
	for range stride {
		teacher.Missed(out, keys, positions, false)
	}
	if got := s.Totals().Learned; got != uint64(len(keys)) {
		t.Errorf("%d of %d keys that were asked for as often were noticed", got, len(keys))
	}
}

// What a key costs in a message of its own counts for many in a large one.
func TestAKeyInAMessageOfItsOwnIsNoticedSooner(t *testing.T) {
	s := setOf(t, 2, godwit.Table{Name: "t", Rows: 4000, Dim: 1, Relaxed: true})
	_, out := senderOf(s)
	far := godwit.Key(0)
	for s.proto.Homes.Home(far) == s.proto.Self {
		far++
	}
	teacher := s.Teacher(2)
	for range 3 {
		teacher.Missed(out, []godwit.Key{far}, []int{0, 0}, true)
	}
	if got := s.Totals().Learned; got != 1 {
		t.Errorf("%d copies of a key that was pushed to three times", got)
	}
}
