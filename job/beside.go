package job

import (
	"fmt"
	"os"
	"path/filepath"
)

// Beside returns where the checkpoints of a run are that has an export and no other place for them ([Spec].Temporary).
func Beside(export string) string { return filepath.Clean(export) + ".checkpoints" }

// former is where the checkpoints are put that an earlier run has left beside the export, when another one begins anew.
func former(place string) string { return place + ".former" }

// saveBeside has the checkpoints of a run written beside its export, if they have no other place.
func (s *Spec) saveBeside(c *NodeConfig) error {
	if s.Checkpoint != "" || c.Export == "" || c.frozen {
		return nil
	}
	dir, err := filepath.Abs(Beside(c.Export))
	if err != nil {
		return fmt.Errorf("job: the place of checkpoints beside the export: %w", err)
	}
	s.Checkpoint, s.Temporary, s.Keep = dir, true, 1
	return nil
}

// setAside renames the folder of checkpoints of an earlier run. Earlier ones that were set aside are removed.
func setAside(dir string) error {
	if err := moveAway(dir, former(dir)); err != nil {
		return fmt.Errorf("job: setting the checkpoints of an earlier run aside: %w", err)
	}
	return nil
}

// discard removes the folder of checkpoints of a run that has ended, whose lock the caller holds. It is renamed first: another run takes a lock of
// its own then, in a folder of its own, and not that of a folder of which a part is removed. What cannot be removed costs its space only.
func discard(dir string) {
	ended := dir + ".ended"
	if moveAway(dir, ended) == nil {
		dir = ended
	}
	_ = os.RemoveAll(dir)
}

// moveAway renames a folder. What an earlier run has left under the new name is removed.
func moveAway(dir, to string) error {
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	return os.Rename(dir, to)
}
