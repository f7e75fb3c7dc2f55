package checkpoint

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// A Store keeps objects by their names, such as files of a folder. Its methods may be called by any number of
// goroutines. Names are those that this package makes: letters, digits, dots and hyphens.
type Store interface {
	// Create makes an object of what write writes. When it returns nil, the object is
	// complete and durable; after an error, or a kill, there is no object of the name. It
	// wraps fs.ErrExist if there is one already, which stays as it is. A store that cannot tell whether it was made by
	// this call returns nil if the bytes are the same.
	Create(ctx context.Context, name string, write func(w io.Writer) error) error
	// Put makes or replaces a small object. A reader sees the old one or the new one.
	Put(ctx context.Context, name string, b []byte) error
	// Read reads up to n bytes of an object from offset off on. The error wraps fs.ErrNotExist if
	// there is no such object.
	Read(ctx context.Context, name string, off, n int64) (io.ReadCloser, error)
	// Size returns the bytes of an object. The error wraps fs.ErrNotExist if there is none.
	Size(ctx context.Context, name string) (int64, error)
	// List returns the objects whose names begin with a prefix. It may lack objects that were made a short time
	// ago.
	List(ctx context.Context, prefix string) ([]Object, error)
	// Remove removes an object. It is no error if there is none.
	Remove(ctx context.Context, name string) error
	// Clean removes what writers that were killed left of objects under way. Nobody else
	// writes meanwhile. It returns how many they were.
	Clean(ctx context.Context) (int, error)
	// String is where the store is, for people, without credentials.
	String() string
}

// An Object is one entry of a list.
type Object struct {
	Name  string // within the store
	Bytes int64  // its size
}

// readAll reads an object of at most limit bytes.
func readAll(ctx context.Context, s Store, name string, limit int64) ([]byte, error) {
	r, err := s.Read(ctx, name, 0, limit+1)
	if err != nil {
		return nil, err
	}
	defer r.Close() // it is only read
	b, err := io.ReadAll(r)
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("%s has more than %d bytes", name, limit)
	}
	return b, err
}

// An ID names an attempt to write a checkpoint: no other one has the same, of whatever run.
type ID struct {
	Number  uint64 `json:"number"`  // 1, 2, …: later ones are larger
	Attempt string `json:"attempt"` // a random word, another one each time
}

// NewID returns the ID of an attempt to write the checkpoint of a number. The leader makes it, for all nodes.
func NewID(number uint64) ID { return ID{number, rand.Text()} }

const (
	// Prefix begins the names of all objects of checkpoints.
	Prefix = "checkpoint-"

	manifestSuffix = ".jsonl"
	numberDigits   = 10
	maxNumber      = 1e10 - 1
	attemptLen     = 26 // as crypto/rand.Text returns
)

func numbered(n uint64) string { return fmt.Sprintf("%s%0*d", Prefix, numberDigits, n) }

// manifestName is the name of a checkpoint's manifest.
func manifestName(n uint64) string { return numbered(n) + manifestSuffix }

// part is the name of the part of a node, and section of its i-th section.
func (id ID) part(node int) string {
	return fmt.Sprintf("%s.%s.%d.rows", numbered(id.Number), id.Attempt, node)
}

func (id ID) section(node, i int) string {
	return fmt.Sprintf("%s.%s.%d.%d.section", numbered(id.Number), id.Attempt, node, i)
}

// owns reports whether a name is one of an object of the checkpoint.
func (id ID) owns(name string) bool {
	n, attempt, ok := parse(name)
	return ok && attempt != "" && n == id.Number && attempt == id.Attempt
}

// IsObject reports whether a name is one that this package gives to objects of checkpoints. Names with a slash are none.
func IsObject(name string) bool {
	_, _, ok := parse(name)
	return ok
}

// parse returns which checkpoint an object belongs to. A manifest has no attempt in
// its name. Names of other objects are not ok.
func parse(name string) (number uint64, attempt string, ok bool) {
	rest, ok := strings.CutPrefix(name, Prefix)
	if !ok || len(rest) < numberDigits {
		return 0, "", false
	}
	number, err := strconv.ParseUint(rest[:numberDigits], 10, 64)
	if err != nil || number < 1 {
		return 0, "", false
	}
	rest = rest[numberDigits:]
	if rest == manifestSuffix {
		return number, "", true
	}
	f := strings.Split(rest, ".")
	switch {
	case len(f) < 4 || f[0] != "" || !isAttempt(f[1]):
		return 0, "", false
	case len(f) == 4 && isNumber(f[2]) && f[3] == "rows":
	case len(f) == 5 && isNumber(f[2]) && isNumber(f[3]) && f[4] == "section":
	default:
		return 0, "", false
	}
	return number, f[1], true
}

func isNumber(s string) bool {
	n, err := strconv.Atoi(s)
	return err == nil && n >= 0 && strconv.Itoa(n) == s
}

// isAttempt reports whether s is a word of base32 digits.
func isAttempt(s string) bool {
	return len(s) == attemptLen && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == ""
}
