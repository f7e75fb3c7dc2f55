//go:build !unix

package checkpoint

import (
	"context"
	"errors"
)

func canLock(*Folder) bool { return false }

func lockFolder(context.Context, *Folder, Holder) (*Lock, error) { return nil, errors.ErrUnsupported }
