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
// them can be used as another.
type role byte

const (
	dials    role = 1 // the dialer knows the secret,
	listens  role = 2 // the listener does,
	confirms role = 3 // and the dialer has received that
)

// errUnproved is returned for a peer that does not know the secret.
var errUnproved = errors.New("does not know the secret of this run")

// prove returns the proof for a role at the end of a transcript: the frames of
// both nonces, of the dialer's hello and, but for the first proof, of the
// listener's, in this order. Each frame begins with its length, so that different
// frames never are the same bytes.
func prove(secret []byte, r role, transcript []byte) wire.Proof {
	h := hmac.New(sha256.New, secret)
	h.Write([]byte{byte(r)})
	h.Write(transcript)
	return wire.Proof(h.Sum(nil))
}

// proves reports whether p is that proof, in a time that says nothing about it.
func proves(p wire.Proof, secret []byte, r role, transcript []byte) bool {
	want := prove(secret, r, transcript)
	return hmac.Equal(p[:], want[:])
}

// nonce returns the frame of a new one.
func nonce() []byte {
	var n wire.Nonce
	_, _ = rand.Read(n[:]) // never fails
	return wire.AppendNonce(nil, n)
}

// dialed is the dialer's side of the handshake up to its last frame, which it
// returns. hello is the frame of its hello.
func (c *conn) dialed(hello, secret []byte) (confirm []byte, err error) {
	mine := nonce()
	if _, err := c.stream.Write(mine); err != nil {
		return nil, err
	}
	theirs, err := c.readFrame(parseNonce)
	if err != nil {
		return nil, fmt.Errorf("it does not begin as a node does: %w", err)
	}
	transcript := slices.Concat(mine, theirs, hello)
	if _, err := c.stream.Write(wire.AppendProof(slices.Clone(hello), prove(secret, dials, transcript))); err != nil {
		return nil, err
	}
	answer, err := c.readFrame(c.parseHello)
	if err != nil {
		return nil, fmt.Errorf("it does not answer as a node of this run does: %w", err)
	}
	transcript = append(transcript, answer...)
	proof, err := c.readProof()
	if err != nil {
		return nil, err
	}
	if !proves(proof, secret, listens, transcript) {
		return nil, &transport.Mismatch{Err: errUnproved}
	}
	return wire.AppendProof(nil, prove(secret, confirms, transcript)), nil
}

// readHello reads all that a dialer sends before it gets an answer, and returns the
// transcript of both sides so far and the dialer's proof of it.
func (c *conn) readHello() (transcript []byte, proof wire.Proof, err error) {
	mine := nonce()
	if _, err = c.stream.Write(mine); err != nil {
		return nil, proof, err
	}
	theirs, err := c.readFrame(parseNonce)
	if err != nil {
		return nil, proof, err
	}
	hello, err := c.readFrame(c.parseHello)
	if err != nil {
		return nil, proof, err
	}
	proof, err = c.readProof()
	return slices.Concat(theirs, mine, hello), proof, err
}

// answer is the rest of the handshake with a dialer that has proved itself.
func (c *conn) answer(hello, secret, transcript []byte) error {
	transcript = append(transcript, hello...)
	if _, err := c.stream.Write(wire.AppendProof(slices.Clone(hello), prove(secret, listens, transcript))); err != nil {
		return err
	}
	proof, err := c.readProof()
	if err != nil {
		return fmt.Errorf("it did not confirm: %w", err)
	}
	if !proves(proof, secret, confirms, transcript) {
		return errUnproved
	}
	return nil
}

// readFrame returns the next frame, which parse must accept. It is the caller's.
func (c *conn) readFrame(parse func(frame []byte) error) ([]byte, error) {
	frame, err := c.r.next(wire.MaxHello)
	if err == nil {
		err = parse(frame)
	}
	if err != nil {
		return nil, err
	}
	return slices.Clone(frame), nil
}

func parseNonce(frame []byte) error {
	_, err := wire.ParseNonce(frame)
	return err
}

// parseHello sets the peer's hello.
func (c *conn) parseHello(frame []byte) (err error) {
	c.peer, err = wire.ParseHello(frame)
	return err
}

func (c *conn) readProof() (p wire.Proof, err error) {
	frame, err := c.r.next(wire.MaxHello)
	if err != nil {
		return p, err
	}
	return wire.ParseProof(frame)
}
