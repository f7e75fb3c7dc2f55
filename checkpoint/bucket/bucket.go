// Package bucket keeps checkpoints in object stores: S3, Google Cloud Storage, Azure Blob Storage, and whatever else
// speaks their protocols. It knows the stores by gocloud.dev/blob. A program that wants them imports their drivers and
// registers their schemes:
//
//	import _ "gocloud.dev/blob/s3blob"
//
//	bucket.Register("s3", nil)
//
// A place is then s3://BUCKET/FOLDER. What such a URL may say of regions and endpoints, and where credentials come from, is
// the driver's matter; credentials are in no error and in no name.
package bucket

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"mime"
	"net/url"
	"strings"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"github.com/godwit-ps/godwit/checkpoint"
)

// A Cleaner ends uploads to a bucket that nobody will complete, and returns how many. The name is the bucket's. It ends those
// whose key is mine only; the keys of all of these begin with prefix. Other uploads belong to other places, or other programs. Stores
// that end uploads by themselves need none.
type Cleaner func(ctx context.Context, b *blob.Bucket, name, prefix string, mine func(key string) bool) (int, error)

// Register has [checkpoint.OpenStore] open URLs of a scheme whose driver is linked. The path is a folder in the bucket. clean may
// be nil.
func Register(scheme string, clean Cleaner) {
	checkpoint.RegisterScheme(scheme, func(ctx context.Context, u *url.URL) (checkpoint.Store, error) { return open(ctx, u, clean) })
}

func open(ctx context.Context, u *url.URL, clean Cleaner) (checkpoint.Store, error) {
	bare := *u
	bare.Path, bare.RawPath, bare.Fragment = "", "", ""
	b, err := blob.OpenBucket(ctx, bare.String())
	if err != nil {
		return nil, fmt.Errorf("checkpoint: opening the bucket of %s: %w", name(u), hide(err, u))
	}
	folder := strings.Trim(u.Path, "/")
	if folder != "" {
		folder += "/"
	}
	var end func(context.Context) (int, error)
	if clean != nil {
		mine := func(key string) bool {
			name, ok := strings.CutPrefix(key, folder)
			return ok && checkpoint.IsObject(name)
		}
		end = func(ctx context.Context) (int, error) {
			return clean(ctx, b, u.Host, folder+checkpoint.Prefix, mine)
		}
	}
	return &store{b, folder, name(u), from(u), end}, nil
}

// name is a URL without user and options, which may be secret.
func name(u *url.URL) string { return u.Scheme + "://" + u.Host + u.Path }

// from is the name with the host of the endpoint, if the URL says which.
func from(u *url.URL) string {
	if e, err := url.Parse(u.Query().Get("endpoint")); err == nil && e.Host != "" {
		return fmt.Sprintf("%s (%s)", name(u), e.Host)
	}
	return name(u)
}

// hide returns an error without the secret parts of a URL.
func hide(err error, u *url.URL) error {
	text := err.Error()
	for _, s := range []string{u.String(), u.RawQuery, u.User.String()} {
		if s != "" {
			text = strings.ReplaceAll(text, s, "…")
		}
	}
	return errors.New(text)
}

// A store is a [checkpoint.Store] in a folder of a bucket.
type store struct {
	b      *blob.Bucket
	folder string
	name   string
	from   string                             // the name, and the host that is asked, if the URL has it
	clean  func(context.Context) (int, error) // may be nil
}

// Clean implements [checkpoint.Store].
func (s *store) Clean(ctx context.Context) (int, error) {
	if s.clean == nil {
		return 0, nil
	}
	return s.clean(ctx)
}

// String implements [checkpoint.Store].
func (s *store) String() string { return s.name }

// uploadBytes is the size of the pieces of an upload; stores take some thousands of them for an object.
const uploadBytes = 16 << 20

// Create implements [checkpoint.Store].
func (s *store) Create(ctx context.Context, name string, write func(w io.Writer) error) error {
	// Not all stores know the condition: who looks first is told apart at least.
	if _, err := s.Size(ctx, name); err == nil {
		return fmt.Errorf("%s: %w", name, fs.ErrExist)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	mine, whole := sha256.New(), false
	err := s.write(ctx, name, &blob.WriterOptions{IfNotExist: true, BufferSize: uploadBytes, ContentType: contentType}, func(w io.Writer) error {
		err := write(io.MultiWriter(w, mine))
		whole = err == nil
		return err
	})
	if whole && err != nil && s.has(ctx, name, mine.Sum(nil)) {
		return nil // only the answer was lost, or was an error, when it was made
	}
	return err
}

// has reports whether an object is there with a SHA-256. If it cannot be read, it is not.
func (s *store) has(ctx context.Context, name string, sum []byte) bool {
	r, err := s.Read(ctx, name, 0, math.MaxInt64)
	if err != nil {
		return false
	}
	defer r.Close() // it is only read
	found := sha256.New()
	_, err = io.Copy(found, r)
	return err == nil && bytes.Equal(found.Sum(nil), sum)
}

const contentType = "application/octet-stream" // else the driver guesses it of the first bytes

// Put implements [checkpoint.Store].
func (s *store) Put(ctx context.Context, name string, b []byte) error {
	return s.write(ctx, name, &blob.WriterOptions{ContentType: contentType}, func(w io.Writer) error { _, err := w.Write(b); return err })
}

func (s *store) write(ctx context.Context, name string, o *blob.WriterOptions, write func(w io.Writer) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := s.b.NewWriter(ctx, s.folder+name, o)
	if err != nil {
		return s.wrap(err)
	}
	if err := write(w); err != nil {
		cancel() // else Close would make an object of what was written
		_ = w.Close()
		return err
	}
	return s.wrap(w.Close())
}

// wrap makes errors of the store those of package checkpoint.
func (s *store) wrap(err error) error {
	switch gcerrors.Code(err) {
	case gcerrors.OK:
		return nil
	case gcerrors.NotFound:
		return fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	case gcerrors.FailedPrecondition, gcerrors.AlreadyExists:
		return fmt.Errorf("%w: %w", fs.ErrExist, err)
	}
	return err
}

// Read implements [checkpoint.Store].
func (s *store) Read(ctx context.Context, name string, off, n int64) (io.ReadCloser, error) {
	size, err := s.Size(ctx, name)
	if err != nil {
		return nil, err
	}
	if off >= size || n == 0 { // stores refuse such a range
		return io.NopCloser(strings.NewReader("")), nil
	}
	r := &reader{ctx: ctx, store: s, name: name, at: off, end: off + min(n, size-off), good: off}
	if err := r.open(); err != nil {
		return nil, err
	}
	return r, nil
}

// Clients of stores try a request again, but not once its answer has begun: the rest of an object is then asked for anew, up to so often in a
// row with less than a megabyte in between, as a request is tried.
const (
	readAgain = 2
	readGood  = 1 << 20
)

// A reader reads a range of an object.
type reader struct {
	ctx     context.Context
	store   *store
	name    string
	at, end int64
	good    int64 // where failed was last 0
	failed  int   // times in a row
	body    *blob.Reader
}

// open asks for what is still to be read.
func (r *reader) open() error {
	body, err := r.store.b.NewRangeReader(r.ctx, r.store.folder+r.name, r.at, r.end-r.at, nil)
	if err != nil {
		return r.store.wrap(err)
	}
	if err := r.store.page(r.name, body.ContentType()); err != nil {
		_ = body.Close()
		return err
	}
	r.body = body
	return nil
}

func (r *reader) Read(b []byte) (int, error) {
	for {
		n, err := r.body.Read(b)
		if r.at += int64(n); r.at-r.good >= readGood {
			r.good, r.failed = r.at, 0
		}
		if err == nil || err == io.EOF || r.ctx.Err() != nil || r.failed == readAgain {
			return n, err
		}
		r.failed++
		_ = r.body.Close()
		if oerr := r.open(); oerr != nil {
			return n, fmt.Errorf("%w; and then, asked for the rest: %w", err, oerr)
		}
		if n > 0 {
			return n, nil
		}
	}
}

func (r *reader) Close() error { return r.body.Close() }

var errPage = errors.New("is a page")

// page returns an error if a store answers for an object with a page for people: another one has answered in its place.
func (s *store) page(name, contentType string) error {
	if kind, _, _ := mime.ParseMediaType(contentType); kind != "text/html" {
		return nil
	}
	return fmt.Errorf("what came for %s from %s %w (%s), and no object of a checkpoint: see whether a proxy, or a page to log in, answers in place of the store", name, s.from, errPage, contentType)
}

// Size implements [checkpoint.Store].
func (s *store) Size(ctx context.Context, name string) (int64, error) {
	a, err := s.b.Attributes(ctx, s.folder+name)
	if err != nil {
		return 0, s.wrap(err)
	}
	return a.Size, s.page(name, a.ContentType)
}

// vainPages is how many pages of a list may have nothing new, one after the other: stores may leave out what they do not show. They need not list by name.
const vainPages = 100

// List implements [checkpoint.Store].
func (s *store) List(ctx context.Context, prefix string) (all []checkpoint.Object, err error) {
	defer func() {
		if p := recover(); p != nil { // the driver takes each object to have all that the protocol says
			err = fmt.Errorf("the list of %s lacks what one of a store has: %v", s.from, p)
		}
	}()
	pages, seen := 0, map[string]bool{}
	list := s.b.List(&blob.ListOptions{Prefix: s.folder + prefix, BeforeList: func(func(any) bool) error {
		if pages++; pages > vainPages {
			return fmt.Errorf("the list of %s has had nothing new for %d pages, and says that there is more: it may have no end", s.from, vainPages)
		}
		return nil
	}})
	for {
		o, err := list.Next(ctx)
		if err == io.EOF {
			if len(all) == 0 { // a client may take a page for a list with no object
				if _, err := s.Size(ctx, cmp.Or(prefix, checkpoint.Prefix)); errors.Is(err, errPage) {
					return nil, err
				}
			}
			return all, nil
		}
		if err != nil {
			return nil, s.wrap(err)
		}
		if seen[o.Key] {
			continue
		}
		pages, seen[o.Key] = 0, true
		if name := strings.TrimPrefix(o.Key, s.folder); !o.IsDir && !strings.Contains(name, "/") {
			all = append(all, checkpoint.Object{Name: name, Bytes: o.Size})
		}
	}
}

// Remove implements [checkpoint.Store].
func (s *store) Remove(ctx context.Context, name string) error {
	err := s.b.Delete(ctx, s.folder+name)
	if gcerrors.Code(err) == gcerrors.NotFound {
		return nil
	}
	return s.wrap(err)
}
