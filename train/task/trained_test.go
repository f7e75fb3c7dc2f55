package task

import (
	"testing"

	"github.com/godwit-ps/godwit/train"
)

// opinionated is a task that says something of everything that a task may be asked.
type opinionated struct{ train.Task[int] }

func (opinionated) Lockstep() bool       { return true }
func (opinionated) Stages(parts int) int { return 2 * parts }
func (opinionated) Handover() bool       { return true }

// hasty is one whose workers do not wait for each other, but hear of each other now and then; in lockstep, they do.
type hasty struct{ train.Task[int] }

func (hasty) MaxAge() float64       { return 0.5 }
func (opinionated) MaxAge() float64 { return 0.5 }

// reserved is one that says nothing.
type reserved struct{ train.Task[int] }

// What a task may say of itself beside [train.Task] is heard through Trained.
func TestATaskIsAskedThroughWhatAllHaveInCommon(t *testing.T) {
	says, silent := Trained[int]{Task: opinionated{}}, Trained[int]{Task: reserved{}}
	if !train.InLockstep(says) || train.InLockstep(silent) {
		t.Errorf("in lockstep: %v, %v", train.InLockstep(says), train.InLockstep(silent))
	}
	if a, b := train.StagesOf(says, 3), train.StagesOf(silent, 3); a != 6 || b != 0 {
		t.Errorf("%d and %d stages", a, b)
	}
	if !train.HandsOver(says) || train.HandsOver(silent) {
		t.Errorf("hands over: %v, %v", train.HandsOver(says), train.HandsOver(silent))
	}
	if a, b, c := train.MaxAgeOf(Trained[int]{Task: hasty{}}), train.MaxAgeOf(says), train.MaxAgeOf(silent); a != 0.5 || b != 0 || c != 0 {
		t.Errorf("for %v, %v and %v epochs", a, b, c)
	}
}

// Topics of words are kept in rows, so a run exchanges them between epochs, as the command starts it, too.
func TestTopicsAreHandedOverBetweenEpochs(t *testing.T) {
	s := DefaultLDA()
	s.Documents.Documents, s.Documents.Words, s.Documents.Topics, s.Topics = 40, 50, 4, 4
	x, err := s.Load(Setup{})
	if err != nil {
		t.Fatal(err)
	}
	if !train.HandsOver(x) {
		t.Errorf("%T does not hand over", x)
	}
}
