package traintest

import (
	"context"
	"fmt"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/export"
)

// An Exporter is a task that can write its model down.
type Exporter interface {
	Export(ctx context.Context, w godwit.Worker, s *export.Set) error
}

// Export writes the model of a task to a folder, and checks that what is described
// there is what is there.
func Export(ctx context.Context, t Exporter, w godwit.Worker, dir string) error {
	if err := export.Write(dir, "test", func(s *export.Set) error { return t.Export(ctx, w, s) }); err != nil {
		return err
	}
	m, err := export.Read(dir)
	if err != nil {
		return err
	}
	if m.Model == "" {
		return fmt.Errorf("the model in %s has no name", dir)
	}
	for _, f := range m.Files {
		if f.Layout == "" || len(f.Shape) == 0 {
			return fmt.Errorf("%s in %s has no layout or no shape", f.Name, dir)
		}
		if err := m.Verify(dir, f.Name); err != nil {
			return err
		}
	}
	return nil
}
