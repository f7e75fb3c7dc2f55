package wire

import (
	"encoding/binary"
	"fmt"

	"github.com/godwit-ps/godwit"
)

// MaxFrame is the largest length of a frame in bytes. It holds the largest row
// ([godwit.MaxDim] floats with the state of any rule) and the longest list of
// holders several times.
const MaxFrame = 64 << 20

// HeaderLen is the length of the header in bytes, the shortest frame.
const HeaderLen = 16

// DataLen is the length in bytes of a data frame without records.
const DataLen = HeaderLen + 8

// PrefixLen is how many bytes of a frame [FrameLen] needs.
const PrefixLen = 4

// Version is the version of the protocol that this package speaks. Nodes of a
// run must all speak the same.
//
// History:
//
//	1  first version
//	2  the length of a frame is a multiple of 8
//	3  runs of records, codings of values, features, scans
//	4  both sides of a new connection prove that they are members of the run
//	5  learned intents
//	6  values that may be rounded; cuts
//	7  cuts of the changed rows
//	8  copies that are renewed
//	9  no renewals
//	10 echoes of rounds
const Version = 10

// frameAlign is what the length of a frame is a multiple of, so that frames
// that follow each other all begin where floats can be used in place.
const frameAlign = 8

const magic = 'G'

const (
	typeData       = 1
	typeHello      = 2
	typeWant       = 3
	typeList       = 4
	typeGoodbye    = 5
	typeNonce      = 6
	typeProof      = 7
	typeHeartbeat  = 8
	typeSuspicions = 9
	typeQuestion   = 10
	typeAnswer     = 11
)

// Asks reports whether a frame asks for a list that its sender does not know. Such a
// frame, and one that [Answers], is for the other end of the connection itself, and
// handled at once; others are handled in their order.
func Asks(frame []byte) bool { return len(frame) >= HeaderLen && frame[6] == typeWant }

// Answers reports whether a frame brings a list that was asked for.
func Answers(frame []byte) bool { return len(frame) >= HeaderLen && frame[6] == typeList }

// IsData reports whether a frame says that it is one of records.
func IsData(frame []byte) bool { return len(frame) >= HeaderLen && frame[6] == typeData }

// FrameLen returns the length of the frame that starts with the 4 bytes of
// prefix, or an error where no frame has that length. A transport asks it how
// far to read, and needs to know no more of a frame.
func FrameLen(prefix []byte) (int, error) {
	if len(prefix) < PrefixLen {
		return 0, fmt.Errorf("wire: a frame's length takes %d bytes, there are %d", PrefixLen, len(prefix))
	}
	n := binary.LittleEndian.Uint32(prefix)
	if n < HeaderLen || n > MaxFrame {
		return 0, fmt.Errorf("wire: a frame claims a length of %d bytes, want %d … %d", n, HeaderLen, MaxFrame)
	}
	return int(n), nil
}

// CheckLen reports whether frame is as long as it says, which is what a
// transport must know of a frame before it sends it.
func CheckLen(frame []byte) error {
	n, err := FrameLen(frame)
	if err == nil && n != len(frame) {
		err = fmt.Errorf("wire: a frame claims a length of %d bytes and has %d", n, len(frame))
	}
	return err
}

// putHeader writes the header with a length of 0, to be set by putLen.
func putHeader(b []byte, typ byte, view godwit.View) {
	binary.LittleEndian.PutUint32(b, 0)
	b[4], b[5], b[6], b[7] = magic, Version, typ, 0
	binary.LittleEndian.PutUint64(b[8:], uint64(view))
}

func putLen(frame []byte) { binary.LittleEndian.PutUint32(frame, uint32(len(frame))) }

// parseHeader checks the header of a whole frame of the given type.
func parseHeader(frame []byte, typ byte) (godwit.View, error) {
	// What makes these bytes somebody else's is said before what makes them a
	// broken frame of ours: the reader of the error must know whom to blame.
	if len(frame) >= HeaderLen {
		switch {
		case frame[4] != magic:
			return 0, headerError(4, fmt.Sprintf("byte %#02x where a frame has %#02x; not a frame of Godwit", frame[4], magic))
		case frame[5] != Version:
			return 0, &VersionError{Theirs: int(frame[5])}
		}
	}
	if err := CheckLen(frame); err != nil {
		return 0, err
	}
	switch {
	case frame[6] != typ:
		return 0, headerError(6, fmt.Sprintf("frame type %d, want %d", frame[6], typ))
	case frame[7] != 0:
		return 0, headerError(7, fmt.Sprintf("flags %#02x are unknown to version %d", frame[7], Version))
	}
	return godwit.View(binary.LittleEndian.Uint64(frame[8:])), nil
}
