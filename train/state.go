package train

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/godwit-ps/godwit/schedule"
)

// A State is what a run has done when an epoch has ended, or at a cut: with the rows of the model, it is what another
// run needs to go on behind it ([Env].Begin). As JSON it keeps each number bit by bit.
type State struct {
	Epochs    int          // that were trained
	Losses    []Loss       // of each epoch, over all nodes
	Evaluated []int        // the epochs that were evaluated
	Results   []Evaluation // the result of each
	Best      int          // index into Evaluated and Results
	// Position says what of the epochs behind them was trained at a cut; the zero Position is nothing.
	Position schedule.Position
	// End is why the run ends behind this epoch; empty if it goes on. It is no part of the JSON: another run
	// may go on.
	End End
}

// Last reports whether the last epoch was evaluated, and nothing trained since, and whether no earlier one had a better result.
func (s *State) Last() (evaluation *Evaluation, best bool) {
	n := len(s.Evaluated)
	if n == 0 || s.Evaluated[n-1] != s.Epochs || s.Within() > 0 {
		return nil, false
	}
	return &s.Results[n-1], s.Best == n-1
}

// stateVersion is that of the JSON of a State. Others are not read.
const stateVersion = 1

type (
	stateJSON struct {
		Version   int              `json:"version"`
		Epochs    int              `json:"epochs"`
		Losses    []lossJSON       `json:"losses"`
		Evaluated []int            `json:"evaluated"`
		Results   []evaluationJSON `json:"results"`
		Best      int              `json:"best"`

		Position *schedule.Position `json:"position,omitempty"`
	}
	lossJSON struct {
		Sum      exact `json:"sum"`
		Examples int64 `json:"examples"`
	}
	evaluationJSON struct {
		Metrics       []metricJSON `json:"metrics"`
		LowerIsBetter bool         `json:"lower_is_better,omitempty"`
		Warnings      []string     `json:"warnings,omitempty"`
	}
	metricJSON struct {
		Name  string `json:"name"`
		Split string `json:"split,omitempty"`
		Value exact  `json:"value"`
	}
)

// exact is a number as JSON has it, as a text: JSON knows no NaN.
type exact float64

func (x exact) MarshalText() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(x), 'g', -1, 64), nil
}

func (x *exact) UnmarshalText(b []byte) error {
	v, err := strconv.ParseFloat(string(b), 64)
	*x = exact(v)
	return err
}

// MarshalJSON implements json.Marshaler.
func (s *State) MarshalJSON() ([]byte, error) {
	j := stateJSON{Version: stateVersion, Epochs: s.Epochs, Evaluated: s.Evaluated, Best: s.Best}
	if s.Position.First > 0 {
		j.Position = &s.Position
	}
	for _, l := range s.Losses {
		j.Losses = append(j.Losses, lossJSON{exact(l.Sum), l.Examples})
	}
	for _, e := range s.Results {
		r := evaluationJSON{LowerIsBetter: e.LowerIsBetter, Warnings: e.Warnings}
		for _, m := range e.Metrics {
			r.Metrics = append(r.Metrics, metricJSON{m.Name, m.Split, exact(m.Value)})
		}
		j.Results = append(j.Results, r)
	}
	return json.Marshal(j)
}

// UnmarshalJSON implements json.Unmarshaler. It refuses what no run has done.
func (s *State) UnmarshalJSON(b []byte) error {
	var j stateJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	if j.Version != stateVersion {
		return fmt.Errorf("train: version %d of a run's state, and this program reads %d", j.Version, stateVersion)
	}
	*s = State{Epochs: j.Epochs, Evaluated: j.Evaluated, Best: j.Best}
	for _, l := range j.Losses {
		s.Losses = append(s.Losses, Loss{float64(l.Sum), l.Examples})
	}
	for _, r := range j.Results {
		e := Evaluation{LowerIsBetter: r.LowerIsBetter, Warnings: r.Warnings}
		for _, m := range r.Metrics {
			e.Metrics = append(e.Metrics, Metric{m.Name, m.Split, float64(m.Value)})
		}
		s.Results = append(s.Results, e)
	}
	if j.Position != nil {
		s.Position = *j.Position
	}
	return s.check()
}

func (s *State) check() error {
	switch {
	case s.Epochs < 0 || len(s.Losses) != s.Epochs:
		return fmt.Errorf("train: a run's state of %d epochs with %d losses", s.Epochs, len(s.Losses))
	case len(s.Evaluated) != len(s.Results) || len(s.Results) == 0 && s.Best != 0 || len(s.Results) > 0 && (s.Best < 0 || s.Best >= len(s.Results)):
		return fmt.Errorf("train: a run's state with %d evaluations of %d epochs, of which number %d is the best", len(s.Results), len(s.Evaluated), s.Best)
	}
	if first := s.Position.First; first != 0 && first != s.Epochs+1 {
		return fmt.Errorf("train: a run's state of %d epochs with epoch %d under way", s.Epochs, first)
	}
	if err := s.Position.Check(math.MaxInt); err != nil {
		return fmt.Errorf("train: a run's state: %w", err)
	}
	last := 0
	for i, e := range s.Evaluated {
		if e <= last || e > s.Epochs || len(s.Results[i].Metrics) == 0 {
			return fmt.Errorf("train: a run's state of %d epochs with an evaluation of epoch %d", s.Epochs, e)
		}
		last = e
	}
	return nil
}

// state returns what the run has done. Its slices are only appended to.
func (r *run[D]) state() *State {
	p := r.rep
	return &State{Epochs: p.Epochs, Losses: p.Losses, Evaluated: p.Evaluated, Results: p.Results, Best: p.Best, End: p.End}
}

// begin takes over what an earlier run has done.
func (r *run[D]) begin(s *State) {
	r.rep = &Report{Epochs: s.Epochs, Losses: clip(s.Losses), Evaluated: clip(s.Evaluated), Results: clip(s.Results), Best: s.Best}
	r.at = s.Position
	if s.Epochs >= r.opts.Epochs {
		r.rep.End = AllEpochs
	}
	r.losePatience()
}

// Until returns the state as it was behind an earlier epoch, with the position that it has now.
func (s *State) Until(epochs int) *State {
	n := 0
	for n < len(s.Evaluated) && s.Evaluated[n] <= epochs {
		n++
	}
	past := &State{Epochs: epochs, Losses: clip(s.Losses[:epochs]), Evaluated: clip(s.Evaluated[:n]), Results: clip(s.Results[:n]), Position: s.Position}
	for i := range past.Results {
		if better(&past.Results[i], &past.Results[past.Best]) {
			past.Best = i
		}
	}
	return past
}

// Within returns the epoch of which something, and not all, was trained; 0: none.
func (s *State) Within() int {
	if len(s.Position.Epochs) == 0 {
		return 0
	}
	return s.Position.First
}

// MergeStates puts together what the nodes of a run say of one cut.
func MergeStates(ss ...*State) (*State, error) {
	if len(ss) == 0 {
		return nil, errors.New("train: states of no nodes")
	}
	least, ps := ss[0], []schedule.Position(nil)
	for _, s := range ss {
		if s.Epochs < least.Epochs {
			least = s
		}
		ps = append(ps, s.Position)
	}
	p, err := schedule.Merge(ps...)
	if err != nil {
		return nil, err
	}
	merged := *least
	merged.Position = p.Whole()
	return &merged, merged.check()
}

func clip[T any](s []T) []T { return s[:len(s):len(s)] }
