package ratings

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/godwit-ps/godwit/data/lines"
)

// readCoordinate reads a matrix in the coordinate format of Matrix Market
// (Boisvert, Pozo, Remington, NISTIR 5935, 1996).
func (l *loader) readCoordinate(s *lines.Scanner, path string) (cells []Rating, err error) {
	if !s.Scan() {
		if s.Err() != nil {
			return nil, s.Err()
		}
		return nil, fmt.Errorf("%s: the file is empty, want a first line %q", path, bannerWanted)
	}
	if err := checkBanner(s.Text()); err != nil {
		return nil, s.Fail(err)
	}
	left := int64(-1) // cells to come; -1 before the line with the sizes
	for s.Scan() {
		text := bytes.TrimSpace(s.Text())
		switch {
		case len(text) == 0 || text[0] == '%':
			continue
		case left < 0:
			if left, err = l.sizes(text, path); err == nil {
				cells = make([]Rating, 0, min(left, 1<<12)) // the line may promise too much
			}
		case left == 0:
			err = errors.New("more cells than the line with the sizes says")
		default:
			left--
			var c Rating
			if c, err = l.cell(text); err == nil {
				cells = append(cells, c)
			}
		}
		if err != nil {
			return nil, s.Fail(err)
		}
	}
	switch {
	case s.Err() != nil:
		return nil, s.Err()
	case left < 0:
		return nil, fmt.Errorf("%s: no line with the numbers of rows, columns and cells", path)
	case left > 0:
		return nil, fmt.Errorf("%s: the file ends %d cells early, is it truncated?", path, left)
	}
	return cells, nil
}

const bannerWanted = "%%MatrixMarket matrix coordinate real general"

func checkBanner(text []byte) error {
	got := strings.Fields(strings.ToLower(string(text)))
	want := strings.Fields(strings.ToLower(bannerWanted))
	if len(got) == len(want) && got[3] == "integer" {
		got[3] = "real"
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("the first line is %.80q, want %q (or integer for real)", text, bannerWanted)
	}
	return nil
}

// sizes reads the line with the sizes, which all files of a set have alike.
func (l *loader) sizes(text []byte, path string) (cells int64, err error) {
	f := bytes.Fields(text)
	if len(f) != 3 {
		return 0, fmt.Errorf("%d numbers, want those of rows, columns and cells", len(f))
	}
	var n [3]int64
	for i, most := range [3]int64{math.MaxInt32, math.MaxInt32, 1 << 48} {
		if n[i], err = strconv.ParseInt(string(f[i]), 10, 64); err != nil || n[i] < 1 && i < 2 || n[i] < 0 || n[i] > most {
			return 0, fmt.Errorf("number %d is %.40q, want rows, columns (1 … %d each) and cells", i+1, f[i], math.MaxInt32)
		}
	}
	rows, cols := int(n[0]), int(n[1])
	if l.sized != "" && (rows != l.set.Rows || cols != l.set.Cols) {
		return 0, fmt.Errorf("a matrix of %d rows and %d columns, but that of %s has %d and %d", rows, cols, l.sized, l.set.Rows, l.set.Cols)
	}
	l.set.Rows, l.set.Cols, l.sized = rows, cols, path
	return n[2], nil
}

// cell reads "row column value".
func (l *loader) cell(text []byte) (c Rating, err error) {
	var f [3][]byte
	rest := text
	for i := range f {
		end := bytes.IndexAny(rest, " \t")
		if end < 0 {
			end = len(rest)
		}
		f[i], rest = rest[:end], bytes.TrimLeft(rest[end:], " \t")
	}
	if len(f[2]) == 0 || len(rest) > 0 {
		return c, fmt.Errorf("%.80q, want row, column and value, separated by spaces", text)
	}
	if c.Row, err = place("row", f[0], l.set.Rows); err != nil {
		return c, err
	}
	if c.Col, err = place("column", f[1], l.set.Cols); err != nil {
		return c, err
	}
	c.Value, err = value(f[2])
	return c, err
}

// place reads the number of a row or column, from 1 on.
func place(what string, text []byte, n int) (uint32, error) {
	x, err := strconv.ParseUint(string(text), 10, 64)
	if err != nil || x < 1 || x > uint64(n) {
		return 0, fmt.Errorf("the %s is %.40q, want 1 … %d", what, text, n)
	}
	return uint32(x - 1), nil
}
