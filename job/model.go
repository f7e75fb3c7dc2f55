package job

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/godwit-ps/godwit/checkpoint"
	"github.com/godwit-ps/godwit/data/export"
)

// A Model is a trained model that can be asked. It must be closed.
type Model struct {
	export.Source
	temp string // a folder that was made for it; empty: none
}

// Close removes what was made to read the model.
func (m *Model) Close() error {
	if m.temp == "" {
		return nil
	}
	return os.RemoveAll(m.temp)
}

// OpenModel opens a trained model: the folder of an export, or a checkpoint, as [checkpoint.OpenPlace] takes it. A checkpoint
// is exported to a temporary folder first, for which the data of the run are read again: they have the names of the rows.
func OpenModel(ctx context.Context, place string) (*Model, error) {
	store, number, err := checkpoint.SplitPlace(place)
	if err != nil {
		return nil, err
	}
	if number == 0 && !strings.Contains(place, "://") {
		src, err := export.Open(store)
		if err == nil {
			return &Model{Source: src}, nil
		}
		if !errors.Is(err, fs.ErrNotExist) || !hasCheckpoints(ctx, store) {
			return nil, err
		}
	}
	return openCheckpoint(ctx, place)
}

func hasCheckpoints(ctx context.Context, dir string) bool {
	s, err := checkpoint.OpenFolder(dir)
	if err != nil {
		return false
	}
	numbers, err := checkpoint.Numbers(ctx, s)
	return err == nil && len(numbers) > 0
}

func openCheckpoint(ctx context.Context, place string) (*Model, error) {
	temp, err := os.MkdirTemp("", "godwit-model-")
	if err != nil {
		return nil, fmt.Errorf("job: a folder for the model of the checkpoint %s: %w: set TMPDIR to one that can be written to", place, err)
	}
	m := &Model{temp: temp}
	dir := filepath.Join(temp, "model")
	r, err := ExportCheckpoint(ctx, place, NodeConfig{Export: dir, untested: true})
	if err == nil && r.ExportError != "" {
		err = errors.New(r.ExportError)
	}
	if err == nil {
		m.Source, err = export.Open(dir)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("job: the model of the checkpoint %s: %w", place, err), m.Close())
	}
	return m, nil
}
