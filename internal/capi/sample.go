package capi

import (
	"context"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/optim"
	"github.com/godwit-ps/godwit/sampling"
)

// A Sampler draws rows of a table at random, as JSON. It is a sampling.Spec.
type Sampler struct {
	Name         string    `json:"name"`
	Table        int       `json:"table"`
	Distribution string    `json:"distribution"` // uniform (or empty), log_uniform, power
	Freq         []float64 `json:"freq"`         // of power: of each row
	Exponent     float64   `json:"exponent"`     // of power
	Level        string    `json:"level"`        // as package sampling calls it; empty: iid
	Distinct     bool      `json:"distinct"`     // rows of a sample
}

// spec checks a sampler.
func (s *Sampler) spec(tables []table) (spec sampling.Spec, err error) {
	if s.Table < 0 || s.Table >= len(tables) {
		return spec, wrong("sampler %q draws from table %d, the cluster has tables 0 … %d", s.Name, s.Table, len(tables)-1)
	}
	t := &tables[s.Table]
	spec = sampling.Spec{Name: s.Name, Table: s.Table, Distinct: s.Distinct}
	switch s.Distribution {
	case "", "uniform":
		spec.Dist = sampling.Uniform(uint64(t.rows))
	case "log_uniform":
		spec.Dist = sampling.LogUniform(uint64(t.rows))
	case "power":
		if int64(len(s.Freq)) > t.rows {
			return spec, wrong("sampler %q has frequencies of %d rows, table %q has %d", s.Name, len(s.Freq), t.name, t.rows)
		}
		if spec.Dist, err = sampling.Power(s.Freq, s.Exponent); err != nil {
			return spec, wrong("sampler %q: %v", s.Name, err)
		}
	default:
		return spec, wrong("sampler %q has the distribution %q, want uniform, log_uniform or power", s.Name, s.Distribution)
	}
	for _, l := range sampling.Levels() {
		if s.Level == l.String() || s.Level == "" && l == sampling.IID {
			spec.Level = l
			return spec, nil
		}
	}
	return spec, wrong("sampler %q has the level %q, want one of %v", s.Name, s.Level, sampling.Levels())
}

// maxSamplers bounds the samplers of a cluster: their numbers are part of those of samples.
const maxSamplers = 100

func (c *Cluster) specs(list []Sampler) ([]sampling.Spec, error) {
	if len(list) > maxSamplers {
		return nil, wrong("%d samplers, want at most %d", len(list), maxSamplers)
	}
	specs := make([]sampling.Spec, len(list))
	for i := range list {
		var err error
		if specs[i], err = list[i].spec(c.tables); err != nil {
			return nil, err
		}
	}
	return specs, nil
}

var prepareSample, pullSample = "prepare_sample", "pull_sample"

func (w *Worker) sampled(what string, i int) (*table, error) {
	if i < 0 || i >= len(w.cluster.cfg.Samplers) {
		return nil, wrong("%s: %s: there is no sampler %d, the cluster has %d", w.name, what, i, len(w.cluster.cfg.Samplers))
	}
	return &w.cluster.tables[w.cluster.cfg.Samplers[i].Table], nil
}

// PrepareSample announces n samples of a sampler at clocks from start to end-1, and returns the number of the sample.
func (w *Worker) PrepareSample(i, n int, start, end int64) (int64, error) {
	if _, err := w.sampled(prepareSample, i); err != nil {
		return 0, err
	}
	if n < 0 {
		return 0, wrong("%s: prepare_sample: %d rows, want 0 or more", w.name, n)
	}
	if err := w.enter(&prepareSample); err != nil {
		return 0, err
	}
	defer w.leave()
	id, err := w.w.PrepareSample(i, n, godwit.Clock(start), godwit.Clock(end))
	return int64(id), err
}

// PullSample draws the next rows of a sample of a sampler, and reads them.
func (w *Worker) PullSample(i int, id int64, rows []int64, dst []float32, wait time.Duration) (uint64, error) {
	t, err := w.sampled(pullSample, i)
	if err != nil {
		return 0, err
	}
	if len(dst) != len(rows)*t.dim {
		return 0, wrong("%s: pull_sample: %d floats for %d rows of table %q, which has %d floats a row", w.name, len(dst), len(rows), t.name, t.dim)
	}
	if err := w.enter(&pullSample); err != nil {
		return 0, err
	}
	keys, wide := make([]godwit.Key, len(rows)), dst
	if t.rated {
		wide = make([]float32, len(rows)*t.width())
	}
	return w.beside(pullSample, wait, func() {
		for j, k := range keys {
			rows[j] = int64(k - t.first)
		}
		if t.rated {
			optim.Narrow(dst, wide, t.dim)
		}
	}, func(ctx context.Context) error { return w.w.PullSample(ctx, godwit.SampleID(id), keys, wide) })
}

// FinishSample discards the rest of a sample.
func (w *Worker) FinishSample(id int64) error {
	if err := w.enter(&prepareSample); err != nil {
		return err
	}
	defer w.leave()
	w.w.FinishSample(godwit.SampleID(id))
	return nil
}
