package link

import (
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/filter"
	"github.com/godwit-ps/godwit/internal/host"
)

// hundred is a row that costs 100 bytes.
const hundred = (100 - recordBytes) / 4

// asker returns a sender of node 0 of four, which may have rows of 1000 bytes asked for, and the bell of its rounds.
func asker() (*Sender, *host.Bell) {
	limits, bell := host.Usual, host.NewBell()
	limits.Rows = 1000
	s := New(host.New(host.Real()), 0, 4, 1, limits, filter.Compress{}, bell).Sender()
	return &s, bell
}

// asks has so many rows asked for, of which there is room for all but the last.
func (s *Sender) asks(t *testing.T, of godwit.NodeID, rows int) {
	t.Helper()
	for i := range rows {
		if ok := s.Ask(of, hundred); ok != (i < rows-1) {
			t.Errorf("row %d of %d of node %d may be asked for: %v", i+1, rows, of, ok)
		}
	}
}

// A node may be asked for as much as could still be asked for of others, and each for one row.
func TestOfEachNodeHalfOfWhatIsLeftMayBeAskedFor(t *testing.T) {
	s, _ := asker()
	s.asks(t, 1, 6) // 5 × 100: and as much is left for others
	s.asks(t, 2, 3) // 2 × 100 of 500: 3 × 100 would leave 200
	if !s.Ask(3, 1000) || s.Ask(3, 0) {
		t.Error("of a third node one row may be asked for, whatever it takes, and no other")
	}
	if asked, want := s.ls.Asked(), 700+CostOf(1000); asked != want {
		t.Errorf("%d bytes are asked for, want %d: what was denied does not count", asked, want)
	}
}

// Who was denied a row hears once when there is room again: for several rows, or of a node that owes nothing.
func TestWhoWasDeniedARowHearsOfRoom(t *testing.T) {
	for what, x := range map[string]struct {
		ask  func(s *Sender)
		from godwit.NodeID // whose rows come: with the second, there is room
	}{
		"half of it is free":  {func(s *Sender) { s.Ask(2, hundred); s.asks(t, 1, 5) }, 1},
		"a node owes nothing": {func(s *Sender) { s.Ask(1, (600-recordBytes)/4); s.asks(t, 2, 3) }, 2},
	} {
		s, bell := asker()
		rung := func() (n int) {
			for _, c := range []<-chan struct{}{bell.Rung(), bell.Hurried()} {
				select {
				case <-c:
					n++
				default:
				}
			}
			return n
		}
		x.ask(s)
		if s.Got(x.from, hundred); rung() > 0 || s.ls.Due() {
			t.Errorf("%s: the rounds hear of room before there is any", what)
		}
		if s.Got(x.from, hundred); rung() != 2 || !s.ls.Due() || s.ls.Due() {
			t.Errorf("%s: the rounds do not hear of room at once, and once", what)
		}
		bell.Awake()
		s.Ask(3, hundred)
		if s.Got(3, hundred); rung() > 0 || s.ls.Due() {
			t.Errorf("%s: the rounds hear of room though nobody was denied any since", what)
		}
	}
}
