package main

import (
	"context"
	"sync/atomic"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/triples"
	"github.com/godwit-ps/godwit/schedule"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/kge"
	"github.com/godwit-ps/godwit/train/task"
)

func init() { task.Register(func() task.Settings { return newSettings() }) }

// settings are those of "kge", and how the epochs are divided.
type settings struct {
	task.KGE
	InAdvance bool
}

func newSettings() *settings { return &settings{KGE: *task.DefaultKGE()} }

func (s *settings) Name() string { return "straggle" }

func (s *settings) Load(setup task.Setup) (task.Task, error) {
	inner, err := s.KGE.Load(setup)
	if err != nil || !s.InAdvance {
		return inner, err
	}
	g, err := triples.Generate(s.Graph)
	if setup.Data != "" {
		o := s.Files
		o.Seed = setup.Seed
		g, err = triples.Load(setup.Data, o)
	}
	if err != nil {
		return nil, err
	}
	cfg := s.Config
	cfg.Seed, cfg.Sampler = setup.Seed, 0
	t, err := kge.New(cfg, g)
	return &divided{inner, t}, err
}

// divided is a task each of whose workers has a part of the data for the whole run.
type divided struct {
	task.Task
	kge *kge.Task
}

func (d *divided) Train(ctx context.Context, env train.Env, o train.Options, seen *atomic.Int64) (*train.Report, error) {
	env.Seen = seen
	return train.Run(ctx, env, inAdvance{d.kge}, o)
}

type inAdvance struct{ *kge.Task }

func (t inAdvance) Chunks() int { return 0 }

func (t inAdvance) Trainer(w godwit.Worker, part train.Partition) (train.Trainer[kge.Batch], error) {
	tr, err := t.Task.Trainer(w, part)
	if err != nil {
		return nil, err
	}
	p := &inParts{Trainer: tr}
	from, to := schedule.Range(t.Task.Chunks(), part.Index, part.Count)
	for c := from; c < to; c++ {
		for step := range tr.Steps(1, c) {
			p.steps = append(p.steps, train.At{Chunk: c, Step: step})
		}
	}
	return p, nil
}

// inParts are the chunks of one worker, one after the other.
type inParts struct {
	train.Trainer[kge.Batch]
	steps []train.At
}

func (p *inParts) Steps(int, int) int { return len(p.steps) }

func (p *inParts) Load(b *train.Batch[kge.Batch], at train.At) {
	x := p.steps[at.Step]
	x.Epoch = at.Epoch
	p.Trainer.Load(b, x)
}
