// Package folder has what folders of runs have in common, whatever is written there.
package folder

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Glob returns the paths within a folder that match one of some patterns, each a path relative to the folder. The folder's own name is
// no pattern.
func Glob(dir string, patterns ...string) (paths []string, err error) {
	for _, p := range patterns {
		found, err := fs.Glob(os.DirFS(dir), p)
		if err != nil {
			return nil, err
		}
		for _, name := range found {
			paths = append(paths, filepath.Join(dir, filepath.FromSlash(name)))
		}
	}
	slices.Sort(paths)
	return paths, nil
}

// Run returns the folder of a run: dir, or the only one in it that has something of these patterns; dir, if there is none. Of a run that has gone on by
// itself, and has a folder for each time, it is the last one.
func Run(dir string, patterns ...string) (string, error) {
	if _, err := os.Stat(dir); err != nil {
		return "", err
	}
	var runs []string
	for _, within := range []string{"", "*/"} {
		for _, p := range patterns {
			found, err := Glob(dir, within+p)
			if err != nil {
				return "", err
			}
			for _, run := range found {
				for range strings.Count(p, "/") + 1 {
					run = filepath.Dir(run)
				}
				runs = append(runs, run)
			}
		}
		if len(runs) > 0 {
			break
		}
	}
	slices.Sort(runs)
	switch runs = slices.Compact(runs); len(runs) {
	case 0:
		return dir, nil
	case 1:
		return runs[0], nil
	}
	if last, ok := last(runs); ok {
		return last, nil
	}
	return "", fmt.Errorf("%s has several runs, name one: %s", dir, strings.Join(runs, ", "))
}

// last returns the last one of some folders if all are of one run, which went on by itself.
func last(dirs []string) (dir string, ok bool) {
	name, most := Restarts(filepath.Base(dirs[0]))
	dir = dirs[0]
	for _, d := range dirs[1:] {
		run, n := Restarts(filepath.Base(d))
		if run != name {
			return "", false
		}
		if n > most {
			dir, most = d, n
		}
	}
	return dir, true
}

// Next closes a file, if there is one, and makes the next, which must not be there.
func Next(old *os.File, path string) (*os.File, error) {
	if old != nil {
		if err := old.Close(); err != nil {
			return nil, err
		}
	}
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
}
