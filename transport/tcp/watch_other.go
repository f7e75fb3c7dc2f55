//go:build !linux

package tcp

import "net"

// A watch waits for what arrives at a socket, which is not done here: whoever serves
// a connection reads it, and nobody reads inline.
type watch struct{ mask, rearm func() }

func newWatch(net.Conn) *watch { return nil }

func (*watch) exchange(func(), *frameReader) error { return errWouldBlock }

func (*watch) share() {}

func (*watch) wake() {}

func (*watch) each(func() bool) error { return nil }

func (*watch) close() {}

func (*watch) Read([]byte) (int, error) { return 0, errWouldBlock }
