package job

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/train/kge"
	"github.com/godwit-ps/godwit/train/task"
)

func kgeSpec() Spec { return Default(task.DefaultKGE()) }

func settings(s *Spec) *task.KGE { return s.Task.(*task.KGE) }

func TestASpecComesBackAsItWas(t *testing.T) {
	s := kgeSpec()
	settings(&s).LR = 0.30000001
	s.Nodes, s.Policy, s.Data, s.Options.Patience, s.Options.EvalEvery = 7, "static", "/a folder", 3, 2
	s.Filters = "fixed(bytes=2), sparse, s2"
	s.Staleness = godwit.Within(3)
	b, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, s) {
		t.Errorf("it came back as\n%+v, was\n%+v", got, s)
	}
}

func TestASpecOfAnotherVersionIsRefused(t *testing.T) {
	s := kgeSpec()
	b, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		strings.Replace(string(b), `"seed"`, `"sead"`, 1), strings.Replace(string(b), `"kge"`, `"chess"`, 1),
		strings.Replace(string(b), `"Dim"`, `"Dimension"`, 1), string(b[:len(b)/2]), "", "null", "[]",
	} {
		if _, err := Decode([]byte(text)); err == nil {
			t.Errorf("no error for %.60q", text)
		}
	}
}

func TestAWrongSpecSaysWhatIsWrong(t *testing.T) {
	for want, spoil := range map[string]func(*Spec){
		"no task":            func(s *Spec) { s.Task = nil },
		"Nodes is 0":         func(s *Spec) { s.Nodes = 0 },
		"Workers is -1":      func(s *Spec) { s.Workers = -1 },
		"no policy":          func(s *Spec) { s.Policy = "clever" },
		`no filter "fix"`:    func(s *Spec) { s.Filters = "sparse, fix(bytes=1)" },
		"no scheme":          func(s *Spec) { settings(s).Sampling = "" },
		"Epochs is 0":        func(s *Spec) { s.Options.Epochs = 0 },
		"TTL is 1ms":         func(s *Spec) { s.TTL = time.Millisecond },
		"Join is 0s":         func(s *Spec) { s.Join = 0 },
		"Config.Batch is -1": func(s *Spec) { settings(s).Batch = -1 },
		`"conve"`:            func(s *Spec) { settings(s).Model = "conve" },
		`"hinge"`:            func(s *Spec) { settings(s).Loss = "hinge" },
	} {
		s := kgeSpec()
		spoil(&s)
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want one with %q", err, want)
		}
	}
	for _, model := range kge.Models() {
		s := kgeSpec()
		if settings(&s).Model = model; s.Check() != nil {
			t.Errorf("model %s: %v", model, s.Check())
		}
	}
}

func FuzzDecode(f *testing.F) {
	s := kgeSpec()
	b, err := s.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"task":"kge","nodes":-1}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if s, err := Decode(b); err == nil && s.Check() != nil {
			t.Errorf("a spec that was accepted is wrong: %v", s.Check())
		}
	})
}

// The others begin to load their data when the first node is through with it.
func TestNodesThatLoadForLongAreWaitedFor(t *testing.T) {
	s := Default(task.DefaultW2V())
	s.Nodes = 8
	if got := joinTimeout(&s, 0); got != s.Join {
		t.Errorf("without data to load, nodes wait for %v, want %v", got, s.Join)
	}
	if got, want := joinTimeout(&s, time.Minute), s.Join+8*time.Minute; got != want {
		t.Errorf("after a minute of loading, nodes wait for %v, want %v", got, want)
	}
	if s.Join = math.MaxInt64; joinTimeout(&s, time.Minute) != s.Join {
		t.Errorf("nodes that are waited for without end are waited for %v", joinTimeout(&s, time.Minute))
	}
}

func TestSettingsThatDifferAreNamed(t *testing.T) {
	got := differing([]byte(`{"A":1,"B":"x","C":{"D":2}}`), []byte(`{"A":1,"B":"y","E":[3]}`))
	if want := `B was "x", and is "y" now; C was {"D":2}, and there is none now; E is [3], and there was none`; got != want {
		t.Errorf("the difference is %s", got)
	}
}
