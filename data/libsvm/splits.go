package libsvm

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/godwit-ps/godwit/data/setting"
)

// Splits are examples to train, to validate and to test on. All sets have the
// same width.
type Splits struct {
	Train *Set // to learn from
	Valid *Set // for evaluations during training; may be empty
	Test  *Set // for the evaluation at the end; may be empty

	mended int // lines that were not UTF-8
}

// A Share is how much of the training examples is held out where a split has no
// file of its own: the first and every N-th example from there for Test, then likewise of
// the others for Valid. 0 holds out none. Where the order of a file has a period, as where
// labels alternate, so has what is held out.
type Share struct {
	Valid int // 2 or more: every Valid-th example; 0: none
	Test  int // 2 or more: every Test-th example; 0: none
}

// Check returns what is wrong with the share.
func (s Share) Check() error {
	for _, x := range []struct {
		field string
		n     int
	}{{"Valid", s.Valid}, {"Test", s.Test}} {
		if x.n < 0 || x.n == 1 {
			return setting.Bad("libsvm.Share", x.field, x.n, "0 (hold out none) or 2 and more")
		}
	}
	return nil
}

// LoadSplits reads examples at a path, which is one of:
//
//   - a file of training examples. If there is a file beside it whose name says
//     that it holds its tests (a9a.t for a9a, a9a.t.gz for a9a.gz), that is Test.
//   - a folder, whose files say in their names what they are for by one of the
//     words train, valid (validation, dev) and test (t) between dots, dashes or
//     underscores, as "train.gz", "frappe.test.libfm" or "ads_valid.txt". A file
//     without any of them is for training, if there is one only.
//
// What has no file is held out of the training examples, as share says.
func LoadSplits(path string, o Options, share Share) (*Splits, error) {
	if err := share.Check(); err != nil {
		return nil, err
	}
	files, err := find(path)
	if err != nil {
		return nil, err
	}
	s := &Splits{}
	for i, set := range s.sets() {
		if files[i] == "" {
			continue
		}
		if *set, err = Load(files[i], o); err != nil {
			return nil, err
		}
		s.mended += (*set).mended
		// That to train is the first to be read.
		if o.Classes, o.Target = s.Train.Classes, ToClasses; len(o.Classes) == 0 {
			o.Target = ToValues
		}
	}
	all := s.Train.Len()
	if s.HoldOut(share); s.Train.Len() == 0 {
		return nil, fmt.Errorf("libsvm: %s: all examples to train, %d, are held out for the test and to validate: give more, or files of their own for these, or hold out less (--hold-test, --hold-valid)", files[0], all)
	}
	return s, nil
}

// Divided reports whether the examples at a path have files of their own to validate and to test on, so that [LoadSplits] holds out none
// for that.
func Divided(path string) (valid, test bool, err error) {
	files, err := find(path)
	return files[1] != "", files[2] != "", err
}

func (s *Splits) sets() [3]**Set { return [3]**Set{&s.Train, &s.Valid, &s.Test} }

// HoldOut takes the sets that are nil out of Train and gives all the same width.
func (s *Splits) HoldOut(share Share) {
	for _, x := range []struct {
		set **Set
		n   int
	}{{&s.Test, share.Test}, {&s.Valid, share.Valid}} {
		switch {
		case *x.set != nil:
		case x.n > 0:
			s.Train, *x.set = s.Train.Split(x.n)
		default:
			*x.set = &Set{Classes: s.Train.Classes}
		}
	}
	width := max(s.Train.Width, s.Valid.Width, s.Test.Width)
	s.Train.Width, s.Valid.Width, s.Test.Width = width, width, width
}

// find returns the files of train, valid and test; empty where there is none.
func find(path string) (files [3]string, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return files, fmt.Errorf("libsvm: %w", err)
	}
	if !info.IsDir() {
		files[0] = path
		stem, zip := strings.CutSuffix(path, ".gz")
		tests := stem + ".t"
		if zip {
			tests += ".gz"
		}
		if _, err := os.Stat(tests); err == nil {
			files[2] = tests
		}
		return files, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return files, fmt.Errorf("libsvm: %w", err)
	}
	var plain []string
	for _, e := range entries {
		if e.IsDir() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		name := filepath.Join(path, e.Name())
		i, ok := purpose(e.Name())
		if !ok {
			plain = append(plain, name)
			continue
		}
		if files[i] != "" {
			return files, fmt.Errorf("libsvm: both %s and %s are for the same; remove the one that is not meant", files[i], name)
		}
		files[i] = name
	}
	if files[0] == "" && len(plain) == 1 {
		files[0] = plain[0]
	}
	if files[0] == "" {
		return files, fmt.Errorf("libsvm: no file in %s is for training; have one whose name says train, or name the file itself", path)
	}
	return files, nil
}

var purposes = [3][]string{{"train", "training"}, {"valid", "validation", "val", "dev"}, {"test", "t"}}

// purpose tells what a file is for by its name: 0 train, 1 valid, 2 test.
func purpose(name string) (int, bool) {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r == '.' || r == '-' || r == '_' })
	for i, ps := range purposes {
		if slices.ContainsFunc(words, func(w string) bool { return slices.Contains(ps, w) }) {
			return i, true
		}
	}
	return 0, false
}
