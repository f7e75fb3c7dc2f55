package task

import (
	"context"
	"encoding/json"
	"iter"
	"reflect"
	"strings"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/train"
)

// What holds for every task that there is, so that a new one is tested by
// registering it.
func TestEveryTaskHasDefaultsThatLoad(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			s, err := New(name)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Check(); err != nil || s.Name() != name || s.Epochs() < 1 {
				t.Fatalf("the default settings of %q, for %d epochs: %v", s.Name(), s.Epochs(), err)
			}
			task, err := s.Load(Setup{Seed: 1, MaxEvalItems: 100})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := godwit.NewModel(task.Tables()...); err != nil {
				t.Error(err)
			}
			for _, spec := range task.Samplers() {
				if spec.Table >= len(task.Tables()) {
					t.Errorf("sampler %s draws from table %d of %d", spec.Name, spec.Table, len(task.Tables()))
				}
			}
			if unit, n := task.Unit(); unit == "" || n < 1 || task.Summary() == "" || task.Fingerprint() == "" {
				t.Errorf("%s: %q, of %d examples, fingerprint %q", task.Summary(), unit, n, task.Fingerprint())
			}
			if named, ok := task.(Named); ok {
				for _, x := range task.Tables() {
					if n := nonempty(named.Names(x.Name)); n > 0 && n < x.Rows {
						t.Errorf("of %d rows of table %s %d have names", x.Rows, x.Name, n)
					}
				}
			}
			again, err := s.Load(Setup{Seed: 1, MaxEvalItems: 100})
			if err != nil || again.Fingerprint() != task.Fingerprint() || again.Data() != task.Data() || !strings.Contains(task.Data(), "xxh3:") {
				t.Errorf("the same settings load something else: %v", err)
			}
			other, err := s.Load(Setup{Seed: 2, MaxEvalItems: 100})
			if err != nil || other.Fingerprint() == task.Fingerprint() {
				t.Errorf("another seed has the same fingerprint: %v", err)
			}
			if g, ok := s.(Generated); ok {
				g.Generate(1, 5)
				if other, err = s.Load(Setup{Seed: 1, MaxEvalItems: 100}); err != nil || other.Data() == task.Data() {
					t.Errorf("other data have the same fingerprint: %v", err)
				}
			}
			if _, err := s.Load(Setup{Data: "nowhere"}); err == nil || !strings.Contains(err.Error(), "nowhere") {
				t.Errorf("data that are not there: %v", err)
			}
		})
	}
}

// nonempty returns how many names there are, none of which is empty.
func nonempty(names iter.Seq[string]) (n uint64) {
	if names == nil {
		return 0
	}
	for name := range names {
		if name != "" {
			n++
		}
	}
	return n
}

func TestSettingsComeBackFromJSON(t *testing.T) {
	for _, name := range Names() {
		s, err := New(name)
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		back, err := Decode(name, b)
		if err != nil || !reflect.DeepEqual(back, s) {
			t.Errorf("%s: %+v came back as %+v, %v", name, s, back, err)
		}
		if _, err := Decode(name, []byte(`{"NoSuchThing":1}`)); err == nil {
			t.Errorf("%s: a setting that there is not was accepted", name)
		}
	}
	if _, err := New("chess"); err == nil || !strings.Contains(err.Error(), "kge") {
		t.Errorf("a task that there is not: %v", err)
	}
}

func TestAWrongSettingIsRefusedBeforeDataAreRead(t *testing.T) {
	s := DefaultKGE()
	s.Sampling = "random"
	if err := s.Check(); err == nil || !strings.Contains(err.Error(), "random") {
		t.Error(err)
	}
	s = DefaultKGE()
	s.Dim = 0
	if err := s.Check(); err == nil || !strings.Contains(err.Error(), "Dim") {
		t.Error(err)
	}
}

// evaluated is a task that tells how many workers evaluate it.
type evaluated struct {
	train.Task[int]
	by int
}

func (j *evaluated) Evaluate(_ context.Context, env *train.Env, _ int) (train.Evaluation, error) {
	j.by = len(env.Workers)
	return train.Evaluation{}, nil
}

func TestFewItemsAreEvaluatedByOneWorkerOfANode(t *testing.T) {
	for n, want := range map[int]int{0: 3, 100: 1} {
		j := &evaluated{}
		env := train.Env{Workers: make([]godwit.Worker, 3)}
		if _, err := (Trained[int]{j, Setup{MaxEvalItems: n}.evalWorkers()}).Evaluate(t.Context(), &env, 1); err != nil {
			t.Fatal(err)
		}
		if j.by != want || len(env.Workers) != 3 {
			t.Errorf("%d items are evaluated by %d workers, want %d", n, j.by, want)
		}
	}
}
