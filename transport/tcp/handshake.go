package tcp

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/transport"
)

// A role says which of the three proofs of a connection one is, so that none of
// them can stand in for another.
type role byte

const (
	dials    role = 1 // the dialer knows the secret,
	listens  role = 2 // the listener does,
	confirms role = 3 // and the dialer has heard that
)

// errUnproved is what is wrong with a stranger.
var errUnproved = errors.New("does not know the secret of this run")

// prove returns the proof for a role at the end of what was said: the frames of
// both nonces, of the dialer's hello and, but for the first proof, of the
// listener's, in this order. Each frame begins with its length, so that different
// frames never are the same bytes.
func prove(secret []byte, r role, said []byte) wire.Proof {
	h := hmac.New(sha256.New, secret)
	h.Write([]byte{byte(r)})
	h.Write(said)
	return wire.Proof(h.Sum(nil))
}

// proves reports whether p is that proof, in a time that says nothing about it.
func proves(p wire.Proof, secret []byte, r role, said []byte) bool {
	want := prove(secret, r, said)
	return hmac.Equal(p[:], want[:])
}

// nonce returns the frame of a new one.
func nonce() []byte {
	var n wire.Nonce
	_, _ = rand.Read(n[:]) // never fails
	return wire.AppendNonce(nil, n)
}

// dialed is the handshake of who has dialed and says hello, up to the last frame,
// which it returns.
func (c *conn) dialed(hello, secret []byte) (confirm []byte, err error) {
	mine := nonce()
	if _, err := c.stream.Write(mine); err != nil {
		return nil, err
	}
	theirs, err := c.hear(ofNonce)
	if err != nil {
		return nil, fmt.Errorf("it does not begin as a node does: %w", err)
	}
	said := slices.Concat(mine, theirs, hello)
	if _, err := c.stream.Write(wire.AppendProof(slices.Clone(hello), prove(secret, dials, said))); err != nil {
		return nil, err
	}
	answer, err := c.hear(c.ofHello)
	if err != nil {
		return nil, fmt.Errorf("it does not answer as a node of this run does: %w", err)
	}
	said = append(said, answer...)
	proof, err := c.hearProof()
	if err != nil {
		return nil, err
	}
	if !proves(proof, secret, listens, said) {
		return nil, &transport.Mismatch{Err: errUnproved}
	}
	return wire.AppendProof(nil, prove(secret, confirms, said)), nil
}

// hearOut hears all that a dialer says before it is told anything, and returns
// what both sides have said so far and what is to prove it.
func (c *conn) hearOut() (said []byte, proof wire.Proof, err error) {
	mine := nonce()
	if _, err = c.stream.Write(mine); err != nil {
		return nil, proof, err
	}
	theirs, err := c.hear(ofNonce)
	if err != nil {
		return nil, proof, err
	}
	hello, err := c.hear(c.ofHello)
	if err != nil {
		return nil, proof, err
	}
	proof, err = c.hearProof()
	return slices.Concat(theirs, mine, hello), proof, err
}

// answer is the rest of the handshake with a dialer that has proved itself.
func (c *conn) answer(hello, secret, said []byte) error {
	said = append(said, hello...)
	if _, err := c.stream.Write(wire.AppendProof(slices.Clone(hello), prove(secret, listens, said))); err != nil {
		return err
	}
	proof, err := c.hearProof()
	if err != nil {
		return fmt.Errorf("it did not confirm: %w", err)
	}
	if !proves(proof, secret, confirms, said) {
		return errUnproved
	}
	return nil
}

// hear returns the next frame, which parse takes. It is the caller's.
func (c *conn) hear(parse func(frame []byte) error) ([]byte, error) {
	frame, err := c.r.next(wire.MaxHello)
	if err == nil {
		err = parse(frame)
	}
	if err != nil {
		return nil, err
	}
	return slices.Clone(frame), nil
}

func ofNonce(frame []byte) error {
	_, err := wire.ParseNonce(frame)
	return err
}

// ofHello takes the peer's hello.
func (c *conn) ofHello(frame []byte) (err error) {
	c.peer, err = wire.ParseHello(frame)
	return err
}

func (c *conn) hearProof() (p wire.Proof, err error) {
	frame, err := c.r.next(wire.MaxHello)
	if err != nil {
		return p, err
	}
	return wire.ParseProof(frame)
}
