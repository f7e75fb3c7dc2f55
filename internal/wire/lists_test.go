package wire

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit"
)

// talk is one direction of a connection.
type talk struct {
	e     Encoder
	d     Decoder
	sent  Sent
	known Known
	asked int // questions for lists
}

func newTalk() *talk {
	k := &talk{}
	k.e.Lists, k.d.Lists = &k.sent, &k.known
	return k
}

// say sends records in one frame and fails the test unless they arrive. It
// returns the length of the frame.
func (k *talk) say(t *testing.T, recs []Record) int {
	t.Helper()
	k.e.Reset(nil, 1)
	for i := range recs {
		k.e.Append(&recs[i])
	}
	frame := k.e.Frame()
	if err := k.d.Reset(frame); err != nil {
		t.Fatal(err)
	}
	var got []Record
	for {
		var r Record
		ok, err := k.d.Next(&r)
		var unknown *UnknownListError
		if errors.As(err, &unknown) {
			k.asked++
			k.d.Keep()
			clear(frame) // what it needs of it, it has kept
			answer, err := k.sent.Answer(unknown.Question())
			if err != nil {
				t.Fatal(err)
			}
			if err := k.known.Learn(answer); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
		r.Vals = append([]float32(nil), r.Vals...)
		got = append(got, r)
	}
	same(t, got, recs)
	return len(frame)
}

// call is the requests, or answers, of one operation about keys.
func call(kind Kind, op uint64, keys []godwit.Key) []Record {
	recs := make([]Record, len(keys))
	for i, k := range keys {
		recs[i] = Record{Kind: kind, Key: k, Op: op, Index: uint32(i)}
		if fieldsOf[kind]&fVals != 0 {
			recs[i].Vals = []float32{float32(op), float32(i)}
		}
	}
	return recs
}

func someKeys(r *rand.Rand, n int) []godwit.Key {
	keys := make([]godwit.Key, n)
	for i := range keys {
		keys[i] = godwit.Key(r.Uint64N(1 << 30))
	}
	return keys
}

func TestTheThirdTimeAListIsSentAsItsHash(t *testing.T) {
	r := newRand(t)
	k := newTalk()
	keys := someKeys(r, 1000)
	for _, kind := range []Kind{Pull, Push, PullReply, Done, Localize, Refuse} {
		k := newTalk()
		var n [5]int
		for i := range n {
			recs := call(kind, uint64(i+1), keys)
			if kind == Refuse {
				for j := range recs {
					recs[j].Op, recs[j].Index = 0, 0
				}
			}
			n[i] = k.say(t, recs)
			if fieldsOf[kind]&fVals != 0 {
				n[i] -= 8 * len(keys)
			}
		}
		if n[0] != n[1] || n[2] != n[3] || n[2] > DataLen+40 || n[1] < 3*len(keys) {
			t.Errorf("%v of 1000 keys: %d bytes beside the values", kind, n)
		}
		if k.sent.Hits != 3 || k.sent.Saved == 0 {
			t.Errorf("%v: %d hits, %d bytes saved, want 3 hits", kind, k.sent.Hits, k.sent.Saved)
		}
		if got, want := int(k.sent.Saved), 3*(n[1]-n[2]); got < want-3*frameAlign || got > want+3*frameAlign {
			t.Errorf("%v: %d bytes count as saved, the frames are %d shorter", kind, got, want)
		}
	}
	// A list is the same whatever is asked about it, and whatever stands before.
	for i, kind := range []Kind{Pull, Push, PullReply, Done} {
		k.say(t, append(call(Pull, 99, someKeys(r, i)), call(kind, uint64(i), keys)...))
	}
	if k.sent.Hits != 2 {
		t.Errorf("%d hits of one list in four kinds of runs, want 2", k.sent.Hits)
	}
	// Nothing is gained by short ones, and by those that take no bytes.
	k = newTalk()
	dense := make([]godwit.Key, 100)
	for i := range dense {
		dense[i] = godwit.Key(i)
	}
	for range 5 {
		k.say(t, call(Pull, 1, keys[:listRecords-1]))
		k.say(t, call(Pull, 1, dense))
	}
	if k.sent.Hits != 0 {
		t.Errorf("%d hits of short and dense lists", k.sent.Hits)
	}
}

// Lists that differ only behind a long beginning are different lists: the hash
// is over all of them.
func TestListsWithTheSameBeginningAreToldApart(t *testing.T) {
	r := newRand(t)
	k := newTalk()
	keys := someKeys(r, 5000)
	for round := range 4 {
		for last := range 6 {
			keys[len(keys)-1] = godwit.Key(last)
			k.say(t, call(Push, uint64(10*round+last), keys))
			k.say(t, call(Push, uint64(10*round+last), keys[:len(keys)-last]))
		}
	}
	if k.sent.Hits == 0 {
		t.Error("no list was remembered")
	}
}

func TestBothEndsForgetTheSameLists(t *testing.T) {
	r := newRand(t)
	k := newTalk()
	const n = 1000 // the room is for about 300 of them
	all := make([][]godwit.Key, n)
	for i := range all {
		all[i] = someKeys(r, 32+r.IntN(1500))
	}
	for range 4000 {
		var recs []Record
		for range r.IntN(3) {
			i := min(r.IntN(n), r.IntN(n), r.IntN(n)) // some more often than others
			recs = append(recs, call(Kind(1+r.IntN(2)), r.Uint64(), all[i])...)
		}
		k.say(t, recs)
	}
	if k.sent.Hits == 0 || len(k.sent.gone.byHash) == 0 {
		t.Errorf("%d hits, %d lists forgotten: nothing was tested", k.sent.Hits, len(k.sent.gone.byHash))
	}
	if k.asked > 0 {
		t.Errorf("%d lists were forgotten by the receiver only", k.asked)
	}
	for _, end := range []*lists{&k.sent.lists, &k.known.lists, &k.sent.gone} {
		bytes, count := 0, 0
		for x := end.newest; x != nil; x = x.older {
			bytes += len(x.entries) + listCost
			count++
		}
		if bytes != end.bytes || bytes > listRoom || count != len(end.byHash) {
			t.Errorf("an end remembers %d lists of %d bytes, and counts %d and %d; the limit is %d", count, bytes, len(end.byHash), end.bytes, listRoom)
		}
	}
	if k.sent.lists.bytes != k.known.lists.bytes {
		t.Errorf("the sender remembers %d bytes of lists, the receiver %d", k.sent.lists.bytes, k.known.lists.bytes)
	}
}

func TestAForgottenListIsAskedFor(t *testing.T) {
	r := newRand(t)
	k := newTalk()
	all := make([][]godwit.Key, 20)
	for i := range all {
		all[i] = someKeys(r, 32+r.IntN(100))
	}
	for range 300 {
		if r.IntN(5) == 0 {
			k.known.Forget()
		}
		var recs []Record
		for range r.IntN(5) {
			recs = append(recs, call(Kind(1+r.IntN(2)), r.Uint64(), all[r.IntN(len(all))])...)
		}
		k.say(t, recs)
	}
	if k.asked == 0 {
		t.Error("no list was asked for")
	}
}

func TestBrokenQuestionsAndAnswersAreRefused(t *testing.T) {
	r := newRand(t)
	k := newTalk()
	keys := someKeys(r, 100)
	for i := range uint64(3) {
		k.say(t, call(Pull, i, keys))
	}
	x := k.sent.lists.newest
	question := (&UnknownListError{x.hash}).Question()
	answer, err := k.sent.Answer(question)
	if err != nil {
		t.Fatal(err)
	}
	if !Asks(question) || !Answers(answer) || Asks(answer) || Answers(question) || len(answer)%frameAlign != 0 {
		t.Error("question and answer do not look like themselves")
	}
	for n := range len(answer) {
		cut := append([]byte(nil), answer[:n]...)
		if n >= PrefixLen {
			putLen(cut)
		}
		if n <= len(answer)-frameAlign && new(Known).Learn(cut) == nil {
			t.Errorf("an answer cut to %d of %d bytes was taken", n, len(answer))
		}
		if n < len(question) {
			cut = append([]byte(nil), question[:n]...)
			if n >= PrefixLen {
				putLen(cut)
			}
			if _, err := k.sent.Answer(cut); err == nil {
				t.Errorf("a question cut to %d of %d bytes was answered", n, len(question))
			}
		}
	}
	for i := HeaderLen; i < HeaderLen+hashLen+8+len(x.entries); i++ {
		bad := append([]byte(nil), answer...)
		bad[i] ^= 1
		if new(Known).Learn(bad) == nil {
			t.Errorf("an answer with byte %d changed was taken", i)
		}
	}
	if _, err := k.sent.Answer(answer[:len(question):len(question)]); err == nil {
		t.Error("the beginning of an answer was answered")
	}
	other := append([]byte(nil), question...)
	other[6] = typeList
	if _, err := k.sent.Answer(other); err == nil {
		t.Error("a question that says that it is an answer was answered")
	}
	question[HeaderLen]++
	if _, err := k.sent.Answer(question); err == nil || !strings.Contains(err.Error(), "was not sent") {
		t.Errorf("a question for another list: %v", err)
	}

	k.e.Reset(nil, 1)
	for _, rec := range call(Pull, 7, keys) {
		k.e.Append(&rec)
	}
	frame := k.e.Frame()
	if _, err := decode(&Decoder{}, frame); err == nil || !strings.Contains(err.Error(), "where none is remembered") {
		t.Errorf("a hash for a decoder without lists: %v", err)
	}
	frame[DataLen+2]-- // records of the run
	if _, err := decode(&k.d, frame); err == nil || !strings.Contains(err.Error(), "a list of 100 records in a run of 99") {
		t.Errorf("a list that is too long: %v", err)
	}
	frame[DataLen+2]++
	frame[DataLen+1] |= remember
	if _, err := decode(&k.d, frame); err == nil || !strings.Contains(err.Error(), "exclude each other") {
		t.Errorf("two flags for one list: %v", err)
	}
	k.e.Reset(nil, 1)
	for _, rec := range call(Pull, 8, keys) {
		k.e.Append(&rec)
	}
	frame = k.e.Frame()
	short := frame[: len(frame)-frameAlign : len(frame)-frameAlign]
	putLen(short)
	if _, err := decode(&k.d, short); err == nil || !strings.Contains(err.Error(), "hash of a list is cut off") {
		t.Errorf("a hash that is cut off: %v", err)
	}
}

func TestTheLongestListIsLearned(t *testing.T) {
	for n, taken := range map[int]bool{listLen: true, listLen + 1: false} {
		entries := make([]byte, n)
		h := hashOf(entries, uint32(n))
		b := make([]byte, HeaderLen)
		putHeader(b, typeList, 0)
		b = appendHash(b, h)
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
		b = append(b, entries...)
		for len(b)%frameAlign != 0 {
			b = append(b, 0)
		}
		putLen(b)
		k := new(Known)
		if err := k.Learn(b); (err == nil) != taken {
			t.Errorf("a list of %d bytes: %v", n, err)
		}
		if taken && k.lists.byHash[h] == nil {
			t.Errorf("a list of %d bytes was not learned", n)
		}
	}
}

// What a peer tells as a list is looked at when it is read.
func TestAListOfGarbageIsRefusedWhereItIsRead(t *testing.T) {
	const n = 40
	for what, entries := range map[string][]byte{
		"too short":       make([]byte, n-1),
		"too long":        make([]byte, n+1),
		"nothing":         nil,
		"endless numbers": []byte(strings.Repeat("\xff", 10*n)),
	} {
		x := &list{hash: hashOf(entries, n|indexed), entries: entries, records: n | indexed}
		s := Sent{}
		s.lists.add(x)
		answer, err := s.Answer((&UnknownListError{x.hash}).Question())
		if err != nil {
			t.Fatal(err)
		}
		d := Decoder{Lists: new(Known)}
		if err := d.Lists.Learn(answer); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		frame := make([]byte, DataLen)
		putHeader(frame, typeData, 0)
		frame = append(frame, byte(Pull), sameOp|sameOrigin|listed, n, 0, 1)
		frame = appendHash(frame, x.hash)
		putLen(frame)
		if _, err := decode(&d, frame); err == nil {
			t.Errorf("%s: was read", what)
		}
	}
}

func TestRememberedListsAreSentAndReadWithoutAllocating(t *testing.T) {
	k := newTalk()
	recs := call(Pull, 1, someKeys(newRand(t), 500))
	for range 3 {
		k.say(t, recs)
	}
	hits := k.sent.Hits
	var buf []byte
	var rec Record
	n := testing.AllocsPerRun(20, func() {
		k.e.Reset(buf, 1)
		for i := range recs {
			k.e.Append(&recs[i])
		}
		buf = k.e.Frame()
		if err := k.d.Reset(buf); err != nil {
			t.Fatal(err)
		}
		for ok := true; ok; {
			var err error
			if ok, err = k.d.Next(&rec); err != nil {
				t.Fatal(err)
			}
		}
	})
	if n != 0 || k.sent.Hits == hits {
		t.Errorf("%v allocations a frame, want 0; %d hits", n, k.sent.Hits-hits)
	}
}

// FuzzLists lets a sender and a receiver talk about a few lists, while bytes of
// the frames are changed on their way. Each step is 4 bytes: what is sent, and
// what is changed of it. Unless something was changed, everything arrives.
func FuzzLists(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})                                      // remembered, then sent as a hash
	f.Add([]byte{1, 0, 0, 0, 1, 0, 0, 0, 1, 40, 1, 0, 5, 0, 0, 0, 1, 0, 0, 0, 6, 0, 0, 0, 1, 0, 0, 0}) // one that is spoiled, and one that is forgotten
	f.Add([]byte{2, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 3, 8, 255, 0})
	var calls [4][]Record
	for i, kind := range []Kind{Pull, Push, PullReply, Done} {
		calls[i] = call(kind, uint64(i), someKeys(rand.New(rand.NewPCG(1, uint64(i))), listRecords+i))
	}
	f.Fuzz(func(t *testing.T, steps []byte) {
		k, sound := newTalk(), true
		var buf []byte
		for ; len(steps) >= 4; steps = steps[4:] {
			if steps[0]&7 > 4 {
				k.known.Forget()
				continue
			}
			k.e.Reset(buf, 1)
			recs := calls[steps[0]&3]
			for i := range recs {
				k.e.Append(&recs[i])
			}
			buf = k.e.Frame()
			at := HeaderLen + (int(steps[1])|int(steps[3])<<8)%(len(buf)-HeaderLen)
			buf[at] ^= steps[2]
			sound = sound && steps[2] == 0
			if n, err := k.hear(buf); sound && (err != nil || n != len(recs)) {
				t.Fatalf("%d of %d records arrived: %v", n, len(recs), err)
			}
		}
	})
}

// hear reads a frame and asks for the lists that are not known. It returns how
// many records came.
func (k *talk) hear(frame []byte) (n int, err error) {
	if err := k.d.Reset(frame); err != nil {
		return 0, err
	}
	var r Record
	for asked := false; ; {
		ok, err := k.d.Next(&r)
		var unknown *UnknownListError
		switch {
		case errors.As(err, &unknown) && !asked:
			asked = true
			answer, err := k.sent.Answer(unknown.Question())
			if err != nil {
				return n, err
			}
			if err := k.known.Learn(answer); err != nil {
				return n, err
			}
		case err != nil || !ok:
			return n, err
		default:
			n++
		}
	}
}

// BenchmarkLists sends the requests of a call of 1000 keys: of a new list each
// time, with and without looking out for lists, and of the same.
func BenchmarkLists(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	const n = 512
	calls := make([][]Record, n)
	for i := range calls {
		calls[i] = call(Pull, uint64(i), someKeys(r, 1000))
	}
	for _, c := range []struct {
		name  string
		lists *Sent
		same  bool
	}{{"new/without", nil, false}, {"new/with", &Sent{}, false}, {"same/without", nil, true}, {"same/with", &Sent{}, true}} {
		b.Run(c.name, func(b *testing.B) {
			e := Encoder{Lists: c.lists}
			var buf []byte
			i := 0
			for b.Loop() {
				recs := calls[0]
				if !c.same {
					i++
					recs = calls[i%n]
					recs[0].Key += godwit.Key(i)
				}
				e.Reset(buf, 1)
				for j := range recs {
					e.Append(&recs[j])
				}
				buf = e.Frame()
			}
			b.ReportMetric(float64(len(buf)), "B/call")
		})
	}
}

// More lists than an end has room for, again and again, take the memory of
// those that had to go.
func TestListsThatComeAndGoDoNotAllocate(t *testing.T) {
	r := newRand(t)
	k := newTalk()
	const n = 200
	calls := make([][]Record, n)
	for i := range calls {
		calls[i] = call(Pull, 1, someKeys(r, 3000))
	}
	var buf []byte
	var rec Record
	i := 0
	run := func() {
		recs := calls[i%n]
		i++
		k.e.Reset(buf, 1)
		for i := range recs {
			k.e.Append(&recs[i])
		}
		buf = k.e.Frame()
		if err := k.d.Reset(buf); err != nil {
			t.Fatal(err)
		}
		for ok := true; ok; {
			var err error
			if ok, err = k.d.Next(&rec); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 5 * n {
		run()
	}
	if len(k.sent.gone.byHash) == 0 {
		t.Fatal("no list had to go")
	}
	if n := testing.AllocsPerRun(2*n, run); n != 0 {
		t.Errorf("%v allocations a frame, want 0", n)
	}
}
