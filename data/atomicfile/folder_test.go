package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godwit-ps/godwit/internal/seedtest"
)

func anything(string) error { return nil }

// put writes a folder of files that all hold text.
func put(dir, text string, names ...string) (err error) {
	s, err := CreateFolder(dir, anything)
	if err != nil {
		return err
	}
	defer s.Abort()
	for _, name := range names {
		if err := Write(s.Path(name), func(w io.Writer) error { _, err := io.WriteString(w, text); return err }); err != nil {
			return err
		}
	}
	return s.Commit()
}

// names lists a folder.
func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// same returns what all the files of a folder hold, with their names.
func same(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	found := ""
	for i, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return "", err
		}
		if i > 0 && !strings.HasSuffix(found, string(b)) {
			return "", fmt.Errorf("the files differ: %s %s after %s", e.Name(), b, found)
		}
		found += e.Name() + string(b)
	}
	return found, nil
}

func TestAFolderReplacesTheOldOne(t *testing.T) {
	up := t.TempDir()
	dir := filepath.Join(up, "new", "set")
	for i, files := range [][]string{{"a", "b"}, {"c"}, {"a", "b", "c"}, {}} {
		if err := put(dir, fmt.Sprint(i), files...); err != nil {
			t.Fatal(err)
		}
		if got := names(t, dir); !slices.Equal(got, files) {
			t.Errorf("the folder has %v, want %v", got, files)
		}
		if left := names(t, filepath.Dir(dir)); len(left) != 1 {
			t.Errorf("beside the folder there are %v", left)
		}
	}
	link := filepath.Join(up, "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	if err := put(link, "x", "y"); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(dir)
	if err != nil || !slices.Equal(names(t, dir), []string{"y"}) || info.Mode().Perm() != 0o750 {
		t.Errorf("through a link: %v, %v", names(t, dir), err)
	}
}

func TestAnAbortedFolderLeavesTheOldOne(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "set")
	if err := put(dir, "old", "a"); err != nil {
		t.Fatal(err)
	}
	s, err := CreateFolder(dir, anything)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.Path("b"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	s.Abort()
	s.Abort()
	if err := s.Commit(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("an aborted folder was committed: %v", err)
	}
	if got, err := same(dir); got != "aold" || err != nil {
		t.Errorf("the folder has %s, %v", got, err)
	}
	if left := names(t, filepath.Dir(dir)); len(left) != 1 {
		t.Errorf("beside the folder there are %v", left)
	}
}

func TestWhatMayNotBeReplacedIsRefusedAtOnceAndAtTheEnd(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "set")
	if err := put(dir, "old", "a"); err != nil {
		t.Fatal(err)
	}
	taken := errors.New("taken")
	if _, err := CreateFolder(dir, func(string) error { return taken }); !errors.Is(err, taken) {
		t.Errorf("a folder that may not be replaced: %v", err)
	}
	for from := 2; from <= 3; from++ { // the second look is before the exchange, the third after it
		calls := 0
		s, err := CreateFolder(dir, func(string) error {
			if calls++; calls >= from {
				return taken
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Commit(); !errors.Is(err, taken) {
			t.Errorf("at look %d: %v", from, err)
		}
		s.Abort()
		if got, err := same(dir); got != "aold" || err != nil {
			t.Errorf("the folder has %s, %v", got, err)
		}
	}
}

func TestFoldersThatCannotBeReplacedAreNamed(t *testing.T) {
	up := t.TempDir()
	file := filepath.Join(up, "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(up, "nothing"), filepath.Join(up, "dangling")); err != nil {
		t.Fatal(err)
	}
	here := filepath.Join(up, "here")
	if err := os.Mkdir(here, 0o777); err != nil {
		t.Fatal(err)
	}
	t.Chdir(here)
	for dir, want := range map[string]string{
		file:                            "is a file",
		filepath.Join(file, "x"):        "not a directory",
		filepath.Join(up, "dangling"):   "symbolic link to nothing",
		".":                             "current folder",
		here:                            "current folder",
		"/proc":                         "mounted",
		"/proc/x":                       "/proc",
		"/":                             "mounted",
		filepath.Join(up, "a\x00", "b"): "invalid",
	} {
		if _, err := Probe(dir, anything); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want to hear of %q", dir, err, want)
		}
	}
	free, err := Probe(filepath.Join(up, "new"), anything)
	if err != nil || free == 0 {
		t.Errorf("a folder that can be made: %d bytes free, %v", free, err)
	}
	if left := names(t, up); len(left) != 3 {
		t.Errorf("probing leaves %v", left)
	}
}

func TestWhatKilledProcessesLeftIsRemoved(t *testing.T) {
	up := t.TempDir()
	dir := filepath.Join(up, "set")
	live, err := CreateFolder(dir, anything)
	if err != nil {
		t.Fatal(err)
	}
	defer live.Abort()
	for _, name := range []string{".set.godwit-DEAD", ".set.godwit-DEAD2.old", ".set2.godwit-DEAD", ".set.godwitx"} {
		if err := os.MkdirAll(filepath.Join(up, name, "below"), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	// The folder is missing since a process was killed between two renames.
	if err := put(dir, "new", "a"); err != nil {
		t.Fatal(err)
	}
	if got, want := names(t, up), []string{filepath.Base(live.temp), ".set.godwitx", ".set2.godwit-DEAD", "set"}; !slices.Equal(got, want) {
		t.Errorf("there are %v, want %v", got, want)
	}
	if err := live.Commit(); err != nil {
		t.Errorf("the other process's folder: %v", err)
	}
}

func TestAnOldFolderIsPutBackAfterAKillBetweenTwoRenames(t *testing.T) {
	up := t.TempDir()
	dir := filepath.Join(up, "set")
	if err := put(dir, "old", "a"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir, filepath.Join(up, ".set.godwit-DEAD.old")); err != nil {
		t.Fatal(err)
	}
	s, err := CreateFolder(dir, anything)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Abort()
	if got, err := same(dir); got != "aold" || err != nil {
		t.Errorf("the folder has %s, %v", got, err)
	}
}

func TestFoldersAreReplacedByRenamesToo(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "set")
	if err := put(dir, "old", "a"); err != nil {
		t.Fatal(err)
	}
	for _, refuse := range []bool{true, false} {
		s, err := CreateFolder(dir, anything)
		if err != nil {
			t.Fatal(err)
		}
		if refuse {
			s.replaceable = func(string) error { return errors.New("taken") }
		}
		old, err := s.placeByRenames()
		if (err != nil) != refuse || (old == "") != refuse {
			t.Errorf("refuse %v: %q, %v", refuse, old, err)
		}
		if !refuse {
			if got, err := same(dir); got != "" || err != nil {
				t.Errorf("the folder has %s, %v", got, err)
			}
		} else if got, err := same(dir); got != "aold" || err != nil {
			t.Errorf("the folder has %s, %v", got, err)
		}
		s.Abort()
	}
}

// The other process of the next test writes sets without an end, of two or three
// files that all hold the same.
func TestMain(m *testing.M) {
	if dir := os.Getenv("WRITE_SETS_TO"); dir != "" {
		for i := 0; ; i++ {
			if err := put(dir, fmt.Sprint(i%10), []string{"a", "b", "c"}[:2+i%2]...); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		}
	}
	os.Exit(m.Run())
}

func TestAKillLeavesTheOldFolderOrTheNewOne(t *testing.T) {
	random := seedtest.Rand(t)
	up := t.TempDir()
	dir := filepath.Join(up, "set")
	for range 30 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "WRITE_SETS_TO="+dir)
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for names(t, up) == nil { // until it has begun
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Duration(random.Int64N(int64(30 * time.Millisecond))))
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() == 1 {
			t.Fatalf("it ended by itself: %v", err)
		}
		if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
			continue // killed before the first folder was there
		}
		got, err := same(dir)
		if len(got) != 4 && len(got) != 6 || err != nil {
			t.Fatalf("the folder is %q, %v", got, err)
		}
	}
	if err := put(dir, "x", "a"); err != nil {
		t.Fatal(err)
	}
	if got, err := same(dir); got != "ax" || err != nil || len(names(t, up)) != 1 {
		t.Errorf("after all that the folder is %q, %v, beside it are %v", got, err, names(t, up))
	}
}

// What a killed process had begun is no folder, also where none is left of the name.
func TestAnUnfinishedFolderIsNotTakenForTheFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "model")
	begun := filepath.Join(filepath.Dir(dir), ".model"+unfinished+"ABCDEFGHIJKL")
	if err := os.Mkdir(begun, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(begun, "half"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	s, err := CreateFolder(dir, anything)
	if err != nil {
		t.Fatal(err)
	}
	s.Abort()
	if left := names(t, filepath.Dir(dir)); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}
