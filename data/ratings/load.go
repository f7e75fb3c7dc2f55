package ratings

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/godwit-ps/godwit/data/setting"
)

// Options say which cells of the data are held out for the test.
type Options struct {
	// Split is the name of a split in a folder, such as "u1"; empty where there
	// is none.
	Split string
	// Test is the share of the cells of a single file to hold out, 0 … 0.9.
	Test float64
	// Seed decides which cells are held out.
	Seed uint64
}

// Check returns what is wrong with the options.
func (o Options) Check() error {
	if !(o.Test >= 0 && o.Test <= 0.9) {
		return setting.Bad("ratings.Options", "Test", o.Test, "a share of 0 … 0.9 to hold out")
	}
	if strings.ContainsAny(o.Split, `/\`) || o.Split == ".." {
		return setting.Bad("ratings.Options", "Split", strconv.Quote(o.Split), "the name of a split without a folder, such as \"u1\"")
	}
	return nil
}

// Load reads the matrix in a file or folder; the package comment describes
// them. Files are streamed, and each name is held once.
func Load(path string, o Options) (*Set, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	train, test, err := find(path, o.Split)
	if err != nil {
		return nil, err
	}
	l := newLoader()
	if l.set.Train, err = l.file(train); err != nil {
		return nil, err
	}
	if len(l.set.Train) == 0 {
		return nil, fmt.Errorf("ratings: %s holds no cells", train)
	}
	if test == "" {
		s := l.done()
		cells := len(s.Train)
		s.HoldOut(o.Test, o.Seed)
		if o.Test > 0 && len(s.Test) == 0 {
			return nil, fmt.Errorf("ratings: of the %d cells of %s, none can be held out for the test: a share of %v is %.1f of them, and each row and column keeps one to train; "+
				"have more cells, a larger share (--hold-out), or a folder with the files train and test", cells, train, o.Test, o.Test*float64(cells))
		}
		return s, nil
	}
	if l.set.Test, err = l.file(test); err != nil {
		return nil, err
	}
	return l.done(), nil
}

// Divided reports whether the data at a path have a file of their own to test on, that of a split if it is named, so that [Load] holds
// out none.
func Divided(path, split string) (bool, error) {
	_, test, err := find(path, split)
	return test != "", err
}

// singles are the names of files that hold a whole matrix.
var singles = []string{"u.data", "ratings.csv", "ratings.dat", "ratings.tsv", "ratings.mtx", "ratings.mmc"}

// find returns the files that Load is to read; test is empty if there is only
// one.
func find(path, split string) (train, test string, err error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", "", fmt.Errorf("ratings: %w", err)
	case !info.IsDir() && split != "":
		return "", "", fmt.Errorf("ratings: %s is a file, and split %q is one of a folder: name the folder with the files %s.base and %s.test", path, split, split, split)
	case !info.IsDir():
		return path, "", nil
	case split != "":
		return both(path, split, []string{".base"}, split, []string{".test"})
	}
	if found, err := present(path, singles); err != nil || len(found) == 1 {
		return strings.Join(found, ""), "", err
	} else if len(found) > 1 {
		return "", "", fmt.Errorf("ratings: both %s and %s exist: name the file that is meant", found[0], found[1])
	}
	return both(path, "train", endings(), "test", endings())
}

// both finds the files of a matrix in two parts.
func both(dir, train string, trainEnds []string, test string, testEnds []string) (string, string, error) {
	var files [2]string
	for i, x := range []struct {
		name string
		ends []string
	}{{train, trainEnds}, {test, testEnds}} {
		var names []string
		for _, end := range x.ends {
			names = append(names, x.name+end)
		}
		found, err := present(dir, names)
		switch {
		case err != nil:
			return "", "", err
		case len(found) == 0:
			return "", "", fmt.Errorf("ratings: no %s in %s, plain or .gz; a folder has the files S.base and S.test of a split S that is named, "+
				"or the files train and test, or one of %s: %w", strings.Join(names, ", "), dir, strings.Join(singles, ", "), fs.ErrNotExist)
		case len(found) > 1:
			return "", "", fmt.Errorf("ratings: both %s and %s exist: remove the one that is not meant", found[0], found[1])
		}
		files[i] = found[0]
	}
	return files[0], files[1], nil
}

// present returns which of the files there are, plain or compressed.
func present(dir string, names []string) (found []string, err error) {
	for _, name := range names {
		for _, gz := range []string{"", ".gz"} {
			path := filepath.Join(dir, name+gz)
			_, err := os.Stat(path)
			switch {
			case err == nil:
				found = append(found, path)
			case !errors.Is(err, fs.ErrNotExist):
				return nil, fmt.Errorf("ratings: %w", err)
			}
		}
	}
	return found, nil
}
