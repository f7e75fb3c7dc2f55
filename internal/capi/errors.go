package capi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/coord"
)

// A Code is what a C function returns: 0 or more is success.
type Code int

// The codes, as in godwit.h.
const (
	OK        Code = 0
	Again     Code = 1   // the operation is under way: wait for it again
	Argument  Code = -1  // an argument cannot be
	KeyRange  Code = -2  // a row does not exist
	Length    Code = -3  // a buffer has the wrong length
	Closed    Code = -4  // the cluster, worker or operation was closed, or never was
	Lost      Code = -5  // another node, or the coordinator, was lost
	Memory    Code = -6  // the system has no memory left for rows
	Busy      Code = -7  // another thread uses the worker
	Cancelled Code = -8  // the operation was cancelled, or its time is over
	Panic     Code = -9  // a defect of Godwit
	Forked    Code = -10 // the process was forked after the library had begun
	Other     Code = -11 // anything else; the text says what
	Full      Code = -12 // a bounded queue has no room: nothing was done
)

// ErrBusy: a worker is used by another thread, or by a call that has not ended.
var ErrBusy = errors.New("the worker is in use")

var (
	errArgument  = errors.New("wrong argument")
	errLength    = errors.New("wrong buffer length")
	errNone      = errors.New("it was closed, or never was")
	errCancelled = errors.New("cancelled")
)

// CodeOf returns the code of an error.
func CodeOf(err error) Code {
	for _, c := range []struct {
		is   error
		code Code
	}{
		{nil, OK}, {errArgument, Argument}, {godwit.ErrSample, Argument}, {godwit.ErrKeyRange, KeyRange}, {errLength, Length}, {godwit.ErrLength, Length}, {errNone, Closed},
		{godwit.ErrMemory, Memory}, {godwit.ErrPeerLost, Lost}, {coord.ErrFailed, Lost}, {coord.ErrLeft, Lost}, {coord.ErrMissing, Lost}, {ErrBusy, Busy}, {godwit.ErrFull, Full}, {errCancelled, Cancelled}, {context.Canceled, Cancelled}, {coord.ErrCoordinator, Lost},
		{context.DeadlineExceeded, Cancelled}, {godwit.ErrHandle, Closed}, {godwit.ErrClosed, Closed},
	} {
		if err == c.is || c.is != nil && errors.Is(err, c.is) {
			return c.code
		}
	}
	return Other
}

func wrong(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errArgument, fmt.Sprintf(format, args...))
}

// decode reads JSON of the caller's, all of which it must know: a misspelt name would be skipped, and a byte that is no UTF-8 replaced.
func decode(text []byte, x any, what string) error {
	if !utf8.Valid(text) {
		return wrong("%s is not UTF-8: %q", what, text)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	err := d.Decode(x)
	if err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = errors.New("something follows it")
		}
	}
	if err != nil {
		return wrong("%s is not the JSON that it should be: %v", what, err)
	}
	return nil
}

// BadBuffer is the error of a buffer that is missing, or cannot be so long.
func BadBuffer(n uint64) error {
	return fmt.Errorf("%w: a buffer of %d elements is too short, missing, or longer than can be", errLength, n)
}
