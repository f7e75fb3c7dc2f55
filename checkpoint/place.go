package checkpoint

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// An Opener opens the store at a URL.
type Opener func(ctx context.Context, u *url.URL) (Store, error)

var schemes = struct {
	sync.Mutex
	open map[string]Opener
}{open: map[string]Opener{}}

// RegisterScheme has [OpenStore] open URLs with a scheme, such as "s3". It panics if the scheme is taken.
func RegisterScheme(scheme string, open Opener) {
	schemes.Lock()
	defer schemes.Unlock()
	if _, taken := schemes.open[scheme]; taken {
		panic("checkpoint: RegisterScheme: a second opener for " + scheme)
	}
	schemes.open[scheme] = open
}

// Schemes returns the schemes that were registered, in alphabetical order.
func Schemes() []string {
	schemes.Lock()
	defer schemes.Unlock()
	var all []string
	for s := range schemes.open {
		all = append(all, s)
	}
	slices.Sort(all)
	return all
}

// OpenStore opens the store at a place: the path of a folder, or a URL with a scheme that was registered. It is
// [Patient].
func OpenStore(ctx context.Context, place string) (Store, error) {
	scheme, _, isURL := strings.Cut(place, "://")
	if !isURL {
		f, err := OpenFolder(place)
		if err != nil {
			return nil, err
		}
		return Patient(f, Patience), nil
	}
	schemes.Lock()
	open := schemes.open[scheme]
	schemes.Unlock()
	if open == nil {
		return nil, fmt.Errorf("checkpoint: this program has no stores of the kind %s://: want the path of a folder, or one of %q", scheme, Schemes())
	}
	u, err := url.Parse(place)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: not a URL of a %s store", scheme) // the URL may have a password
	}
	s, err := open(ctx, u)
	if err != nil {
		return nil, err
	}
	return Patient(s, Patience), nil
}

// SplitPlace cuts the number of a checkpoint from a place, as in "runs/kge#12"; 0: it has none.
func SplitPlace(place string) (store string, number uint64, err error) {
	i := strings.LastIndexByte(place, '#')
	if i < 0 {
		return place, 0, nil
	}
	store, text := place[:i], place[i+1:]
	number, err = strconv.ParseUint(text, 10, 64)
	if err != nil || number < 1 || number > maxNumber {
		return "", 0, fmt.Errorf("checkpoint: %q is no number of a checkpoint: want a place such as runs/kge#12", text)
	}
	return store, number, nil
}

// OpenPlace opens a checkpoint by its place, with its number or without: then it is the last one.
func OpenPlace(ctx context.Context, place string) (*Checkpoint, error) {
	s, number, err := StoreAt(ctx, place)
	if err != nil {
		return nil, err
	}
	return Open(ctx, s, number)
}

// StoreAt opens the store of a place, as [OpenPlace] takes it, and returns which checkpoint of it the place is; 0: the last one.
func StoreAt(ctx context.Context, place string) (s Store, number uint64, err error) {
	where, number, err := SplitPlace(place)
	if err != nil {
		return nil, 0, err
	}
	s, err = OpenStore(ctx, where)
	return s, number, err
}
