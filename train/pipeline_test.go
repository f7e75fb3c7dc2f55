package train

import (
	"context"
	"slices"
	"testing"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/schedule"
)

// A looker looks so many clocks ahead, and notes how many floats it is to set at a time.
type looker struct {
	godwit.Worker
	model *godwit.Model
	ahead godwit.Clock
	sets  []int
}

func (w *looker) Lookahead() godwit.Clock { return w.ahead }
func (w *looker) Model() *godwit.Model    { return w.model }

func (w *looker) Set(_ context.Context, _ []godwit.Key, vals []float32) error {
	w.sets = append(w.sets, len(vals))
	return nil
}

// A worker has the chunk that it trains, and those of the steps that it looks ahead.
func TestAWorkerHasTheChunksThatItLooksAhead(t *testing.T) {
	for _, c := range []struct {
		ahead godwit.Clock
		steps int
		want  int
	}{{10, 4, 4}, {8, 4, 3}, {0, 4, 1}, {3, 100, 2}, {10, 0, 0}} {
		p := pipeline[int]{w: &looker{ahead: c.ahead}, steps: c.steps}
		if got := p.ahead(); got != c.want {
			t.Errorf("of chunks of %d steps, a worker that looks %d ahead has %d, want %d", c.steps, c.ahead, got, c.want)
		}
	}
}

// Progress is that of the epoch, of which a stage is a part.
func TestProgressIsOfAllStages(t *testing.T) {
	p := pipeline[int]{chunk: schedule.Chunk{Chunk: 4, Parts: 3, Stages: 2}, step: 1, steps: 2}
	if got := p.progress(); got != 0.75 {
		t.Errorf("half of the second of two stages is %v of the epoch", got)
	}
}

// Rows are set in parts, so that those of a large model need not be in memory twice.
func TestRowsAreSetInParts(t *testing.T) {
	const rows, dim = 3000, 64
	m, err := godwit.NewModel(godwit.Table{Name: "t", Rows: rows, Dim: dim})
	if err != nil {
		t.Fatal(err)
	}
	w := &looker{model: m}
	lacking, err := SetRows(t.Context(), w, []Rows{func(row uint64, dst []float32) bool { dst[0] = 1; return row > 0 }})
	if err != nil || lacking[0] != 1 {
		t.Fatalf("%v rows are lacking, %v", lacking, err)
	}
	all := 0
	for _, n := range w.sets {
		if all += n; n > setFloats+dim {
			t.Errorf("%d floats are set at once", n)
		}
	}
	if all != (rows-1)*dim {
		t.Errorf("%d floats are set, want %d", all, (rows-1)*dim)
	}
}

// What a trainer holds of its updates is not trained yet, and a chunk that is finished is not under way.
func TestStepsCountWhenTheirUpdatesArePushed(t *testing.T) {
	var r record
	r.begin(1)
	at := schedule.Chunk{Epoch: 1, Chunk: 3}
	r.trained(heldStep{chunk: at, step: 0, loss: Loss{2, 1}}, 1)
	if p := r.position(5); len(p.Epochs) > 0 {
		t.Errorf("%+v is trained, though its update is held", p)
	}
	r.trained(heldStep{chunk: at, step: 1, last: true, loss: Loss{3, 1}}, 1)
	if e := r.position(5).Epochs; len(e) != 1 || !slices.Equal(e[0].Under, []schedule.Under{{Chunk: 3, Steps: 1}}) || len(e[0].Done) > 0 || e[0].Loss() != 2 {
		t.Errorf("%+v is trained, want the first step", e)
	}
	r.flushed()
	if e := r.position(5).Epochs; len(e) != 1 || len(e[0].Under) > 0 || !slices.Equal(e[0].Done, []schedule.Run{{From: 3, To: 4}}) || e[0].Loss() != 5 {
		t.Errorf("%+v is trained, want the chunk", e)
	}
}
