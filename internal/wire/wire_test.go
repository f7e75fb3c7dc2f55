package wire

import (
	"bytes"
	"errors"
	"flag"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/godwit-ps/godwit"
)

var seedFlag = flag.Uint64("seed", 0, "seed of the randomized tests; 0 takes one from the clock")

// newRand returns a generator and prints its seed if the test fails.
func newRand(t testing.TB) *rand.Rand {
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("replay with -seed %d", seed)
		}
	})
	return rand.New(rand.NewPCG(seed, 1))
}

// wide draws numbers of all magnitudes.
func wide(r *rand.Rand) uint64 { return r.Uint64() >> r.IntN(64) }

// randomRecord draws a record of the kind with all its fields set.
func randomRecord(r *rand.Rand, k Kind) Record {
	rec := Record{Kind: k}
	f := fieldsOf[k]
	if f&fKey != 0 {
		rec.Key = godwit.Key(wide(r))
	}
	if f&fOp != 0 {
		rec.Op = wide(r)
	}
	if f&fIndex != 0 {
		rec.Index = uint32(wide(r))
	}
	if f&fOrigin != 0 {
		rec.Origin = godwit.NodeID(wide(r))
	}
	if f&fRoute != 0 {
		rec.Hops, rec.Coming = uint8(wide(r)), r.IntN(2) == 0
	}
	if f&fSide != 0 {
		rec.Odd = r.IntN(2) == 0
	}
	if f&fSaved != 0 {
		rec.Saved = r.IntN(2) == 0
	}
	if f&fEpoch != 0 {
		rec.Epoch = godwit.Epoch(wide(r))
	}
	if f&fVersion != 0 {
		rec.Version = godwit.Version(wide(r))
	}
	if f&fSeq != 0 {
		rec.Seq = wide(r)
	}
	if f&fHolders != 0 {
		for range r.IntN(5) {
			rec.Holders = append(rec.Holders, Holder{godwit.NodeID(wide(r)), wide(r), godwit.Version(wide(r))})
		}
	}
	rec.Rough = f&fRough != 0 && r.IntN(2) == 0
	rec.Whole = f&fRough != 0 && r.IntN(2) == 0
	if f&fVals != 0 {
		for range r.IntN(20) {
			rec.Vals = append(rec.Vals, math.Float32frombits(r.Uint32()))
		}
	}
	return rec
}

// alike makes b follow a as records of one frame usually do.
func alike(r *rand.Rand, a, b *Record) {
	f := fieldsOf[a.Kind] & fieldsOf[b.Kind]
	if f&fOp != 0 && r.IntN(2) == 0 {
		b.Op = a.Op
	}
	if f&fIndex != 0 && r.IntN(2) == 0 {
		b.Index = a.Index + 1
	}
	if f&fOrigin != 0 && r.IntN(2) == 0 {
		b.Origin = a.Origin
	}
}

// nextOf draws a record that goes on with the run of a, most of the time.
func nextOf(r *rand.Rand, a Record) Record {
	b := randomRecord(r, a.Kind)
	f := fieldsOf[a.Kind]
	b.Op, b.Origin, b.Hops, b.Coming, b.Rough, b.Whole = a.Op, a.Origin, a.Hops, a.Coming, a.Rough, a.Whole
	b.Coding, b.Step = a.Coding, a.Step
	b.Vals = nil
	for range a.Vals {
		b.Vals = append(b.Vals, math.Float32frombits(r.Uint32()))
	}
	if f&fKey != 0 && r.IntN(3) > 0 {
		b.Key = a.Key + godwit.Key(r.IntN(3))
	}
	if f&fIndex != 0 && r.IntN(3) > 0 {
		b.Index = a.Index + uint32(r.IntN(3))
	}
	return b
}

func randomRecords(r *rand.Rand, n int) []Record {
	recs := make([]Record, n)
	for i := range recs {
		recs[i] = randomRecord(r, Kind(1+r.IntN(int(kinds)-1)))
		if i > 0 {
			alike(r, &recs[i-1], &recs[i])
			if r.IntN(2) == 0 {
				recs[i] = nextOf(r, recs[i-1])
			}
		}
	}
	return recs
}

// equal compares records; floats by their bits, so that NaN equals itself.
func equal(a, b *Record) bool {
	x, y := *a, *b
	if !slices.EqualFunc(x.Vals, y.Vals, func(p, q float32) bool { return math.Float32bits(p) == math.Float32bits(q) }) {
		return false
	}
	if !slices.Equal(x.Holders, y.Holders) {
		return false
	}
	return x.Kind == y.Kind && x.Key == y.Key && x.Origin == y.Origin && x.Op == y.Op && x.Index == y.Index && x.Hops == y.Hops &&
		x.Coming == y.Coming && x.Odd == y.Odd && x.Saved == y.Saved && x.Epoch == y.Epoch && x.Version == y.Version && x.Seq == y.Seq &&
		x.Rough == y.Rough && x.Whole == y.Whole && x.Coding == y.Coding && math.Float32bits(x.Step) == math.Float32bits(y.Step)
}

func encode(view godwit.View, recs []Record) []byte {
	var e Encoder
	e.Reset(nil, view)
	for i := range recs {
		e.Append(&recs[i])
	}
	return e.Frame()
}

var fill int // calls of decode, which takes turns

func rubbish() Record {
	return Record{Kind: 99, Key: 99, Origin: 99, Op: 99, Index: 99, Hops: 99, Coming: true, Epoch: 99, Version: 99, Seq: 99, Coding: 99, Step: 99,
		Vals: make([]float32, 9), Holders: make([]Holder, 9)}
}

func decode(d *Decoder, frame []byte) ([]Record, error) {
	if err := d.Reset(frame); err != nil {
		return nil, err
	}
	if fill++; fill%2 == 0 {
		return decodeMany(d, 1+fill%7)
	}
	var recs []Record
	for {
		// Rubbish beforehand shows which fields Next forgets to set.
		r := rubbish()
		ok, err := d.Next(&r)
		if !ok {
			return recs, err
		}
		recs = append(recs, r)
	}
}

// decodeMany is decode of so many records at a time, or of batches.
func decodeMany(d *Decoder, most int) (all []Record, err error) {
	var b Batch
	for {
		recs := make([]Record, most)
		for i := range recs {
			recs[i] = rubbish()
		}
		if most%2 == 0 {
			n, err := d.Batch(&b)
			if err != nil {
				return all, err
			}
			for i := range n {
				r := rubbish()
				b.Record(i, &r)
				all = append(all, r)
			}
			if n > 0 {
				continue
			}
		}
		n, err := d.Fill(recs)
		all = append(all, recs[:n]...)
		if n == 0 || err != nil {
			return all, err
		}
	}
}

// Runs of records whose values are raw, or shortened to BF16, are read as batches.
func TestRunsAreReadAsBatches(t *testing.T) {
	for _, coding := range []Coding{Raw, BF16} {
		var recs []Record
		for i := range 2 * MaxBatch {
			x := float32(i)
			recs = append(recs, Record{Kind: Push, Key: godwit.Key(3 * i), Op: 7, Origin: 1, Hops: 1, Index: uint32(i), Coding: coding, Vals: []float32{x, -x, x + 0.5}})
		}
		var d Decoder
		if err := d.Reset(encode(1, recs)); err != nil {
			t.Fatal(err)
		}
		var got []Record
		var b Batch
		for len(got) < len(recs) {
			n, err := d.Batch(&b)
			if n != MaxBatch || err != nil || b.Coding != coding {
				t.Fatalf("a batch of %d records of coding %v, %v", n, b.Coding, err)
			}
			for i := range n {
				var r Record
				b.Record(i, &r)
				r.Vals = slices.Clone(r.Vals)
				got = append(got, r)
			}
		}
		same(t, got, recs)
	}
}

// same fails the test unless got are the records want.
func same(t *testing.T, got, want []Record) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("decoded %d records, want %d", len(got), len(want))
	}
	for i := range want {
		if !equal(&got[i], &want[i]) {
			t.Fatalf("record %d:\n got %+v\nwant %+v", i, got[i], want[i])
		}
	}
}

// misplaced returns a copy of b that starts off bytes behind a multiple of 8.
func misplaced(b []byte, off int) []byte {
	return append(make([]byte, off, off+len(b)+8), b...)[off:]
}

func TestWhatIsEncodedIsDecoded(t *testing.T) {
	r := newRand(t)
	var d Decoder // one for all, so that what it keeps is tested too
	for range 300 {
		recs := randomRecords(r, r.IntN(40))
		view := godwit.View(wide(r))
		frame := encode(view, recs)
		for off := range 4 { // with views, and with copies
			got, err := decode(&d, misplaced(frame, off))
			if err != nil {
				t.Fatal(err)
			}
			if d.View() != view {
				t.Fatalf("view %d, want %d", d.View(), view)
			}
			same(t, got, recs)
			for i := range got {
				if err := got[i].Check(); err != nil {
					t.Fatalf("decoded record %d: %v", i, err)
				}
			}
		}
	}
}

// Differences of keys that leave no room for the bit of the index are written
// otherwise.
func TestKeysFarApartAreDecoded(t *testing.T) {
	for _, u := range []uint64{0, narrowed - 2, narrowed - 1, narrowed, narrowed + 1, math.MaxUint64 - 1, math.MaxUint64} {
		far := godwit.Key(7 + 1 + unzigzag(u))
		recs := []Record{{Kind: Done, Key: 7, Op: 1, Index: 3}, {Kind: Done, Key: far, Op: 1, Index: 9}, {Kind: Done, Key: 8, Op: 1, Index: 10}}
		got, err := decode(&Decoder{}, encode(1, recs))
		if err != nil {
			t.Fatalf("keys 7 and %d: %v", far, err)
		}
		same(t, got, recs)
	}
}

func TestABufferIsReused(t *testing.T) {
	r := newRand(t)
	var e Encoder
	var d Decoder
	buf := make([]byte, 0, 64)
	for range 50 {
		recs := randomRecords(r, r.IntN(10))
		e.Reset(buf, 3)
		for i := range recs {
			e.Append(&recs[i])
		}
		if e.Records() != len(recs) {
			t.Fatalf("Records() = %d, want %d", e.Records(), len(recs))
		}
		buf = e.Frame()
		if n := e.Len(); len(buf) != (n+7)&^7 {
			t.Fatalf("Len() = %d, and the frame has %d bytes", n, len(buf))
		}
		if len(recs) > 0 { // a finished frame can be gone on with
			e.Append(&recs[0])
			recs = append(recs, recs[0])
			buf = e.Frame()
		}
		got, err := decode(&d, buf)
		if err != nil {
			t.Fatal(err)
		}
		same(t, got, recs)
	}
}

func TestValuesLieInTheFrame(t *testing.T) {
	frame := encode(0, []Record{{Kind: Push, Vals: []float32{1, 2, 3}}})
	if !canView(frame) {
		t.Skip("built without views")
	}
	var d Decoder
	recs, err := decode(&d, frame)
	if err != nil {
		t.Fatal(err)
	}
	at := uintptr(unsafe.Pointer(&recs[0].Vals[0])) - uintptr(unsafe.Pointer(&frame[0]))
	if want := uintptr(DataLen); at != want {
		t.Errorf("values at offset %d, want %d", at, want)
	}
	if cap(recs[0].Vals) != 3 {
		t.Errorf("an append to the values would overwrite the frame: capacity %d", cap(recs[0].Vals))
	}
}

// cost is the bytes that a key of a call takes beside its values.
func cost(keys []godwit.Key, vals []float32) float64 {
	kind := Pull
	if vals != nil {
		kind = Push
	}
	var e Encoder
	e.Reset(nil, 1)
	for i, k := range keys {
		e.Append(&Record{Kind: kind, Key: k, Op: 1 << 40, Index: uint32(i), Origin: 3, Hops: 1, Vals: vals})
	}
	return float64(len(e.Frame())-DataLen)/float64(len(keys)) - float64(4*len(vals))
}

func TestKeysOfACallCostABitToTwoBytes(t *testing.T) {
	r := newRand(t)
	const n = 1000
	gap := func(mean uint64) []godwit.Key {
		keys := make([]godwit.Key, n)
		k := wide(r)
		for i := range keys {
			k += 1 + r.Uint64N(2*mean-1)
			keys[i] = godwit.Key(k)
		}
		return keys
	}
	for _, c := range []struct {
		name string
		keys []godwit.Key
		most float64
	}{
		{"without gaps", gap(1), 0.05},
		{"gaps of 10", gap(10), 1.05},
		{"gaps of 2000", gap(2000), 2.05},
	} {
		for _, vals := range [][]float32{nil, make([]float32, 100)} {
			if got := cost(c.keys, vals); got > c.most {
				t.Errorf("%s, %d floats: %.3f bytes a key, want at most %.2f", c.name, len(vals), got, c.most)
			}
		}
	}
}

func TestCodecDoesNotAllocate(t *testing.T) {
	recs := randomRecords(newRand(t), 64)
	var e Encoder
	var d Decoder
	var rec Record
	buf := encode(0, recs)
	run := func() {
		e.Reset(buf, 0)
		for i := range recs {
			e.Append(&recs[i])
		}
		buf = e.Frame()
		if err := d.Reset(buf); err != nil {
			t.Fatal(err)
		}
		for {
			ok, err := d.Next(&rec)
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
		}
	}
	run()
	if n := testing.AllocsPerRun(20, run); n != 0 {
		t.Errorf("%v allocations a frame, want 0", n)
	}
}

func TestARecordWithForeignFieldsFailsItsCheck(t *testing.T) {
	for k := Kind(1); k < kinds; k++ {
		full := Record{Kind: k, Key: 1, Origin: 1, Op: 1, Index: 1, Hops: 1, Coming: true, Epoch: 1, Version: 1, Seq: 1, Vals: []float32{1}, Holders: []Holder{{}}}
		if full.Check() == nil {
			t.Errorf("%v: a record with all fields set passed", k)
		}
	}
	if err := (&Record{Kind: kinds}).Check(); err == nil {
		t.Error("a record of an unknown kind passed")
	}
	if err := (&Record{Kind: Push, Key: 5, Op: 1, Vals: []float32{1}, Coding: 99}).Check(); err == nil || !strings.Contains(err.Error(), "coding 0x63") {
		t.Errorf("a coding that does not exist: %v", err)
	}
	err := (&Record{Kind: Ack, Key: 5, Epoch: 1}).Check()
	if err == nil || !strings.Contains(err.Error(), "ack record of key 5 has Epoch set") {
		t.Errorf("error %v does not name kind, key and field", err)
	}
}

func TestAppendOfNoKindPanics(t *testing.T) {
	for _, k := range []Kind{0, kinds, 32, 33, 128, 255} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("Append of kind %d did not panic", k)
				}
			}()
			var e Encoder
			e.Reset(nil, 0)
			e.Append(&Record{Kind: k})
		}()
	}
}

func TestBrokenFramesAreRefusedWithPlaceAndReason(t *testing.T) {
	// with builds a data frame with the given values and runs.
	with := func(values []byte, runs ...byte) []byte {
		b := make([]byte, DataLen)
		putHeader(b, typeData, 0)
		b[HeaderLen] = byte(len(values))
		b = append(append(b, values...), runs...)
		putLen(b)
		return b
	}
	frame := func(runs ...byte) []byte { return with(nil, runs...) }
	values := func(n int) []byte { return make([]byte, n) }
	header := func(i int, v byte) []byte { b := frame(); b[i] = v; return b }
	hello, _ := AppendHello(nil, Hello{})
	plain := frame()[:HeaderLen]
	putLen(plain)
	for _, c := range []struct {
		name  string
		frame []byte
		want  string
	}{
		{"nothing", nil, "length takes 4 bytes"},
		{"header cut", frame()[:10], "claims a length of 24 bytes and has 10"},
		{"length too large", header(0, 25), "claims a length of 25 bytes and has 24"},
		{"length too small", header(0, 15), "want 16 …"},
		{"length beyond the limit", header(3, 0xff), "want 16 … 67108864"},
		{"no length of values", plain, "offset 16: data frame ends after 16 of at least 24 bytes"},
		{"magic", header(4, 'H'), "not a frame of Godwit"},
		{"version", header(5, 11), "protocol version 11, this program speaks version 10"},
		{"hello", hello, "frame type 2, want 1"},
		{"flags", header(7, 1), "flags 0x01"},
		{"too many values", header(HeaderLen, 1), "offset 16: 1 bytes of values claimed, 0 bytes left"},
		{"compressed without a flag", header(HeaderLen+4, 1), "offset 20: length 1 before compression"},
		{"kind 0", frame(0, 1), "record 0 (unknown) at offset 24: unknown kind 0"},
		{"kind 0 at the end", frame(byte(Refuse), 0, 1, 0, 2, 0, 0, 1), "record 1 (unknown) at offset 29: unknown kind 0"},
		{"zeros beyond a multiple of 8", frame(0, 0, 0, 0, 0, 0, 0, 0), "record 0 (unknown) at offset 24: unknown kind 0"},
		{"kind 33", frame(33), "unknown kind 33"},
		{"kind 255", frame(255), "unknown kind 255"},
		{"head cut", frame(byte(Refuse), 0, 1), "record 0 (refuse) at offset 24: the head of a run is cut off"},
		{"flag of another kind", frame(byte(Refuse), coming, 1, 0, 0), "record 0 (refuse) at offset 25: flags 0x04"},
		{"dense with a version", frame(byte(Ack), dense, 1, 0, 0), "record 0 (ack) at offset 25: flags 0x10"},
		{"no such flag", frame(byte(Refuse), 0x80, 1, 0, 0), "flags 0x80"},
		{"empty run", frame(byte(Refuse), 0, 0, 0, 0), "offset 26: a run of 0 records"},
		{"two marks", frame(byte(SyncMark), sameOp, 2, 0), "offset 26: a run of 2 records"},
		{"no key", frame(byte(Refuse), 0, 1, 0), "record 0 (refuse) at offset 28: key is cut off"},
		{"second record", frame(byte(Refuse), 0, 2, 0, 2), "record 1 (refuse) at offset 29: key is cut off"},
		{"second run", frame(byte(Refuse), 0, 1, 0, 2, byte(Ack), 0, 1, 0, 2), "record 1 (ack) at offset 34: version is cut off"},
		{"number over 64 bits", frame(append([]byte{byte(SyncMark), 0, 1, 0}, bytes.Repeat([]byte{0xff}, 10)...)...), "record 0 (sync-mark) at offset 28: op is cut off or exceeds 18446744073709551615"},
		{"no wide key", frame(byte(Done), sameOp, 1, 0, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1), "offset 38: key is cut off"},
		{"wide key too small", frame(byte(Done), sameOp, 1, 0, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 5), "offset 38: key is cut off"},
		{"index over 32 bits", frame(byte(Done), sameOp, 1, 0, 1, 0x80, 0x80, 0x80, 0x80, 0x10), "index is cut off or exceeds 4294967295"},
		{"origin over 16 bits", frame(byte(Claim), 0, 1, 0, 0x80, 0x80, 4), "origin is cut off or exceeds 65535"},
		{"no hops", frame(byte(Interest), sameOrigin, 1, 0), "hops is cut off"},
		{"epoch over 32 bits", frame(byte(Drained), 0, 1, 0, 0, 0x80, 0x80, 0x80, 0x80, 0x10), "epoch is cut off or exceeds"},
		{"no seq", frame(byte(Dropped), 0, 1, 0, 0), "seq is cut off"},
		{"too many floats", with(values(4), byte(PullReply), sameOp, 1, 0, 100, 0), "1 times 100 floats claimed, 4 bytes of values left"},
		{"too many records", with(values(8), byte(PullReply), sameOp, 3, 0, 1, 0, 0, 0), "3 times 1 floats claimed, 8 bytes of values left"},
		{"very many floats", with(values(4), byte(PullReply), sameOp, 1, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0), "floats claimed"},
		{"values of nobody", with(values(8), byte(PullReply), sameOp, 1, 0, 1, 0, 0, 0), "record 1 (unknown) at offset 28: 4 bytes of values belong to no record"},
		{"no count of floats", frame(byte(PullReply), sameOp, 1, 0), "number of floats is cut off"},
		{"no coding", frame(byte(PullReply), sameOp|coded, 1, 0, 1), "the coding is cut off"},
		{"unknown coding", with(values(8), byte(PullReply), sameOp|coded, 1, 0, 1, 4, 0), "coding 0x04 of 1 floats"},
		{"coding of nothing", frame(byte(PullReply), sameOp|coded, 1, 0, 0, byte(BF16), 0), "coding 0x01 of 0 floats"},
		{"steps of no fixed point", with(values(8), byte(PullReply), sameOp|coded, 1, 0, 1, byte(BF16|stepped), 0), "coding 0x81 of 1 floats"},
		{"no step", with(values(1), byte(PullReply), sameOp|coded, 1, 0, 1, byte(Fixed8), 0), "the step is cut off"},
		{"coded values cut", with(values(1), byte(PullReply), sameOp|coded, 1, 0, 1, byte(BF16), 0), "1 floats are cut off, 1 bytes of values left"},
		{"no bits", with(values(1), byte(PullReply), sameOp|coded, 1, 0, 9, byte(Sparse), 0), "9 floats are cut off"},
		{"sparse values cut", with([]byte{3, 0, 0, 0, 0, 0, 0}, byte(PullReply), sameOp|coded, 1, 0, 8, byte(Sparse), 0), "8 floats are cut off"},
		{"too many bits", with([]byte{4, 0}, byte(PullReply), sameOp|coded, 1, 0, 2, byte(Sparse|BF16), 0), "2 floats are cut off"},
		{"bits of nobody", with([]byte{4, 0, 0}, byte(PullReply), sameOp|coded, 1, 0, 2, byte(Sparse|BF16), 0), "bits for more than 2 floats"},
		{"padding not zero", with([]byte{0, 0, 1, 0, 0, 0, 0, 0}, byte(PullReply), sameOp|coded, 1, 0, 1, byte(BF16), 0, byte(PullReply), sameOp, 1, 0, 1, 0), "offset 26: the padding"},
		{"padding cut", with(values(2), byte(PullReply), sameOp|coded, 1, 0, 1, byte(BF16), 0, byte(PullReply), sameOp, 1, 0, 1, 0), "offset 26: the padding"},
		{"too many holders", frame(byte(Transfer), 0, 1, 0, 0, 0, 0, 0, 4, 1, 1, 1, 1, 1), "4 holders claimed, 5 bytes left"},
		{"no count of holders", frame(byte(Transfer), 0, 1, 0, 0, 0, 0, 0), "count of holders is cut off"},
		{"holder cut", frame(byte(Transfer), 0, 1, 0, 0, 0, 0, 0, 1, 0x80, 1, 0x80), "seq of a holder is cut off"},
		{"node of a holder", frame(byte(Transfer), 0, 1, 0, 0, 0, 0, 0, 1, 0x80, 0x80, 4, 0, 0), "node of a holder is cut off or exceeds 65535"},
		{"version of a holder", frame(byte(Transfer), 0, 1, 0, 0, 0, 0, 0, 1, 1, 1, 0x80), "version of a holder is cut off"},
	} {
		var d Decoder
		recs, err := decode(&d, c.frame)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want … %s …", c.name, err, c.want)
			continue
		}
		var f *FormatError
		if errors.As(err, &f) && max(0, f.Record) != len(recs) {
			t.Errorf("%s: %d records came before the error in record %d", c.name, len(recs), f.Record)
		}
		if ok, again := d.Next(&Record{}); ok {
			t.Errorf("%s: a record after the error %v", c.name, again)
		}
	}
	var v *VersionError
	if err := (&Decoder{}).Reset(header(5, 11)); !errors.As(err, &v) || v.Theirs != 11 {
		t.Errorf("error %v, want a VersionError of 11", err)
	}
}

func TestHelloIsParsedAndBrokenOnesRefused(t *testing.T) {
	h := Hello{Run: "run-1", From: 3, To: 65535, Incarnation: 1 << 60, Fingerprint: strings.Repeat("f", 128), Features: SupportsZstd | 1<<31}
	b, err := AppendHello([]byte("before"), h)
	if err != nil {
		t.Fatal(err)
	}
	frame := b[len("before"):]
	if got, err := ParseHello(frame); err != nil || got != h {
		t.Errorf("ParseHello = %+v, %v; want %+v", got, err, h)
	}
	for n := range len(frame) {
		cut := bytes.Clone(frame[:n])
		if n >= 4 {
			putLen(cut)
		}
		if _, err := ParseHello(cut); err == nil {
			t.Errorf("a hello cut to %d of %d bytes was accepted", n, len(frame))
		}
	}
	long := append(bytes.Clone(frame), 0)
	putLen(long)
	if _, err := ParseHello(long); err == nil || !strings.Contains(err.Error(), "1 bytes follow") {
		t.Errorf("hello with a byte more: %v", err)
	}
	frame[HeaderLen+helloFixed] = 129
	if _, err := ParseHello(frame); err == nil || !strings.Contains(err.Error(), "name of the run") {
		t.Errorf("hello with a long name: %v", err)
	}
	for _, h := range []Hello{{Run: strings.Repeat("r", 129)}, {Fingerprint: strings.Repeat("f", 129)}} {
		if b, err := AppendHello(nil, h); err == nil || b != nil {
			t.Errorf("AppendHello of a long text: %d bytes, error %v", len(b), err)
		}
	}
	longest, _ := AppendHello(nil, Hello{Run: strings.Repeat("r", 128), Fingerprint: strings.Repeat("f", 128)})
	if len(longest) != MaxHello {
		t.Errorf("the longest hello has %d bytes, MaxHello is %d", len(longest), MaxHello)
	}
}

func TestNoncesAndProofsAreParsedAndBrokenOnesRefused(t *testing.T) {
	var code [32]byte
	for i := range code {
		code[i] = byte(200 + i)
	}
	nonce, proof := AppendNonce([]byte("before"), code)[len("before"):], AppendProof(nil, code)
	if got, err := ParseNonce(nonce); err != nil || got != code {
		t.Errorf("ParseNonce = %x, %v; want %x", got, err, code)
	}
	if got, err := ParseProof(proof); err != nil || got != code {
		t.Errorf("ParseProof = %x, %v; want %x", got, err, code)
	}
	if _, err := ParseNonce(proof); err == nil {
		t.Error("a proof was taken for a nonce")
	}
	if _, err := ParseProof(nonce); err == nil {
		t.Error("a nonce was taken for a proof")
	}
	for n := range len(proof) + 9 {
		other := append(bytes.Clone(proof), make([]byte, 8)...)[:n]
		if n >= 4 {
			putLen(other)
		}
		if _, err := ParseProof(other); err == nil && n != len(proof) {
			t.Errorf("a proof of %d bytes was accepted, want %d", n, len(proof))
		}
	}
	proof[8] = 1
	if _, err := ParseProof(proof); err == nil || !strings.Contains(err.Error(), "view 1") {
		t.Errorf("a proof with a view: %v", err)
	}
}

// A few bytes must not keep who reads them at work for long.
func TestAFrameOfTooManyRecordsIsRefused(t *testing.T) {
	for _, runs := range []int{maxRecords / math.MaxUint16, maxRecords/math.MaxUint16 + 1} {
		var e Encoder
		e.Reset(nil, 1)
		for range runs {
			for k := range godwit.Key(math.MaxUint16) {
				e.Append(&Record{Kind: Refuse, Key: k})
			}
		}
		frame := e.Frame()
		if len(frame) > 1<<10 {
			t.Fatalf("the frame has %d bytes: the test is vacuous", len(frame))
		}
		var d Decoder
		if err := d.Reset(frame); err != nil {
			t.Fatal(err)
		}
		recs, n := make([]Record, 256), 0
		var err error
		for err == nil {
			var got int
			got, err = d.Fill(recs)
			if n += got; got == 0 {
				break
			}
		}
		if tooMany := runs*math.MaxUint16 > maxRecords; (err != nil) != tooMany || n > maxRecords {
			t.Errorf("of a frame of %d records %d are read, error %v", runs*math.MaxUint16, n, err)
		}
	}
}

// A frame of a header alone says what it is of, and less than that says nothing.
func TestAHeaderSaysWhatAFrameIs(t *testing.T) {
	frame := encode(1, nil)[:HeaderLen]
	if !IsData(frame) || Asks(frame) || Answers(frame) {
		t.Errorf("a frame of records is one: %v, asks: %v, answers: %v", IsData(frame), Asks(frame), Answers(frame))
	}
	for kind, is := range map[byte]func([]byte) bool{typeData: IsData, typeWant: Asks, typeList: Answers} {
		frame[6] = kind
		if !is(frame) || is(frame[:HeaderLen-1]) {
			t.Errorf("type %d: %v, and %v where it is cut off", kind, is(frame), is(frame[:HeaderLen-1]))
		}
	}
}

// What a record adds to a frame does not depend on what the run before it comes to take when it ends.
func TestARecordAddsWhatItTakes(t *testing.T) {
	for _, keys := range []int{1, 1000} {
		var e Encoder
		for range 2 {
			e.Reset(nil, 1)
			if e.Grown() != DataLen || e.Len() != DataLen {
				t.Errorf("an empty frame has grown to %d bytes, want %d", e.Grown(), DataLen)
			}
			for k := range keys {
				e.Append(&Record{Kind: Pull, Key: godwit.Key(k), Op: 1, Index: uint32(k)})
			}
			before, grown := e.Len(), e.Grown()
			e.Append(&Record{Kind: Done, Key: 1, Op: 1})
			if took := e.Grown() - grown; took < 1 || took > 20 {
				t.Errorf("behind %d keys that follow each other, a record takes %d bytes", keys, took)
			}
			if shorter := e.Len() < before; shorter != (keys > 20) {
				t.Errorf("behind %d keys that follow each other, a record makes the frame shorter: %v", keys, shorter)
			}
		}
	}
}
