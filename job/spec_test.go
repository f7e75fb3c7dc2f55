package job

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/godwit-ps/godwit/train/kge"
)

func TestASpecComesBackAsItWas(t *testing.T) {
	s := Default()
	s.Nodes, s.Policy, s.Data, s.KGE.LR, s.Options.Patience, s.Options.EvalEvery = 7, "static", "/a folder", 0.30000001, 3, 2
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
	s := Default()
	b, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{strings.Replace(string(b), `"seed"`, `"sead"`, 1), string(b[:len(b)/2]), "", "null", "[]"} {
		if _, err := Decode([]byte(text)); err == nil {
			t.Errorf("no error for %.60q", text)
		}
	}
}

func TestAWrongSpecSaysWhatIsWrong(t *testing.T) {
	for want, spoil := range map[string]func(*Spec){
		"no task":            func(s *Spec) { s.Task = "chess" },
		"0 nodes":            func(s *Spec) { s.Nodes = 0 },
		"-1 workers":         func(s *Spec) { s.Workers = -1 },
		"no policy":          func(s *Spec) { s.Policy = "clever" },
		"no scheme":          func(s *Spec) { s.Sampling = "" },
		"0 epochs":           func(s *Spec) { s.Options.Epochs = 0 },
		"TTL of 1ms":         func(s *Spec) { s.TTL = time.Millisecond },
		"no time to wait":    func(s *Spec) { s.Join = 0 },
		"Config.Batch is -1": func(s *Spec) { s.KGE.Batch = -1 },
		`"conve"`:            func(s *Spec) { s.KGE.Model = "conve" },
		`"hinge"`:            func(s *Spec) { s.KGE.Loss = "hinge" },
	} {
		s := Default()
		spoil(&s)
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want one with %q", err, want)
		}
	}
	for _, model := range kge.Models() {
		s := Default()
		if s.KGE.Model = model; s.Check() != nil {
			t.Errorf("model %s: %v", model, s.Check())
		}
	}
}

func FuzzDecode(f *testing.F) {
	s := Default()
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
