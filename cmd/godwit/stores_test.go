package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"gocloud.dev/blob"

	"github.com/godwit-ps/godwit/checkpoint"
	"github.com/godwit-ps/godwit/internal/seedtest"
)

const secret = "wJalrXUtnFEMIK7MDENGbPxRfiCY"

// s3Server starts an S3 server. Each request goes through front, if that is not nil, which returns whether it has answered
// it itself.
func s3Server(t *testing.T, front func(w http.ResponseWriter, r *http.Request) bool) (place string) {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("models"); err != nil {
		t.Fatal(err)
	}
	fake := gofakes3.New(backend).Server()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if front == nil || !front(w, r) {
			fake.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE")
	t.Setenv("AWS_SECRET_ACCESS_KEY", secret)
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	return "s3://models/runs/kge?region=us-east-1&use_path_style=true&endpoint=" + server.URL
}

var storeTables = []checkpoint.Table{{Name: "t", Rows: 1 << 30, Dim: 1, Width: 1, Rule: "add", Init: "zero"}}

// store writes a checkpoint with a number of rows, and returns its digest.
func store(ctx context.Context, s checkpoint.Store, n, rows uint64) (checkpoint.Digest, error) {
	id := checkpoint.NewID(n)
	p, err := checkpoint.Write(ctx, s, id, 0, storeTables, func(w *checkpoint.Writer) error {
		for r := range rows {
			if err := w.Write(0, []uint64{r}, []float32{float32(r + n)}); err != nil {
				return err
			}
		}
		return w.Section("x", fmt.Append(nil, n))
	})
	if err != nil {
		return checkpoint.Digest{}, err
	}
	m := checkpoint.Manifest{ID: id, Run: "r", Task: "t", Tables: storeTables, Written: time.Unix(0, 0)}
	_, err = checkpoint.Commit(ctx, s, m, []*checkpoint.Piece{p})
	return p.Digest, err
}

func TestCheckpointsAreKeptInS3(t *testing.T) {
	place := s3Server(t, nil)
	s, err := checkpoint.OpenStore(t.Context(), place)
	if err != nil {
		t.Fatal(err)
	}
	for n := range uint64(3) {
		if _, err := store(t.Context(), s, n+1, 1000); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := store(t.Context(), s, 3, 1); err == nil {
		t.Error("checkpoint 3 was written twice")
	}
	for _, c := range []struct{ args, want string }{
		{"ls " + place, "3"},
		{"verify " + place, "checkpoint 3 is whole: 1000 rows"},
		{"verify " + place + "#2", "checkpoint 2 is whole"},
		{"prune --keep 1 " + place, "removed checkpoints 1 2: 8 objects"}, // with those of the second one of number 3
		{"verify " + place, "checkpoint 3 is whole"},
	} {
		out, code, err := godwit(append([]string{"checkpoint"}, strings.Fields(c.args)...)...)
		if code != 0 || !strings.Contains(out, c.want) {
			t.Errorf("%s: exit code %d, %s, %v", c.args, code, out, err)
		}
	}
	_, code, err := godwit("checkpoint", "verify", place+"#1")
	if code != 1 || !strings.Contains(err.Error(), "s3://models/runs/kge") || strings.Contains(err.Error(), "endpoint") {
		t.Errorf("exit code %d, %v", code, err)
	}
}

// Requests fail, answers are slow or are cut. What was acknowledged stays whole.
func TestAFailingStoreKeepsTheFormerCheckpoint(t *testing.T) {
	seed := seedtest.Of(t)
	var faults atomic.Bool
	var at atomic.Uint64
	place := s3Server(t, func(w http.ResponseWriter, r *http.Request) bool {
		if !faults.Load() {
			return false
		}
		rng := rand.New(rand.NewPCG(seed, at.Add(1)))
		switch rng.IntN(8) {
		case 0:
			w.WriteHeader(http.StatusInternalServerError)
			return true
		case 1:
			_, _ = io.CopyN(io.Discard, r.Body, 10) // part of it is there when the connection breaks
			panic(http.ErrAbortHandler)
		case 2:
			time.Sleep(20 * time.Millisecond)
		case 3:
			w.WriteHeader(http.StatusForbidden) // is not tried again
			return true
		}
		return false
	})
	s, err := checkpoint.OpenStore(t.Context(), place)
	if err != nil {
		t.Fatal(err)
	}
	digests := map[uint64]checkpoint.Digest{}
	var last uint64
	failed := 0
	for i := range 9 {
		faults.Store(false)
		next, err := checkpoint.Next(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		faults.Store(i%3 != 0)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		d, err := store(ctx, s, next, 100)
		cancel()
		digests[next] = d
		if err == nil {
			last = next
			continue
		}
		failed++
		if strings.Contains(err.Error(), secret) {
			t.Errorf("the error has the secret key: %v", err)
		}
		faults.Store(false)
		c, err := checkpoint.Open(t.Context(), s, 0)
		if err != nil {
			t.Fatal(err)
		}
		n := c.Manifest().Number
		if got, err := c.Verify(t.Context()); err != nil || n < last || n == last && got.Digest != digests[n] {
			t.Fatalf("after checkpoint %d failed, %d is the last, %d was acknowledged: %v", next, n, last, err)
		}
	}
	t.Logf("%d of 9 failed", failed)
}

func TestUploadsThatNobodyCompletesAreAborted(t *testing.T) {
	place := s3Server(t, nil)
	s, err := checkpoint.OpenStore(t.Context(), place)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store(t.Context(), s, 1, 10); err != nil {
		t.Fatal(err)
	}
	b, err := blob.OpenBucket(t.Context(), strings.Replace(place, "/runs/kge", "", 1))
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	var client *s3.Client
	if !b.As(&client) {
		t.Fatal("no S3")
	}
	name, part := "models", int32(1)
	const object = "checkpoint-0000000002.ABCDEFGHIJKLMNOPQRSTUVWXYZ.0.rows"
	others := []string{"others/file", "runs/kge/checkpoint-0000000002.x", "runs/kge/checkpoint-of/" + object, "runs/kge/second/" + object}
	for _, key := range append(others, "runs/kge/"+object) {
		up, err := client.CreateMultipartUpload(t.Context(), &s3.CreateMultipartUploadInput{Bucket: &name, Key: &key})
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.UploadPart(t.Context(), &s3.UploadPartInput{Bucket: &name, Key: &key, UploadId: up.UploadId, PartNumber: &part, Body: bytes.NewReader(make([]byte, 10))})
		if err != nil {
			t.Fatal(err)
		}
	}
	lock, err := checkpoint.Acquire(t.Context(), s, checkpoint.Holder{Run: "one"})
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release()
	done, err := lock.Prune(t.Context(), s, 1)
	if err != nil || done.Unfinished != 1 {
		t.Errorf("%+v, %v", done, err)
	}
	left, err := client.ListMultipartUploads(t.Context(), &s3.ListMultipartUploadsInput{Bucket: &name})
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, u := range left.Uploads {
		keys = append(keys, *u.Key)
	}
	if slices.Sort(keys); !slices.Equal(keys, others) {
		t.Errorf("uploads of %q are left, want %q", keys, others)
	}
}

// A store may answer with an error that the client does not try again, though it has made the object. The object is read then, and the
// client of the store writes nothing of that to stderr.
func TestAnErrorAboutAnObjectThatWasMadeIsNone(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer func(f *os.File) { os.Stderr = f }(os.Stderr)
	os.Stderr = w
	s, err := checkpoint.OpenStore(t.Context(), loseAnswers(t, s3Server(t, nil), http.StatusForbidden, func(string) bool { return true }))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store(t.Context(), s, 1, 10); err != nil {
		t.Error(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if said, err := io.ReadAll(r); err != nil || len(said) > 0 {
		t.Errorf("stderr has %q, %v", said, err)
	}
}

// loseAnswers passes requests on to a server of S3, which it has create each object once. It loses the first answer about each
// object that is created and for which lose is true: the client gets an error of the status instead.
func loseAnswers(t *testing.T, place string, status int, lose func(key string) bool) string {
	t.Helper()
	var mu sync.Mutex
	there := map[string]bool{}
	s3 := httputil.NewSingleHostReverseProxy(endpoint(t, place))
	s3.ModifyResponse = func(r *http.Response) error { // as of a server that keeps no checksums
		for name := range r.Header {
			if strings.HasPrefix(name, "X-Amz-Checksum-") {
				r.Header.Del(name)
			}
		}
		return nil
	}
	return instead(t, place, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		again := there[r.URL.Path]
		there[r.URL.Path] = again || r.Method == http.MethodPut
		mu.Unlock()
		switch create := r.Header.Get("If-None-Match") == "*"; {
		case create && again:
			w.WriteHeader(http.StatusPreconditionFailed)
			fmt.Fprint(w, "<Error><Code>PreconditionFailed</Code></Error>")
		case create && lose(r.URL.Path):
			s3.ServeHTTP(httptest.NewRecorder(), r)
			w.WriteHeader(status)
		default:
			s3.ServeHTTP(w, r)
		}
	})
}

// endpoint returns the address of the server of S3 at which a place is.
func endpoint(t *testing.T, place string) *url.URL {
	t.Helper()
	u, err := url.Parse(place)
	if err != nil {
		t.Fatal(err)
	}
	at, err := url.Parse(u.Query().Get("endpoint"))
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// instead returns the place at a server of its own, which answers in place of that of S3 until the test is over.
func instead(t *testing.T, place string, answer http.HandlerFunc) string {
	t.Helper()
	u, err := url.Parse(place)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	options := u.Query()
	options.Set("endpoint", server.URL)
	u.RawQuery = options.Encode()
	return u.String()
}

// When the answer to a request is lost, the client asks again, and is told that the object is there.
func TestALostAnswerIsNotTakenForAnotherRun(t *testing.T) {
	place := loseAnswers(t, s3Server(t, nil), http.StatusInternalServerError, func(key string) bool {
		return strings.HasSuffix(key, "lock-1") || strings.HasSuffix(key, ".jsonl")
	})
	s, err := checkpoint.OpenStore(t.Context(), place)
	if err != nil {
		t.Fatal(err)
	}
	lock, err := checkpoint.Acquire(t.Context(), s, checkpoint.Holder{Run: "one"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store(t.Context(), s, 1, 10); err != nil {
		t.Error(err)
	}
	if err := lock.Release(); err != nil {
		t.Error(err)
	}
	err = s.Create(t.Context(), "x", func(w io.Writer) error {
		if err := s.Put(t.Context(), "x", []byte("theirs")); err != nil {
			t.Error(err)
		}
		_, err := io.WriteString(w, "mine")
		return err
	})
	if !errors.Is(err, fs.ErrExist) {
		t.Errorf("what another one made was taken for one's own: %v", err)
	}
}

// What answers in place of a store, such as a page to log in, is named, and not taken for an object.
func TestAPageInPlaceOfAnObjectIsNamed(t *testing.T) {
	var loggedOut atomic.Bool
	place := s3Server(t, func(w http.ResponseWriter, r *http.Request) bool {
		if loggedOut.Load() {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = io.WriteString(w, "<html><body>Log in</body></html>")
		}
		return loggedOut.Load()
	})
	s, err := checkpoint.OpenStore(t.Context(), place)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store(t.Context(), s, 1, 10); err != nil {
		t.Fatal(err)
	}
	loggedOut.Store(true)
	_, written := store(t.Context(), s, 2, 10)
	_, verified := checkpoint.Open(t.Context(), s, 1)
	_, listed := s.List(t.Context(), "")
	for what, err := range map[string]error{"writing": written, "reading": verified, "listing": listed} {
		if err == nil || errors.Is(err, fs.ErrExist) || !strings.Contains(err.Error(), "s3://models/runs/kge ("+endpoint(t, place).Host+") is a page (text/html") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// Connections that break while an object is read are made again, some times.
func TestAReadThatBreaksGoesOn(t *testing.T) {
	var breaks atomic.Int64
	place := s3Server(t, nil)
	s3 := httputil.NewSingleHostReverseProxy(endpoint(t, place))
	s, err := checkpoint.OpenStore(t.Context(), instead(t, place, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, ".rows") || breaks.Add(-1) < 0 {
			s3.ServeHTTP(w, r)
			return
		}
		whole := httptest.NewRecorder()
		s3.ServeHTTP(whole, r)
		for name, values := range whole.Header() {
			w.Header()[name] = values
		}
		w.Header().Set("Content-Length", fmt.Sprint(whole.Body.Len()))
		w.WriteHeader(whole.Code)
		_, _ = w.Write(whole.Body.Bytes()[:whole.Body.Len()/2])
		_ = http.NewResponseController(w).Flush() // the client has a part of it when the connection breaks
		panic(http.ErrAbortHandler)
	}))
	if err != nil {
		t.Fatal(err)
	}
	want, err := store(t.Context(), s, 1, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int64{1, 2, 100} {
		c, err := checkpoint.Open(t.Context(), s, 1)
		if err != nil {
			t.Fatal(err)
		}
		breaks.Store(n)
		got, err := c.Verify(t.Context())
		if n < 100 && (err != nil || got.Digest != want) || n == 100 && err == nil {
			t.Errorf("with %d breaks: %v", n, err)
		}
		if left := breaks.Load(); n < 100 && left >= 0 {
			t.Errorf("%d of %d breaks are left: the test is vacuous", left, n)
		}
	}
}

// A list that never ends is given up, whether it repeats itself or has nothing.
func TestAListWithoutAnEndIsGivenUp(t *testing.T) {
	for what, object := range map[string]string{
		"the same again": "<Contents><Key>runs/kge/checkpoint-0000000001.jsonl</Key><Size>1</Size><LastModified>2026-01-02T03:04:05Z</LastModified></Contents>",
		"empty pages":    "",
		"no time":        "<Contents><Key>runs/kge/checkpoint-0000000001.jsonl</Key><Size>1</Size></Contents>",
	} {
		place := s3Server(t, func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Content-Type", "application/xml")
			fmt.Fprintf(w, `<?xml version="1.0" encoding="UTF-8"?><ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>x</NextContinuationToken>%s</ListBucketResult>`, object)
			return true
		})
		s, err := checkpoint.OpenStore(t.Context(), place)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.List(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "the list of s3://models/runs/kge") || (object != "" && !strings.Contains(object, "Modified")) == strings.Contains(err.Error(), "may have no end") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestAListOfUploadsWithoutAnEndIsGivenUp(t *testing.T) {
	place := s3Server(t, func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Content-Type", "application/xml")
		fmt.Fprint(w, `<?xml version="1.0" encoding="UTF-8"?><ListMultipartUploadsResult><IsTruncated>true</IsTruncated><NextKeyMarker>x</NextKeyMarker></ListMultipartUploadsResult>`)
		return true
	})
	s, err := checkpoint.OpenStore(t.Context(), place)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := s.Clean(ctx); err == nil || !strings.Contains(err.Error(), "may have no end") {
		t.Error(err)
	}
}

func TestASecondRunAtABucketIsRefused(t *testing.T) {
	s, err := checkpoint.OpenStore(t.Context(), s3Server(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	lock, err := checkpoint.Acquire(t.Context(), s, checkpoint.Holder{Run: "one"})
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	defer slog.SetDefault(slog.Default())
	slog.SetDefault(slog.New(slog.NewTextHandler(&said, nil)))
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := checkpoint.Acquire(ctx, s, checkpoint.Holder{Run: "two"}); err == nil || !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, checkpoint.ErrLocked) {
		t.Errorf("a second run got %v", err) // it watches the first for longer
	}
	if text := said.String(); !strings.Contains(text, "s3://models/runs/kge may still be written to by another run (the run one") || !strings.Contains(text, "up to 1m15s") {
		t.Errorf("while it watched it said %q", text)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	said.Reset()
	if lock, err = checkpoint.Acquire(t.Context(), s, checkpoint.Holder{Run: "two"}); err != nil {
		t.Fatal(err)
	}
	if said.Len() > 0 {
		t.Errorf("of a lease that was given back it said %q", said.String())
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
}
