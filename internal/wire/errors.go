package wire

import "fmt"

// A FormatError reports bytes that are not a frame: where, and what is wrong.
type FormatError struct {
	Offset int    // in bytes from the frame's start
	Record int    // the number of the record, from 0; -1: not in a record
	Kind   Kind   // of the record; 0 where it was not known yet
	Reason string // a part of a sentence
}

func (e *FormatError) Error() string {
	if e.Record < 0 {
		return fmt.Sprintf("wire: frame at offset %d: %s", e.Offset, e.Reason)
	}
	return fmt.Sprintf("wire: record %d (%v) at offset %d: %s", e.Record, e.Kind, e.Offset, e.Reason)
}

func headerError(offset int, reason string) error {
	return &FormatError{Offset: offset, Record: -1, Reason: reason}
}

// A VersionError reports a frame of another version of the protocol.
type VersionError struct {
	Theirs int // the version of the frame
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("wire: the frame is of protocol version %d, this program speaks version %d; run the same release on all nodes", e.Theirs, Version)
}
