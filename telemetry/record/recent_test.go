package record

import (
	"fmt"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
)

// segmented writes samples of about so many bytes, one a second, to files of so many each, and returns the folder.
func segmented(t testing.TB, samples, perFile, bytes int) string {
	t.Helper()
	dir := t.TempDir()
	w := create(t, dir, 1)
	for i := range samples {
		s := sampleAt(i)
		s.Whole = []Whole{{Name: strings.Repeat("w", bytes)}}
		if w.Add(s); (i+1)%perFile == 0 {
			w.size = segmentBytes
		}
	}
	closed(t, w)
	return dir
}

// Of a long run the ends are read: at least the time that was asked for, not much more, and then what follows.
func TestOfALongRunTheEndIsRead(t *testing.T) {
	for _, x := range []struct{ samples, perFile, bytes, span, most int }{
		{300, 1000, 4000, 60, 120}, // within a file
		{300, 280, 4000, 60, 120},  // from one file to the next
		{300, 300, 4000, 60, 120},  // the last file has no sample
		{300, 100, 4000, 150, 210}, // from one file over a second to a third
		{40, 7, 4000, 60, 40},      // all
		{20, 9, 100_000, 8, 14},    // lines that are longer than a stride
	} {
		name := fmt.Sprintf("%+v", x)
		dir := segmented(t, x.samples, x.perFile, x.bytes)
		all, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Recent(dir, time.Duration(x.span)*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		got, want := r.Nodes[1].Samples, all.Nodes[1].Samples
		if n := len(got); n < min(x.samples, x.span+1) || n > x.most || !reflect.DeepEqual(got, want[len(want)-n:]) || r.Bad > 0 {
			t.Errorf("%s: %d samples were read, and %d are bad, want the last %d to %d", name, n, r.Bad, x.span+1, x.most)
		}
		if h := r.Nodes[1].Header; h != all.Nodes[1].Header {
			t.Errorf("%s: the header is %+v, want that of the first file, %+v", name, h, all.Nodes[1].Header)
		}
		if more, err := r.Poll(); more || err != nil {
			t.Errorf("%s: nothing was added, and Poll says %v, %v", name, more, err)
		}
	}
}

// What a file has besides samples is passed over where it is looked at from its end, too.
func TestTheEndOfADamagedFileIsRead(t *testing.T) {
	dir := segmented(t, 300, 1000, 4000)
	path := segmentPath(dir, 1, 1)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := len(b) / 2; i < len(b)-100; i += 9000 {
		b[i-i%4400] = '\n'
	}
	if err := os.WriteFile(path, append(b, `{"t":7`...), 0o666); err != nil {
		t.Fatal(err)
	}
	all, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Recent(dir, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	got, want := r.Nodes[1].Samples, all.Nodes[1].Samples
	if n := len(got); all.Bad == 0 || n == len(want) || n == 0 || want[len(want)-1].Time-got[0].Time < int64(time.Minute) || !reflect.DeepEqual(got, want[len(want)-n:]) {
		t.Errorf("%d samples of %d were read, and %d lines of all are bad", n, len(want), all.Bad)
	}
}

// Who goes through samples one by one sees those that Open holds: their fronts, and all of them when asked for.
func TestEachSampleIsSeenOnce(t *testing.T) {
	dir := segmented(t, 40, 9, 200)
	path := segmentPath(dir, 1, 2)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	torn := strings.Index(string(b), `,"sent"`) + 20
	if err := os.WriteFile(path, append(append(b[:torn:torn], '\n'), b...), 0o666); err != nil {
		t.Fatal(err)
	}
	all, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Outline(dir)
	if err != nil || len(r.Nodes) != 2 || len(r.Nodes[1].Samples) > 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	want, read, second := all.Nodes[1].Samples, int64(0), 0
	i := 0
	see := func(f *Front) {
		whole, err := f.Whole()
		if err != nil || !reflect.DeepEqual(whole, want[i]) {
			t.Fatalf("sample %d is %+v (%v), want %+v", i, whole, err, want[i])
		}
		if f.Time != want[i].Time || f.Replicas != want[i].Replicas || !reflect.DeepEqual(f.Waits, want[i].Waits) || len(f.Tables) > 0 {
			t.Fatalf("the front of sample %d is %+v", i, f.Sample)
		}
		second += f.Half
		i++
	}
	last, err := r.Each(1, func(before, now *Front) {
		if i == 0 {
			see(before)
		}
		if before.Time != want[i-1].Time {
			t.Fatalf("before sample %d comes one of time %d", i, before.Time)
		}
		see(now)
	}, func(bytes int) { read += int64(bytes) })
	if err != nil || i != len(want) || last.Time != want[i-1].Time || r.Bad != all.Bad || r.Bad != 1 || r.Nodes[1].Header != all.Nodes[1].Header {
		t.Errorf("%d samples of %d, %d bad lines, header %+v, %v", i, len(want), r.Bad, r.Nodes[1].Header, err)
	}
	if read != r.Bytes(1) || math.Abs(float64(second)-float64(i)/2) > 2 {
		t.Errorf("%d of %d bytes were told, and %d of %d samples are in the second half", read, r.Bytes(1), second, i)
	}
	if _, err := Outline(t.TempDir()); err == nil {
		t.Error("an empty folder has an outline")
	}
}
