//go:build !linux && !darwin

package checkpoint

import "errors"

func renameNew(_, _ string) error { return errors.ErrUnsupported }
