package store

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/godwit-ps/godwit"
)

var seedFlag = flag.Uint64("seed", 0, "run the random test of this seed only")

// twin is the obvious store: a map from keys to rows.
type twin struct {
	rows   map[godwit.Key]*twinRow
	spares []*twinRow
}

type twinRow struct {
	ref    Ref
	class  int
	head   Header
	floats []float32
}

func TestAStoreIsAMapWhateverIsInsertedAndRemoved(t *testing.T) { eachSeed(t, 200, random) }

// eachSeed runs a test of n seeds, or of the one that -seed says.
func eachSeed(t *testing.T, n int, test func(seed uint64) error) {
	t.Helper()
	first := uint64(1)
	if *seedFlag != 0 {
		first, n = *seedFlag, 1
	}
	for i := range n {
		seed := first + uint64(i)
		if err := test(seed); err != nil {
			t.Fatalf("-seed %d: %v", seed, err)
		}
	}
}

func random(seed uint64) error {
	rng := rand.New(rand.NewPCG(seed, 2))
	lens := []int{1, 2, 7, 16, 100}[:1+rng.IntN(5)]
	if rng.IntN(4) == 0 { // the name of a row has a bit more for the class, and so on
		for len(lens) < 1+rng.IntN(MaxClasses) {
			lens = append(lens, 1+rng.IntN(10))
		}
	}
	s, err := New(lens, HeapAlloc)
	if err != nil {
		return err
	}
	s.Expect([]int{0, 3, 100, 1000}[rng.IntN(4)])
	m := twin{rows: map[godwit.Key]*twinRow{}}
	// Few keys or many, next to each other or far apart, as a shard has them.
	space, stride := 4<<rng.IntN(9), godwit.Key(1)<<rng.IntN(20)
	for range 3000 {
		k := godwit.Key(rng.IntN(space)) * stride
		x := m.rows[k]
		ref, ok := s.Find(k)
		if ok != (x != nil) || ok && ref != x.ref {
			return fmt.Errorf("key %d is found as %v, %v", k, ref, ok)
		}
		if ok && rng.IntN(4) == 0 {
			if ref, made := s.Ensure(k, x.class); made || ref != x.ref {
				return fmt.Errorf("key %d, which is here, was made: %v, %v", k, ref, made)
			}
		}
		switch op := rng.IntN(10); {
		case op < 5 && x == nil:
			c := rng.IntN(len(lens))
			x = &twinRow{class: c}
			if made := true; rng.IntN(2) == 0 {
				x.ref = s.Insert(k, c)
			} else if x.ref, made = s.Ensure(k, c); !made {
				return fmt.Errorf("key %d was here before it was made", k)
			}
			if *s.Header(x.ref) != (Header{Key: k}) {
				return fmt.Errorf("a new row has the header %+v", *s.Header(x.ref))
			}
			m.rows[k] = x
			x.fill(s, rng)
		case op < 8 && x != nil:
			s.Remove(k)
			delete(m.rows, k)
		case op == 8:
			c := rng.IntN(len(lens))
			x := &twinRow{ref: s.Spare(c), class: c}
			x.fill(s, rng)
			m.spares = append(m.spares, x)
		case op == 9 && len(m.spares) > 0:
			i := rng.IntN(len(m.spares))
			s.Free(m.spares[i].ref)
			m.spares = slices.Delete(m.spares, i, i+1)
		}
	}
	return m.compare(s)
}

// fill writes something that tells the row from every other.
func (x *twinRow) fill(s *Store, rng *rand.Rand) {
	h := s.Header(x.ref)
	h.Version, h.Epoch, h.Meta = godwit.Version(rng.Uint64()), godwit.Epoch(rng.Uint32()), rng.Uint32()
	f := s.Floats(x.ref)
	for i := range f {
		f[i] = rng.Float32()
	}
	x.head, x.floats = *h, slices.Clone(f)
}

func (m *twin) compare(s *Store) error {
	if s.Len() != len(m.rows) {
		return fmt.Errorf("%d keys, want %d", s.Len(), len(m.rows))
	}
	check := func(x *twinRow) error {
		switch {
		case s.ClassOf(x.ref) != x.class:
			return fmt.Errorf("a row of class %d says class %d", x.class, s.ClassOf(x.ref))
		case *s.Header(x.ref) != x.head:
			return fmt.Errorf("a header is %+v, was %+v", *s.Header(x.ref), x.head)
		case !slices.Equal(s.Floats(x.ref), x.floats):
			return fmt.Errorf("a row is %v, was %v", s.Floats(x.ref), x.floats)
		case uintptr(unsafe.Pointer(s.Header(x.ref)))%8 != 0:
			return fmt.Errorf("a header at %p", s.Header(x.ref))
		}
		return nil
	}
	for k, x := range m.rows {
		if ref, ok := s.Find(k); !ok || ref != x.ref {
			return fmt.Errorf("key %d is lost", k)
		}
		if err := check(x); err != nil {
			return fmt.Errorf("key %d: %w", k, err)
		}
	}
	for _, x := range m.spares {
		if err := check(x); err != nil {
			return fmt.Errorf("a spare row: %w", err)
		}
	}
	seen := map[godwit.Key]bool{}
	s.Each(func(r Ref) { seen[s.Header(r).Key] = true })
	if len(seen) != len(m.rows) {
		return fmt.Errorf("Each shows %d keys of %d", len(seen), len(m.rows))
	}
	return nil
}

// Removals close gaps in the index; where the end of a line joins its beginning that is
// easy to get wrong, so all orders of few keys in the smallest index are tried.
func TestRemovalsKeepOtherKeysWhereALineWrapsAround(t *testing.T) {
	// Two keys of each of the last and first places of the index.
	places := map[uint64][]godwit.Key{}
	for k := godwit.Key(0); len(places[15]) < 3 || len(places[14]) < 2 || len(places[0]) < 2; k++ {
		p := hash(k) >> 60
		places[p] = append(places[p], k)
	}
	keys := append(append(places[15][:3:3], places[14][:2]...), places[0][0])
	for order := range 720 {
		s, err := New([]int{1}, HeapAlloc)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(s.index); n != 16 {
			t.Fatalf("the smallest index has %d places, the test is made for 16", n)
		}
		ks := permute(keys, order)
		for _, k := range ks {
			s.Insert(k, 0)
		}
		for i, gone := range permute(keys, order*7%720) {
			s.Remove(gone)
			for _, k := range keys {
				_, ok := s.Find(k)
				removed := slices.Contains(permute(keys, order*7%720)[:i+1], k)
				if ok == removed {
					t.Fatalf("order %d: after removing %d, key %d is found %v", order, gone, k, ok)
				}
			}
		}
	}
}

// A line that is full sends searches into the next one, and the last line into the first.
func TestRemovalsKeepOtherKeysWhereSearchesLeaveTheirLines(t *testing.T) {
	far := 0
	eachSeed(t, 60, func(seed uint64) error {
		n, err := crowded(seed)
		far += n
		return err
	})
	if far == 0 && *seedFlag == 0 {
		t.Error("no key was ever two lines away from its own")
	}
}

// crowded inserts and removes keys most of which begin in one line, and returns how often one was two lines away from its own.
func crowded(seed uint64) (far int, err error) {
	rng := rand.New(rand.NewPCG(seed, 4))
	s, err := New([]int{1}, HeapAlloc)
	if err != nil {
		return far, err
	}
	s.Expect(51) // four lines
	// Keys that just fill a line, or more, begin in one line, and some in the next two.
	var keys []godwit.Key
	home, some, many := rng.IntN(4), rng.IntN(5), []int{16, 17, 30, 51}[rng.IntN(4)]
	for k := godwit.Key(rng.Uint32()); len(keys) < many; k++ {
		line := place(64, hash(k)) / linePlaces
		if after := (line + 4 - home) % 4; after == 0 || after < 3 && rng.IntN(4) < some {
			keys = append(keys, k)
		}
	}
	here := map[godwit.Key]bool{}
	for op := range 400 {
		if op%20 == 0 {
			for _, i := range rng.Perm(len(keys)) {
				if k := keys[i]; !here[k] {
					s.Insert(k, 0)
					here[k] = true
				}
			}
		}
		k := keys[rng.IntN(len(keys))]
		if here[k] {
			s.Remove(k)
		} else {
			s.Insert(k, 0)
		}
		here[k] = !here[k]
		if len(s.index) == 64 {
			far += beyondNext(s)
		}
		for _, k := range keys {
			if _, ok := s.Find(k); ok != here[k] {
				return far, fmt.Errorf("key %d is found: %v, and is here: %v", k, ok, here[k])
			}
			if h := s.Finder().Look(k); here[k] && (h == nil || h.Key != k) && !sharesTag(k, keys) {
				return far, fmt.Errorf("the finder does not find key %d, which is here", k)
			}
		}
	}
	for k, is := range here {
		if is {
			s.Remove(k)
		}
	}
	if i := slices.IndexFunc(s.index, func(e uint32) bool { return e != empty }); i >= 0 {
		return far, fmt.Errorf("after all keys were removed, place %d of the index is not empty", i)
	}
	return far, nil
}

// beyondNext returns how many keys are farther away than in the line after their own.
func beyondNext(s *Store) (n int) {
	for i, e := range s.index {
		if e != empty && (i/linePlaces-s.own(i)/linePlaces+4)%4 > 1 {
			n++
		}
	}
	return n
}

// sharesTag reports whether a finder may take another key for this one.
func sharesTag(k godwit.Key, keys []godwit.Key) bool {
	return slices.ContainsFunc(keys, func(other godwit.Key) bool { return other != k && tagOf(hash(other)) == tagOf(hash(k)) })
}

// A key that is in another line than where its search begins costs another trip to memory. Of an index that is as full
// as it gets, that may be few keys.
func TestMostSearchesStayInTheirLine(t *testing.T) {
	s, err := New([]int{1}, HeapAlloc)
	if err != nil {
		t.Fatal(err)
	}
	const keys = 20_000
	s.Expect(keys)
	rng := rand.New(rand.NewPCG(1, 5))
	for range keys {
		s.Insert(godwit.Key(rng.Uint64()), 0)
	}
	if 100*keys < 79*len(s.index) {
		t.Fatalf("%d keys in an index of %d places, the test is made for a full one", keys, len(s.index))
	}
	away := 0
	for i, e := range s.index {
		if e != empty && i/linePlaces != s.own(i)/linePlaces {
			away++
		}
	}
	if away > keys*5/100 {
		t.Errorf("%d of %d keys are not in the line where their search begins, want 5 %% at the most", away, keys)
	}
	t.Logf("%.1f %% of the keys are not in the line where their search begins", 100*float64(away)/keys)
}

// permute returns the n-th order of six keys.
func permute(keys []godwit.Key, n int) []godwit.Key {
	rest := slices.Clone(keys)
	var out []godwit.Key
	for len(rest) > 0 {
		i := n % len(rest)
		n /= len(rest)
		out = append(out, rest[i])
		rest = slices.Delete(rest, i, i+1)
	}
	return out
}

func TestMemoryIsUsedAgainAndAccountedFor(t *testing.T) {
	given := 0
	s, err := New([]int{4, 100}, func(n int) []byte { given += n; return HeapAlloc(n) })
	if err != nil {
		t.Fatal(err)
	}
	cycle := func() {
		for k := godwit.Key(0); k < 1000; k++ {
			s.Insert(k, int(k%2))
		}
		sub := s.Spare(1)
		for k := godwit.Key(0); k < 1000; k++ {
			s.Remove(k)
		}
		s.Free(sub)
	}
	cycle()
	bytes := s.Bytes()
	for range 20 {
		cycle()
	}
	if s.Bytes() != bytes {
		t.Errorf("the same keys took %d bytes at first and %d later", bytes, s.Bytes())
	}
	if s.Bytes() < given || s.Bytes() > given+given/4 {
		t.Errorf("the store says it takes %d bytes, it was given %d for rows", s.Bytes(), given)
	}
	if min := 500*(24+16) + 500*(24+400); given < min || given > min+min/4 {
		t.Errorf("1000 keys took %d bytes of rows, want little more than %d", given, min)
	}
}

func TestAnIndexGrowsOnceForMostOfTheKeysThatAreExpected(t *testing.T) {
	const keys = 10_000
	s, err := New([]int{1}, HeapAlloc)
	if err != nil {
		t.Fatal(err)
	}
	s.Expect(keys)
	var grew []int // at how many rows
	insert := func(from, to int) {
		for k := from; k < to; k++ {
			n := len(s.index)
			s.Insert(godwit.Key(k), 0)
			if len(s.index) != n {
				grew = append(grew, k)
			}
		}
	}
	insert(0, keys)
	if last := grew[len(grew)-1]; last < keys/8 || last > keys/2 {
		t.Errorf("the index grew at %v rows, want it for the last time when an eighth of %d was there", grew, keys)
	}
	if load := float64(s.Len()) / float64(len(s.index)); load < 0.79 {
		t.Errorf("with all keys that were expected the index is full to %.2f, want 0.8", load)
	}
	insert(keys, 2*keys)
	if load := float64(s.Len()) / float64(len(s.index)); load < 0.63 || load > 0.81 {
		t.Errorf("with twice the keys that were expected the index is full to %.2f, want 0.64 to 0.8", load)
	}
}

// A store asks its Alloc for no larger piece than its index for the keys that are expected, which IndexBytes tells before.
func TestTheLargestPieceIsKnownBefore(t *testing.T) {
	for _, keys := range []int{5000, 20_000} {
		largest := 0
		s, err := New([]int{1}, func(n int) []byte { largest = max(largest, n); return HeapAlloc(n) })
		if err != nil {
			t.Fatal(err)
		}
		s.Expect(keys)
		for k := range 2 * keys {
			s.Insert(godwit.Key(k), 0)
		}
		if largest != IndexBytes(keys) {
			t.Errorf("of %d keys, a piece has %d bytes, want %d", keys, largest, IndexBytes(keys))
		}
	}
	if n := IndexBytes(1 << 40); n != 0 {
		t.Errorf("an index of which an eighth will never be used has %d bytes", n)
	}
}

// BenchmarkFill makes the rows that a shard has of 100 million of 4 floats. A
// plain loop writes as much memory.
func BenchmarkFill(b *testing.B) {
	const rows, shards = 195_000, 512
	for _, c := range []struct {
		name    string
		expects int
	}{{"expected", rows}, {"unexpected", 0}} {
		b.Run(c.name, func(b *testing.B) {
			var took, plain time.Duration
			worst := time.Duration(math.MaxInt64) // of the run that was disturbed least
			for range b.N {
				s, err := New([]int{4}, HeapAlloc)
				if err != nil {
					b.Fatal(err)
				}
				s.Expect(c.expects)
				longest := time.Duration(0)
				began := time.Now()
				at := began
				for k := range rows {
					r := s.Insert(godwit.Key(k*shards), 0)
					clear(s.Floats(r))
					now := time.Now()
					longest = max(longest, now.Sub(at))
					at = now
				}
				took += at.Sub(began)
				worst = min(worst, longest)
				began = time.Now()
				m := make([]uint64, s.Bytes()/8)
				for i := range m {
					m[i] = 1
				}
				plain += time.Since(began)
			}
			b.ReportMetric(float64(took.Nanoseconds())/float64(b.N*rows), "ns/row")
			b.ReportMetric(float64(took)/float64(plain), "×plain-loop")
			b.ReportMetric(float64(worst.Microseconds()), "µs-longest")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// The fewer lengths rows have, the more rows of each there may be.
func TestAStoreHasRoomForAsManyRowsAsItSays(t *testing.T) {
	for classes, want := range map[int]int{1: 1<<25 - 1, 2: 1<<24 - 1, 3: 1<<23 - 1, MaxClasses: 1<<20 - 1} {
		s, err := New(make([]int, classes), HeapAlloc)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.MaxRows(); got != want {
			t.Errorf("a store with %d row lengths has room for %d rows of each, want %d", classes, got, want)
		}
		last := classes - 1
		s.rowBits -= 15 // as if there were less
		s.finder.first.rowBits -= 15
		var told []int
		s.Full = func(rows, _ int) { told = append(told, rows) }
		for k := range s.MaxRows() {
			s.Insert(godwit.Key(k), last)
		}
		if want := s.MaxRows() - s.MaxRows()/lastRows; !slices.Equal(told, []int{want}) {
			t.Errorf("a store with room for %d rows said that it was nearly full at %v, want %d", s.MaxRows(), told, want)
		}
		missed := 0
		for k := range s.MaxRows() {
			r, ok := s.Find(godwit.Key(k))
			if !ok || s.ClassOf(r) != last {
				t.Errorf("of a full store with %d row lengths, key %d is %d, %v", classes, k, r, ok)
			}
			if h := s.finder.Look(godwit.Key(k)); h == nil {
				t.Errorf("of a full store with %d row lengths, nothing is found for key %d", classes, k)
			} else if h != s.Header(r) {
				missed++ // that of another key with the same tag
			}
		}
		if missed > s.MaxRows()/20 {
			t.Errorf("of a full store with %d row lengths, the rows of %d of %d keys are not found", classes, missed, s.MaxRows())
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("a store with %d row lengths takes more than its %d rows of one", classes, s.MaxRows())
				}
			}()
			s.Spare(last)
		}()
	}
}

func TestTooManyRowLengthsAreRefused(t *testing.T) {
	if _, err := New(make([]int, MaxClasses+1), HeapAlloc); err == nil {
		t.Errorf("%d row lengths were accepted, an entry has room for %d", MaxClasses+1, MaxClasses)
	}
}

// BenchmarkRead compares reading random rows of a million through the index
// with reading them from one slice by position.
func BenchmarkRead(b *testing.B) {
	const rows, shards = 1 << 20, 64
	for _, dim := range []int{10, 100} {
		order := make([]uint32, 1<<16)
		rng := rand.New(rand.NewPCG(1, uint64(dim)))
		for i := range order {
			order[i] = uint32(rng.IntN(rows))
		}
		dst := make([]float32, dim)
		b.Run(fmt.Sprintf("dim=%d/slice", dim), func(b *testing.B) {
			flat := make([]float32, rows*dim)
			b.SetBytes(int64(4 * dim))
			b.ResetTimer()
			for i := range b.N {
				k := int(order[i&(len(order)-1)])
				copy(dst, flat[k*dim:(k+1)*dim])
			}
		})
		b.Run(fmt.Sprintf("dim=%d/store", dim), func(b *testing.B) {
			stores := make([]*Store, shards)
			for i := range stores {
				stores[i], _ = New([]int{dim}, HeapAlloc)
			}
			for k := range rows {
				stores[k%shards].Insert(godwit.Key(k), 0)
			}
			b.SetBytes(int64(4 * dim))
			b.ResetTimer()
			for i := range b.N {
				k := order[i&(len(order)-1)]
				s := stores[k%shards]
				if r, ok := s.Find(godwit.Key(k)); ok {
					copy(dst, s.Floats(r))
				}
			}
		})
	}
}

// BenchmarkFind looks keys of one shard up that are in the cache.
func BenchmarkFind(b *testing.B) {
	const keys, shards = 1000, 1024
	s, err := New([]int{10}, HeapAlloc)
	if err != nil {
		b.Fatal(err)
	}
	for k := range keys {
		s.Insert(godwit.Key(k*shards), 0)
	}
	for _, c := range []struct {
		name  string
		first int
	}{{"here", 0}, {"absent", keys}} {
		b.Run(c.name, func(b *testing.B) {
			found := 0
			k := 0
			for range b.N {
				if _, ok := s.Find(godwit.Key((c.first + k) * shards)); ok {
					found++
				}
				if k++; k == keys {
					k = 0
				}
			}
			if (found > 0) != (c.first == 0) {
				b.Fatalf("%d keys were found", found)
			}
		})
	}
}

// A group finds what finders find, of keys that are here and of others, however many.
func TestAGroupFindsWhatFindersFind(t *testing.T) {
	seeds := []uint64{1, 2, 3, 4, 5, 6, 7, 8}
	if *seedFlag != 0 {
		seeds = []uint64{*seedFlag}
	}
	for _, seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 3))
		stores := make([]*Store, 3)
		for i := range stores {
			s, err := New([]int{3, 40}, HeapAlloc)
			if err != nil {
				t.Fatal(err)
			}
			for k := range godwit.Key(rng.IntN(2000)) {
				s.Insert(k*3, int(k%2))
			}
			stores[i] = s
		}
		var g Group
		for range 500 {
			keys := make([]godwit.Key, rng.IntN(GroupKeys+1))
			for i := range keys {
				keys[i] = godwit.Key(rng.IntN(6000))
				g.Finders[i] = stores[rng.IntN(len(stores))].Finder()
			}
			g.PrefetchIndex(keys)
			g.Look(keys)
			PrefetchEach(g.Rows[:len(keys)], 40)
			for i, k := range keys {
				if want := g.Finders[i].Look(k); g.Rows[i] != want {
					t.Fatalf("seed %d: key %d is at %p, by its store's finder at %p", seed, k, g.Rows[i], want)
				}
			}
		}
	}
}

// Look may be called while rows come and go. What it finds must be a row of
// this store; and of a key that is there all the time, that key's, but for the
// moments in which the index is changed near it.
func TestLookGoesOnWhileTheStoreChanges(t *testing.T) {
	s, err := New([]int{3, 40}, HeapAlloc)
	if err != nil {
		t.Fatal(err)
	}
	const stay = 200
	at, f := map[godwit.Key]*Header{}, s.Finder()
	g, all := new(Group), make([]godwit.Key, GroupKeys)
	for i := range all {
		all[i], g.Finders[i] = godwit.Key(i), f
	}
	for k := range godwit.Key(stay) {
		at[k] = s.Header(s.Insert(k, int(k%2)))
	}
	done := make(chan struct{})
	found := make(chan int)
	go func() {
		n := 0
		for {
			for k := range godwit.Key(2 * stay) {
				f.PrefetchIndex(k)
				if h := f.Look(k); h != nil && h == at[k] {
					n++
				}
				Prefetch(f.Look(k), 40)
				f.PrefetchRemove(k)
			}
			g.PrefetchIndex(all)
			g.Look(all)
			PrefetchEach(g.Rows[:], 40)
			select {
			case <-done:
				found <- n
				return
			default:
			}
		}
	}()
	rng := rand.New(rand.NewPCG(1, 1))
	for range 20 {
		n := 1 + rng.IntN(5000)
		for i := range n {
			s.Insert(godwit.Key(stay+i), i%2)
		}
		for i := range n {
			s.Remove(godwit.Key(stay + i))
		}
	}
	close(done)
	if n := <-found; n == 0 {
		t.Error("nothing was ever found")
	}
	for k := range at {
		if f.Look(k) == nil {
			t.Errorf("key %d is not found at rest", k)
		}
	}
}
