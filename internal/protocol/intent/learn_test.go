package intent

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/godwit-ps/godwit"
)

// Of many keys, those that are used most are noticed, in bounded memory, whatever else is used
// once.
func TestKeysThatAreUsedMostAreNoticedAmongManyOthers(t *testing.T) {
	seed := max(*seedFlag, 1)
	rng := rand.New(rand.NewPCG(seed, 5))
	var l Learner
	wished, rare := map[godwit.Key]bool{}, 0
	for range 500_000 {
		k := godwit.Key(rng.IntN(100))
		if rng.IntN(3) > 0 {
			k = godwit.Key(1000 + rng.IntN(10_000_000)) // hardly ever twice
		}
		if wished[k] {
			continue
		}
		if l.Missed(k, rng.IntN(2) == 0, true, 1, 8) == Copy {
			l.Wish(k)
			if wished[k] = true; k >= 1000 {
				rare++
			}
		}
	}
	if len(wished)-rare != 100 || rare > 5 {
		t.Errorf("-seed %d: of 100 frequent keys %d were noticed, and %d others", seed, len(wished)-rare, rare)
	}
	if len(l.traces) > maxTraces {
		t.Errorf("%d traces, at most %d were promised", len(l.traces), maxTraces)
	}
	few := Learner{Most: 64}
	for range 10_000 {
		few.Missed(godwit.Key(rng.IntN(1_000_000)), false, true, 1, 8)
	}
	if len(few.traces) != few.Most {
		t.Errorf("-seed %d: %d traces of many keys, want the %d that are allowed", seed, len(few.traces), few.Most)
	}
	if l.Wishes() != len(wished) {
		t.Errorf("%d wishes, %d were begun", l.Wishes(), len(wished))
	}
}

func TestACheapPushEarnsNoCopyAndADearOneDoesSooner(t *testing.T) {
	times := func(push bool, cost uint32) (n int) {
		var l Learner
		for n = 1; n < 1000 && l.Missed(7, push, true, 1, cost) != Copy; n++ {
		}
		return n
	}
	if got := times(true, leastCost-1); got != 1000 {
		t.Errorf("pushes that cost %d earn a copy after %d", leastCost-1, got)
	}
	if got := times(true, leastCost); got == 1000 {
		t.Errorf("no push that costs %d earns a copy", leastCost)
	}
	cheap, dear := times(false, 1), times(false, 100)
	if cheap != copyCost || dear != again {
		t.Errorf("pulls earn a copy after %d and %d, want %d and %d", cheap, dear, copyCost, again)
	}
}

func weigh(l *Learner, k godwit.Key, saved uint32, records int) bool {
	x := l.Worth(k, saved, records)
	l.Weigh(k, &x)
	return x.Goes()
}

func TestACreditEndsAndIsRenewedByUse(t *testing.T) {
	var l Learner
	l.Wish(1)
	for range firstCredit / roundCost {
		if !weigh(&l, 1, 0, 1) {
			t.Fatal("the first credit is shorter than was said")
		}
	}
	if weigh(&l, 1, 0, 1) {
		t.Error("a copy that nobody uses goes on")
	}
	l.End(1)
	if l.Has(1) || l.find(1).patience != 1 {
		t.Errorf("after its end there is a wish: %v, trace %+v", l.Has(1), l.find(1))
	}
	l.Wish(2)
	for range 1000 {
		if !weigh(&l, 2, 4, 2) {
			t.Fatal("a copy that is used as often as it is worth ends")
		}
	}
	l.End(2)
	if l.find(2) != nil {
		t.Errorf("a copy that was worth it left %+v", l.find(2))
	}
}

func TestANodeWinsWhatItChangesMost(t *testing.T) {
	for _, x := range []struct {
		since, present godwit.Version
		pushes         uint64
		want           bool
	}{
		{0, 8, 8, false},  // no version is known
		{5, 13, 8, true},  // all changes
		{5, 15, 8, true},  // but two
		{5, 16, 8, false}, // but three
		{5, 9, 4, false},  // too few to tell
		{5, 10, 90, true}, // more than there were: some are under way
		{5, 4, 90, false}, // an older row
		{1, 201, 160, true},
		{1, 202, 160, false},
	} {
		if got := Wins(x.since, x.present, x.pushes); got != x.want {
			t.Errorf("%d of the changes from version %d to %d: wins %v, want %v", x.pushes, x.since, x.present, got, x.want)
		}
	}
}

func TestABidAsksForTheVersionFirstAndRareBidsFollow(t *testing.T) {
	var l Learner
	bids, gap, gaps := 0, 0, []int{}
	for i := range 4000 {
		gap++
		if l.Missed(3, i%2 == 1, false, 1, 1) != Bid {
			continue
		}
		since, pushes := l.TakeBid(3)
		if (since == 0) != (bids == 0) {
			t.Errorf("bid %d is since version %d", bids, since)
		}
		if l.Missed(3, true, false, 1, 1) == Bid {
			t.Error("there are two bids at once")
		}
		if !l.BidAnswered(3, godwit.Version(10+i)) || l.BidAnswered(3, 1) {
			t.Error("a bid has one answer")
		}
		if bids > 0 && pushes < leastBid {
			t.Errorf("bid %d is of %d pushes", bids, pushes)
		}
		bids++
		gaps, gap = append(gaps, gap), 0
	}
	for i := 2; i < len(gaps); i++ {
		if gaps[i] < 2*gaps[i-1]-2 {
			t.Errorf("bids in vain come after %v accesses", gaps)
		}
	}
	if bids < 4 || bids > 12 {
		t.Errorf("%d bids in 4000 accesses", bids)
	}
	// An answer that does not come is not waited for for ever.
	l.TakeBid(3)
	for i := 0; l.Missed(3, i%2 == 1, false, 1, 1) != Bid; i++ {
		if i > 1<<20 {
			t.Fatal("a bid that was lost is the last one")
		}
	}
}

// The oldest wish is each in turn, whatever began and ended meanwhile.
func TestTheOldestWishIsEachInTurn(t *testing.T) {
	seed := max(*seedFlag, 1)
	rng := rand.New(rand.NewPCG(seed, 6))
	var l Learner
	for i := range 2000 {
		if k := godwit.Key(rng.IntN(300)); l.Has(k) {
			l.End(k)
		} else {
			l.Wish(k)
		}
		if i%100 != 99 {
			continue
		}
		l.hand = len(l.order) // begins anew
		seen := map[godwit.Key]bool{}
		for range l.Wishes() {
			seen[l.Oldest()] = true
		}
		if len(seen) != l.Wishes() {
			t.Fatalf("-seed %d: %d wishes were looked at in a turn, there are %d", seed, len(seen), l.Wishes())
		}
		if len(l.order) > 3*l.Wishes()+2*firstTraces {
			t.Fatalf("-seed %d: the order of %d wishes has %d entries", seed, l.Wishes(), len(l.order))
		}
	}
}

// Wishes that begin and end do not have those looked at again that were looked at last.
func TestWhichWishIsOldestOutlastsOthers(t *testing.T) {
	var l Learner
	for k := range godwit.Key(100) {
		l.Wish(k)
	}
	for i := range godwit.Key(250) {
		for range 3 {
			l.Wish(1000)
			l.End(1000)
		}
		if k := l.Oldest(); k != i%100 {
			t.Fatalf("key %d is looked at, want %d", k, i%100)
		}
	}
}

// What an access costs is known of a key, too, for whose copy there was no room in very many of them.
func TestWhatAnAccessCostsIsKnownOfVeryMany(t *testing.T) {
	var l Learner
	for i := range 1 << 18 {
		if advice := l.Missed(5, false, true, 1, 33); i > 2 && advice != Copy {
			t.Fatalf("access %d earns %v, want a copy", i, advice)
		}
		if i+1 < 1<<16-2 || i > 1<<16+2 && i != 1<<18-1 {
			continue
		}
		x := l
		x.traces = slices.Clone(l.traces)
		x.Wish(5)
		if w := x.Worth(5, 1, 0); w.Saves != 33 {
			t.Fatalf("after %d accesses, one costs %d, want 33", i+1, w.Saves)
		}
	}
}

// Wishes that begin and end take no more memory with time: neither their order, nor the traces of what was wished for.
func TestWishesThatComeAndGoTakeNoMoreMemory(t *testing.T) {
	var l Learner
	for k := range godwit.Key(10_000) {
		for l.Missed(k, false, true, 1, 100) != Copy {
		}
		l.Wish(k)
		l.End(k)
	}
	if len(l.traces) > 2*firstTraces || cap(l.order) > 8*firstTraces {
		t.Errorf("no wish is left, and there is room for %d traces and an order of %d", len(l.traces), cap(l.order))
	}
}

// The room for traces follows how many there are.
func TestTheRoomForTracesIsAFewTimesAsMany(t *testing.T) {
	var l Learner
	for k := range godwit.Key(100) {
		l.Missed(k, false, true, 1, 1)
		if n := int(k) + 1; len(l.traces) > max(firstTraces, 3*n) {
			t.Fatalf("there is room for %d traces of %d keys", len(l.traces), n)
		}
	}
}

func TestACopyThatWasWorthItEarnsTheNextOneSooner(t *testing.T) {
	var l Learner
	for range 2 {
		l.Wish(1)
		weigh(&l, 1, 0, firstCredit)
		l.End(1)
	}
	if got := l.find(1).patience; got != 2 {
		t.Fatalf("after two copies that were not worth it the patience is %d", got)
	}
	for want := range []uint8{1, 0} {
		l.Wish(1)
		l.End(1)
		got := uint8(0)
		if x := l.find(1); x != nil {
			got = x.patience
		}
		if got != uint8(1-want) {
			t.Errorf("after copies that were worth it the patience is %d, want %d", got, 1-want)
		}
	}
}

// The most that a copy may have saved counts like enough.
func TestACopyThatSavedVeryManyAccessesGoesOn(t *testing.T) {
	for _, saved := range []uint32{mostCredit, 1 << 29, 1<<32 - 1} {
		if x := (Worth{Saves: 8, Saved: saved, Records: 1}); !x.Goes() {
			t.Errorf("a copy ends that saved %d accesses", saved)
		}
	}
}

// A node that forgets a part of its pushes must not say how many it made since a version that it had before.
func TestABidCountsAllPushesSinceItsVersion(t *testing.T) {
	var l Learner
	pushes := uint64(0)
	for l.Missed(3, false, false, 1, 1) != Bid { // it reads and pushes in turn
		l.Missed(3, true, false, 1, 1)
	}
	l.TakeBid(3)
	l.BidAnswered(3, 10)
	for range 1 << 16 {
		l.Missed(3, true, false, 1, 1)
		pushes++
	}
	for l.Missed(3, false, false, 1, 1) != Bid {
	}
	if since, n := l.TakeBid(3); since != 0 && n != pushes {
		t.Errorf("the bid says %d pushes since version %d, there were %d", n, since, pushes)
	}
}

// A key keeps its trace while other keys of its set come, for the longer the more its accesses cost; then the least gives way.
func TestAKeyThatCostMoreKeepsItsTraceForLonger(t *testing.T) {
	l := Learner{Most: firstTraces}
	l.Missed(0, false, true, 1, 64)
	same := []godwit.Key{0}
	for k := godwit.Key(1); len(same) < ways+1; k++ {
		if &l.set(k)[0] == &l.set(0)[0] {
			same = append(same, k)
		}
	}
	for i, k := range same[1:ways] {
		cost := uint32(64)
		if i == 1 {
			cost = leastCost
		}
		l.Missed(k, false, true, 1, cost)
	}
	least, other := same[2], same[ways]
	for tries := bits.Len32(leastCost); tries > 0; tries-- {
		if l.Missed(other, false, true, 1, 64); l.find(other) != nil || l.find(least) == nil {
			t.Fatalf("%d tries early, the least trace gave way", tries)
		}
	}
	l.Missed(other, false, true, 1, 64)
	for _, k := range same {
		if got := l.find(k) != nil; got != (k != least) {
			t.Errorf("key %d has a trace: %v; the least is that of key %d", k, got, least)
		}
	}
}

func TestTracesOutlastTheGrowthOfTheirTable(t *testing.T) {
	var l Learner
	for n := godwit.Key(0); n < firstTraces; n++ { // those of a set that is full go, with the least at first
		l.Missed(n, false, true, 1, 8)
		if n > 2 {
			continue
		}
		l.Missed(n, true, true, 1, 1<<10)
	}
	if len(l.traces) == firstTraces {
		t.Fatal("it did not grow")
	}
	used := 0
	for _, x := range l.traces {
		if x.key != 0 {
			used++
		}
	}
	if l.used != used {
		t.Errorf("%d traces are counted, and there are %d", l.used, used)
	}
	for k := range godwit.Key(3) {
		if x := l.find(k); x == nil || x.cost != 8+1<<10 || x.pulls != 1 || x.pushes != 1 {
			t.Errorf("key %d: %+v", k, x)
		}
	}
}

func TestAWishSavesWhatAnAccessCost(t *testing.T) {
	var l Learner
	l.Missed(1, false, true, 3, 10)
	l.Missed(1, true, true, 1, 30)
	l.Wish(1)
	if x := l.Worth(1, 0, 0); x.Saves != 15 {
		t.Errorf("four accesses that cost 60: a copy saves %d an access", x.Saves)
	}
	for _, c := range []struct {
		saved uint32
		goes  bool
	}{{0, false}, {1, true}} {
		if x := (Worth{Credit: -5, Saved: c.saved, Needed: true}); x.Goes() != c.goes {
			t.Errorf("a copy whose place is needed and that saved %d accesses goes on: %v", c.saved, x.Goes())
		}
	}
}
