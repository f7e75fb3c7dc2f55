package wire

import (
	"fmt"

	"github.com/godwit-ps/godwit"
)

// Farewell returns the frame that a node sends last: all nodes of the run have
// come to its end. It is a header alone.
func Farewell(view godwit.View) []byte {
	b := make([]byte, HeaderLen)
	putHeader(b, typeLeave, view)
	putLen(b)
	return b
}

// IsFarewell reports whether a frame says that it is a farewell.
func IsFarewell(frame []byte) bool { return len(frame) >= HeaderLen && frame[6] == typeLeave }

// CheckFarewell says what is wrong with a frame that should be a farewell.
func CheckFarewell(frame []byte) error {
	_, err := parseHeader(frame, typeLeave)
	if err == nil && len(frame) != HeaderLen {
		err = headerError(HeaderLen, fmt.Sprintf("%d bytes follow a farewell", len(frame)-HeaderLen))
	}
	return err
}
