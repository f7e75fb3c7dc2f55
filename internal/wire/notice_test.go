package wire

import (
	"bytes"
	"slices"
	"testing"

	"github.com/godwit-ps/godwit"
)

func TestNoticesSurviveTheWay(t *testing.T) {
	for _, h := range []Heartbeat{{}, {Asks: true}, {Moves: true}, {Arrived: 1<<62 - 1, Asks: true, Moves: true}, {Arrived: 77}} {
		f := h.Frame()
		got, err := ParseHeartbeat(f)
		if err != nil || got != h || len(f) != HeartbeatLen || !IsHeartbeat(f) || CheckLen(f) != nil {
			t.Errorf("%+v came as %+v, %v, in %d bytes", h, got, err, len(f))
		}
	}
	for _, of := range [][]godwit.NodeID{{0}, {5, 1, godwit.NodeID(godwit.MaxNodes - 1)}} {
		f := Suspicions(of)
		got, err := ParseSuspicions(f)
		if err != nil || !slices.Equal(got, of) || !IsSuspicions(f) || CheckLen(f) != nil {
			t.Errorf("%v came as %v, %v", of, got, err)
		}
	}
	if f := Goodbye(3); CheckGoodbye(f) != nil || !IsGoodbye(f) || CheckLen(f) != nil {
		t.Errorf("a goodbye came as %v", CheckGoodbye(f))
	}
	for _, f := range [][]byte{Heartbeat{}.Frame(), Goodbye(3)[:HeaderLen-1], nil} {
		if IsGoodbye(f) {
			t.Errorf("%x is a goodbye", f)
		}
	}
}

func TestNoticesThatSayTooMuchOrTooLittleAreRefused(t *testing.T) {
	longer := func(f []byte) []byte {
		f = append(slices.Clone(f), make([]byte, 4)...)
		putLen(f)
		return f
	}
	far := Suspicions([]godwit.NodeID{0})
	far[HeaderLen+2] = 1
	for what, err := range map[string]error{
		"a longer goodbye":       CheckGoodbye(longer(Goodbye(1))),
		"a longer heartbeat":     errorOf(ParseHeartbeat(longer(Heartbeat{}.Frame()))),
		"suspicions of half":     errorOf(ParseSuspicions(longer(Suspicions([]godwit.NodeID{0})))),
		"suspicions of nobody":   errorOf(ParseSuspicions(Suspicions(nil))),
		"a suspicion far away":   errorOf(ParseSuspicions(far)),
		"a goodbye as heartbeat": errorOf(ParseHeartbeat(Goodbye(1))),
	} {
		if err == nil {
			t.Errorf("%s was taken", what)
		}
	}
}

func errorOf[T any](_ T, err error) error { return err }

func FuzzNotice(f *testing.F) {
	f.Add(Goodbye(1))
	f.Add(Heartbeat{Arrived: 1 << 40, Asks: true}.Frame())
	f.Add(Suspicions([]godwit.NodeID{1, 700}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if h, err := ParseHeartbeat(b); err == nil && !bytes.Equal(h.Frame(), b) {
			t.Errorf("%x was read as %+v", b, h)
		}
		if of, err := ParseSuspicions(b); err == nil {
			if again, err := ParseSuspicions(Suspicions(of)); err != nil || !slices.Equal(again, of) {
				t.Errorf("%v became %v, %v", of, again, err)
			}
		}
		_ = CheckGoodbye(b)
	})
}
