package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/godwit-ps/godwit/data/export"
	"github.com/godwit-ps/godwit/train/task"
)

// probe finds out, before anything is waited for, whether the model can be written to
// Export, and profiles to Profile.
func (c *NodeConfig) probe(s *Spec) error {
	if c.Profile != "" {
		if err := probeProfile(c.Profile); err != nil {
			return err
		}
	}
	if c.Export == "" {
		return nil
	}
	_, err := export.Probe(c.Export, s.Task.Name())
	return err
}

// diskWarnings warns if the disk is too small for the tables of the model. How many bytes
// of it are written depends on the task: about as many.
func (c *NodeConfig) diskWarnings(s *Spec, t task.Task) []string {
	if c.Export == "" {
		return nil
	}
	free, err := export.Probe(c.Export, s.Task.Name())
	if err != nil || free < 0 {
		return nil // was probed already
	}
	var need float64
	for _, table := range t.Tables() {
		need += 4 * float64(table.Rows) * float64(table.Dim)
	}
	if float64(free) >= need {
		return nil
	}
	const mega = 1e6
	return []string{fmt.Sprintf("%.0f MB are free at %s, and the model may take %.0f MB there", float64(free)/mega, c.Export, need/mega)}
}

// export writes the model to the folder of the configuration or, if that fails,
// elsewhere. It
// ends the run only if the model cannot be read.
func (p *part) export(ctx context.Context) error {
	err := p.exportTo(ctx, p.cfg.Export)
	if err == nil || ctx.Err() != nil || p.session.Err() != nil {
		return err
	}
	p.result.ExportError = err.Error()
	for _, dir := range rescueFolders(p.run) {
		rerr := p.exportTo(ctx, dir)
		if rerr == nil {
			p.result.ExportError += "; the model was written to " + dir + " instead"
			return nil
		}
		if ctx.Err() != nil || p.session.Err() != nil {
			return errors.Join(err, rerr)
		}
		p.result.ExportError += "; nor can it be rescued: " + rerr.Error()
	}
	return nil
}

// rescueFolders are where a model is written that cannot be written where it should.
func rescueFolders(run string) (dirs []string) {
	name := "godwit-rescued-" + run
	dirs = append(dirs, filepath.Join(os.TempDir(), name))
	if home, err := os.UserHomeDir(); err == nil {
		dirs = append(dirs, filepath.Join(home, name))
	}
	if here, err := os.Getwd(); err == nil {
		dirs = append(dirs, filepath.Join(here, name))
	}
	return dirs
}

// exportTo writes the model to a folder.
func (p *part) exportTo(ctx context.Context, dir string) error {
	s, err := export.Create(dir, p.spec.Task.Name())
	if err != nil {
		return err
	}
	defer s.Abort()
	if err := p.task.Export(ctx, p.node.Worker(0), s); err != nil {
		return fmt.Errorf("export to %s: %w", dir, err)
	}
	if s.Model.Run, err = p.describe(); err != nil {
		return fmt.Errorf("export to %s: %w", dir, err)
	}
	s.Model.Version = Version()
	if err := s.Commit(); err != nil {
		return err
	}
	p.result.Exported = dir
	return nil
}

// describe returns the description of how the model was trained.
func (p *part) describe() (*export.Run, error) {
	spec, err := p.spec.Encode()
	if err != nil {
		return nil, err
	}
	metrics := map[string]Metrics{}
	for name, ms := range p.metrics {
		metrics[name] = ms
	}
	if len(p.result.Test) > 0 {
		metrics[onTest] = p.result.Test
	}
	if len(p.result.Untrained) > 0 {
		metrics["untrained"] = p.result.Untrained
	}
	encoded, err := json.Marshal(metrics)
	if err != nil {
		return nil, err
	}
	data := p.cfg.Data
	if data == "" {
		data = p.spec.Data
	}
	return &export.Run{
		Name: p.run, Spec: spec, Seed: p.spec.Seed, Epochs: p.result.Epochs, End: string(p.result.End), Metrics: encoded,
		Data: export.Data{Path: data, About: p.task.Summary(), Fingerprint: p.task.Data()},
	}, nil
}
