package bucket_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"

	"gocloud.dev/blob"
	"gocloud.dev/blob/memblob"

	"github.com/godwit-ps/godwit/checkpoint"
	"github.com/godwit-ps/godwit/checkpoint/bucket"
)

func init() {
	bucket.Register("mem", nil)
	bucket.Register("nodriver", nil)
}

// A program registers the schemes whose drivers it links. Then their URLs are places of checkpoints.
func Example() {
	ctx := context.Background()
	s, err := checkpoint.OpenStore(ctx, "mem:///runs/kge")
	if err != nil {
		panic(err)
	}
	lock, err := checkpoint.Acquire(ctx, s, checkpoint.Holder{Run: "example"})
	if err != nil {
		panic(err)
	}
	defer lock.Release()
	_, err = checkpoint.Open(ctx, s, 0)
	fmt.Println(err)
	// Output: checkpoint: there is no checkpoint at mem:///runs/kge
}

func open(t *testing.T) checkpoint.Store {
	t.Helper()
	s, err := checkpoint.OpenStore(t.Context(), "mem:///runs")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func write(text string) func(w io.Writer) error {
	return func(w io.Writer) error { _, err := io.WriteString(w, text); return err }
}

func TestObjectsAreWholeOrNotThere(t *testing.T) {
	ctx, s := t.Context(), open(t)
	if err := s.Create(ctx, "a", write("0123456789")); err != nil {
		t.Fatal(err)
	}
	if err := s.Create(ctx, "a", write("other")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("created twice: %v", err)
	}
	broken := errors.New("the writer broke")
	err := s.Create(ctx, "b", func(w io.Writer) error {
		_, err := io.WriteString(w, strings.Repeat("x", 1<<20))
		return errors.Join(err, broken)
	})
	if !errors.Is(err, broken) {
		t.Errorf("a broken writer: %v", err)
	}
	if _, err := s.Size(ctx, "b"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what was not written whole is there: %v", err)
	}
	for _, c := range []struct {
		off, n int64
		want   string
	}{{0, 100, "0123456789"}, {3, 4, "3456"}, {10, 5, ""}, {20, 5, ""}, {4, 0, ""}} {
		r, err := s.Read(ctx, "a", c.off, c.n)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(r); string(b) != c.want || err != nil {
			t.Errorf("%d bytes from %d on: %q, %v, want %q", c.n, c.off, b, err, c.want)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := errors.Join(s.Put(ctx, "a", []byte("new")), s.Put(ctx, "ab", nil), s.Remove(ctx, "nothing")); err != nil {
		t.Error(err)
	}
	if n, err := s.Size(ctx, "a"); n != 3 || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	all, err := s.List(ctx, "a")
	if err != nil || fmt.Sprint(all) != "[{a 3} {ab 0}]" {
		t.Errorf("there are %v, %v", all, err)
	}
	if _, err := s.Read(ctx, "nothing", 0, 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("read what there is not: %v", err)
	}
}

// A client that loses the answer to an upload asks again, and is told then that the object is there. If it is the same one, that is no error.
func TestAnObjectThatThisCallHasMadeIsNoError(t *testing.T) {
	ctx, s := t.Context(), open(t)
	meanwhile := func(text string) func(w io.Writer) error { // the object is there before the writer's end
		return func(w io.Writer) error { return errors.Join(s.Put(ctx, "a", []byte(text)), write("mine")(w)) }
	}
	if err := s.Create(ctx, "a", meanwhile("mine")); err != nil {
		t.Errorf("made by this call: %v", err)
	}
	if err := s.Remove(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	if err := s.Create(ctx, "a", meanwhile("other")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("made by another: %v", err)
	}
}

// Uploads that nobody will complete are ended where the store needs that, those of objects in the folder only.
func TestUploadsThatNobodyCompletesAreEnded(t *testing.T) {
	if n, err := open(t).Clean(t.Context()); n != 0 || err != nil {
		t.Errorf("a store without a cleaner ended %d uploads, %v", n, err)
	}
	failed := errors.New("forbidden")
	bucket.Register("cleaned", func(_ context.Context, _ *blob.Bucket, name, prefix string, mine func(string) bool) (int, error) {
		if name != "b" || prefix != "runs/"+checkpoint.Prefix {
			t.Errorf("the bucket is %q, and the prefix %q", name, prefix)
		}
		object := checkpoint.Prefix + "0000000001.jsonl"
		for key, want := range map[string]bool{"runs/" + object: true, object: false, "runs/" + checkpoint.Prefix: false, "others/" + object: false} {
			if mine(key) != want {
				t.Errorf("%s is of the place: %v, want %v", key, mine(key), want)
			}
		}
		return 3, failed
	})
	blob.DefaultURLMux().RegisterBucket("cleaned", &memblob.URLOpener{})
	s, err := checkpoint.OpenStore(t.Context(), "cleaned://b/runs/")
	if err != nil {
		t.Fatal(err)
	}
	if n, err := s.Clean(t.Context()); n != 3 || !errors.Is(err, failed) {
		t.Errorf("%d uploads, %v", n, err)
	}
}

func TestURLsAreNotRepeatedInErrors(t *testing.T) {
	_, err := checkpoint.OpenStore(t.Context(), "nodriver://user:password@host/runs?key=secret")
	if err == nil || !strings.Contains(err.Error(), "nodriver://host/runs") || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "password") {
		t.Errorf("the error is %v", err)
	}
}
