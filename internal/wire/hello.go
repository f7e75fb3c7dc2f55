package wire

import (
	"encoding/binary"
	"fmt"

	"github.com/godwit-ps/godwit"
)

// A Hello is what each side of a new connection says of itself. Its frame goes
// on after the header with
//
//	byte  16            24     26    28      32       33    …             …+1
//	      ┌─────────────┬──────┬─────┬───────┬────────┬─────┬─────────────┬─────────────┐
//	      │incarnation  │from  │to   │feat.  │length  │run  │length       │fingerprint  │
//	      │u64          │u16   │u16  │u32    │u8      │     │u8           │             │
//	      └─────────────┴──────┴─────┴───────┴────────┴─────┴─────────────┴─────────────┘
//
// and ends there.
type Hello struct {
	Run         string        // the run's name, at most 128 bytes
	From, To    godwit.NodeID // who speaks, and whom it believes to speak to
	Incarnation uint64        // tells a restarted process from the one before
	Fingerprint string        // of the model ([godwit.Model.Fingerprint]), at most 128 bytes
	Features    Features      // what the sender of the hello understands
}

// Features is a set of what a node understands beyond plain frames. Each side sends
// only what the other side supports, and ignores bits that it does not know.
type Features uint32

const (
	SupportsCodings Features = 1 << iota // records with a Coding other than Raw
	SupportsLists                        // lists of keys by their hash
	SupportsS2                           // frames compressed with S2 (header flag 1)
	SupportsZstd                         // frames compressed with Zstandard (header flag 2)
)

// maxText bounds the run's name and the fingerprint.
const maxText = 128

// helloFixed is the length of what stands before the texts.
const helloFixed = 8 + 2 + 2 + 4

// MaxHello is the length in bytes of the longest frame of a Hello.
const MaxHello = HeaderLen + helloFixed + 2*(1+maxText)

// AppendHello appends the frame of h to dst and returns the longer slice. The
// error says which text is too long.
func AppendHello(dst []byte, h Hello) ([]byte, error) {
	for _, s := range [...]struct{ what, text string }{{"name of the run", h.Run}, {"fingerprint", h.Fingerprint}} {
		if len(s.text) > maxText {
			return dst, fmt.Errorf("wire: hello: the %s is %d bytes long, at most %d fit", s.what, len(s.text), maxText)
		}
	}
	start := len(dst)
	dst = append(dst, make([]byte, HeaderLen)...)
	putHeader(dst[start:], typeHello, 0)
	dst = binary.LittleEndian.AppendUint64(dst, h.Incarnation)
	dst = binary.LittleEndian.AppendUint16(dst, uint16(h.From))
	dst = binary.LittleEndian.AppendUint16(dst, uint16(h.To))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(h.Features))
	dst = appendText(dst, h.Run)
	dst = appendText(dst, h.Fingerprint)
	putLen(dst[start:])
	return dst, nil
}

func appendText(dst []byte, s string) []byte { return append(append(dst, byte(len(s))), s...) }

// ParseHello reads a whole frame that must be a Hello. The error is a
// *VersionError for a frame of another version of the protocol.
func ParseHello(frame []byte) (Hello, error) {
	rest, err := opening(frame, typeHello)
	if err != nil {
		return Hello{}, err
	}
	if len(rest) < helloFixed {
		return Hello{}, headerError(HeaderLen, fmt.Sprintf("hello ends after %d of at least %d bytes", len(frame), HeaderLen+helloFixed+2))
	}
	h := Hello{
		Incarnation: binary.LittleEndian.Uint64(rest),
		From:        godwit.NodeID(binary.LittleEndian.Uint16(rest[8:])),
		To:          godwit.NodeID(binary.LittleEndian.Uint16(rest[10:])),
		Features:    Features(binary.LittleEndian.Uint32(rest[12:])),
	}
	rest = rest[helloFixed:]
	var ok bool
	if h.Run, rest, ok = cutText(rest); !ok {
		return Hello{}, headerError(len(frame)-len(rest), "the name of the run in a hello is cut off or too long")
	}
	if h.Fingerprint, rest, ok = cutText(rest); !ok {
		return Hello{}, headerError(len(frame)-len(rest), "the fingerprint in a hello is cut off or too long")
	}
	if len(rest) > 0 {
		return Hello{}, headerError(len(frame)-len(rest), fmt.Sprintf("%d bytes follow a hello", len(rest)))
	}
	return h, nil
}

// cutText takes a text from the start of b and returns what follows.
func cutText(b []byte) (s string, rest []byte, ok bool) {
	if len(b) == 0 || int(b[0]) > maxText || int(b[0]) > len(b)-1 {
		return "", b, false
	}
	n := 1 + int(b[0])
	return string(b[1:n]), b[n:], true
}

// A Nonce is what each side of a new connection says first: a random number, so
// that what proves its membership then is worth nothing on another connection.
// Its frame ends after the 32 bytes that follow the header.
type Nonce [32]byte

// A Proof shows that who says it is a member of the run: a code of 32 bytes that
// takes the run's secret to make, of the nonces and hellos of a connection. Its
// frame ends after it.
type Proof [32]byte

// AppendNonce appends the frame of n to dst and returns the longer slice.
func AppendNonce(dst []byte, n Nonce) []byte { return appendCode(dst, typeNonce, n) }

// ParseNonce reads a whole frame that must be a Nonce. The error is a
// *VersionError for a frame of another version of the protocol.
func ParseNonce(frame []byte) (Nonce, error) {
	b, err := parseCode(frame, typeNonce)
	return Nonce(b), err
}

// AppendProof appends the frame of p to dst and returns the longer slice.
func AppendProof(dst []byte, p Proof) []byte { return appendCode(dst, typeProof, p) }

// ParseProof reads a whole frame that must be a Proof.
func ParseProof(frame []byte) (Proof, error) {
	b, err := parseCode(frame, typeProof)
	return Proof(b), err
}

func appendCode(dst []byte, typ byte, code [32]byte) []byte {
	start := len(dst)
	dst = append(dst, make([]byte, HeaderLen)...)
	putHeader(dst[start:], typ, 0)
	dst = append(dst, code[:]...)
	putLen(dst[start:])
	return dst
}

func parseCode(frame []byte, typ byte) (code [32]byte, err error) {
	rest, err := opening(frame, typ)
	if err != nil {
		return code, err
	}
	if len(rest) != len(code) {
		return code, headerError(HeaderLen, fmt.Sprintf("%d bytes after the header, want %d", len(rest), len(code)))
	}
	return [32]byte(rest), nil
}

// opening checks the header of a frame that opens a connection, and returns what
// follows.
func opening(frame []byte, typ byte) ([]byte, error) {
	view, err := parseHeader(frame, typ)
	if err != nil {
		return nil, err
	}
	if view != 0 {
		return nil, headerError(8, fmt.Sprintf("view %d in a frame that opens a connection, want 0", view))
	}
	return frame[HeaderLen:], nil
}
