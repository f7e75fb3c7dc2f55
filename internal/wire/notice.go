package wire

import (
	"encoding/binary"
	"fmt"

	"github.com/godwit-ps/godwit"
)

// This file is about frames that are not part of the protocol of keys: they say
// whether a connection lives, and when it ends. All are a header, whose view is 0
// or, of a heartbeat, something else:
//
//	goodbye    (type 5)  the view of its sender; the header alone
//	heartbeat  (type 8)  bit 0: asks, bit 1: moves, the others: arrived; the header alone
//	suspicions (type 9)  followed by 1 … 65535 node ids of 8 bytes

// Goodbye returns the last frame that a node sends over a connection: all nodes have
// come to the end of the run.
func Goodbye(view godwit.View) []byte {
	b := make([]byte, HeaderLen)
	putHeader(b, typeGoodbye, view)
	putLen(b)
	return b
}

// IsGoodbye reports whether a frame says that it is a goodbye.
func IsGoodbye(frame []byte) bool { return len(frame) >= HeaderLen && frame[6] == typeGoodbye }

// CheckGoodbye says what is wrong with a frame that should be a goodbye.
func CheckGoodbye(frame []byte) error {
	_, err := parseShort(frame, typeGoodbye, "a goodbye")
	return err
}

// parseShort reads a frame that is a header alone.
func parseShort(frame []byte, typ byte, what string) (view uint64, err error) {
	v, err := parseHeader(frame, typ)
	if err == nil && len(frame) != HeaderLen {
		err = headerError(HeaderLen, fmt.Sprintf("%d bytes follow %s", len(frame)-HeaderLen, what))
	}
	return uint64(v), err
}

// A Heartbeat tells the other end of a connection what has arrived of it.
type Heartbeat struct {
	Arrived uint64 // bytes of whole frames, heartbeats not counted; less than 2⁶²
	Moves   bool   // part of a further frame has arrived since the last heartbeat
	Asks    bool   // the receiver is to send one at once
}

// HeartbeatLen is the length of its frame in bytes.
const HeartbeatLen = HeaderLen

// Frame returns the frame of a heartbeat.
func (h Heartbeat) Frame() []byte {
	v := h.Arrived << 2
	if h.Asks {
		v |= 1
	}
	if h.Moves {
		v |= 2
	}
	b := make([]byte, HeartbeatLen)
	putHeader(b, typeHeartbeat, godwit.View(v))
	putLen(b)
	return b
}

// IsHeartbeat reports whether a frame says that it is a heartbeat.
func IsHeartbeat(frame []byte) bool { return len(frame) >= HeaderLen && frame[6] == typeHeartbeat }

// ParseHeartbeat reads a whole frame that must be a heartbeat.
func ParseHeartbeat(frame []byte) (Heartbeat, error) {
	v, err := parseShort(frame, typeHeartbeat, "a heartbeat")
	if err != nil {
		return Heartbeat{}, err
	}
	return Heartbeat{Arrived: v >> 2, Moves: v&2 != 0, Asks: v&1 != 0}, nil
}

// Suspicions returns the frame that names the nodes that its sender does not
// reach.
func Suspicions(of []godwit.NodeID) []byte {
	b := make([]byte, HeaderLen, HeaderLen+8*len(of))
	putHeader(b, typeSuspicions, 0)
	for _, id := range of {
		b = binary.LittleEndian.AppendUint64(b, uint64(id))
	}
	putLen(b)
	return b
}

// IsSuspicions reports whether a frame says that it is one of suspicions.
func IsSuspicions(frame []byte) bool { return len(frame) >= HeaderLen && frame[6] == typeSuspicions }

// ParseSuspicions reads a whole frame that must be one of suspicions.
func ParseSuspicions(frame []byte) ([]godwit.NodeID, error) {
	if _, err := parseHeader(frame, typeSuspicions); err != nil {
		return nil, err
	}
	rest := frame[HeaderLen:]
	if n := len(rest); n == 0 || n%8 != 0 || n/8 > godwit.MaxNodes {
		return nil, headerError(HeaderLen, fmt.Sprintf("suspicions of %d bytes, want 8 a node", n))
	}
	of := make([]godwit.NodeID, len(rest)/8)
	for i := range of {
		id := binary.LittleEndian.Uint64(rest[8*i:])
		if id >= uint64(godwit.MaxNodes) {
			return nil, headerError(HeaderLen+8*i, fmt.Sprintf("a suspicion of node %d, want less than %d", id, godwit.MaxNodes))
		}
		of[i] = godwit.NodeID(id)
	}
	return of, nil
}
