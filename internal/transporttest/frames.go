package transporttest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/godwit-ps/godwit/internal/wire"
	"github.com/godwit-ps/godwit/transport"
)

func hellos(s *suite) {
	zero, one := s.pair()
	want := hello(1)
	want.To = 0
	if got := zero.Peer(); got != want {
		s.Errorf("the accepting side sees %+v, want %+v", got, want)
	}
	want = hello(0)
	want.To = 1
	if got := one.Peer(); got != want {
		s.Errorf("the dialing side sees %+v, want %+v", got, want)
	}
}

// sizes draws n lengths of frames: mostly small ones.
func sizes(r *rand.Rand, n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = wire.HeaderLen + r.IntN(1+1<<r.IntN(8))
		if r.IntN(100) == 0 {
			out[i] += r.IntN(300_000)
		}
	}
	return out
}

func send(c transport.Conn, sizes []int, mark uint64) error {
	var buf []byte
	for i, n := range sizes {
		buf = frame(buf, n, mark+uint64(i))
		if err := c.WriteFrame(buf); err != nil {
			return fmt.Errorf("write of frame %d: %w", i, err)
		}
		clear(buf) // the frame is ours again
	}
	return nil
}

func receive(c transport.Conn, sizes []int, mark uint64) error {
	var want []byte
	for i, n := range sizes {
		ready, begun := c.Ready(), time.Now()
		got, err := c.ReadFrame()
		if err != nil {
			return fmt.Errorf("read of frame %d: %w", i, err)
		}
		if waited := time.Since(begun); ready && waited > limit/2 {
			return fmt.Errorf("frame %d was ready and took %v", i, waited)
		}
		if want = frame(want, n, mark+uint64(i)); !bytes.Equal(got, want) {
			return fmt.Errorf("frame %d has %d bytes that are not the %d written", i, len(got), n)
		}
		if at := uintptr(unsafe.Pointer(&got[0])); at%8 != 0 {
			return fmt.Errorf("frame %d begins at %#x, not at a multiple of 8", i, at)
		}
		clear(got[:cap(got)]) // it is ours, and nothing else is
	}
	return nil
}

// try sends frames without waiting where that can be, and waits only where it
// must: r draws which. It returns how many were sent without.
func try(c transport.Conn, sizes []int, mark uint64, r *rand.Rand) (tried int, err error) {
	var buf []byte
	for i, n := range sizes {
		buf = frame(buf, n, mark+uint64(i))
		sent := false
		if r.IntN(4) > 0 {
			if sent, err = c.TryFrame(buf); err != nil {
				return tried, fmt.Errorf("try of frame %d: %w", i, err)
			}
		}
		if sent {
			tried++
		} else if err := c.WriteFrame(buf); err != nil {
			return tried, fmt.Errorf("write of frame %d: %w", i, err)
		}
		clear(buf)
	}
	return tried, nil
}

func tries(s *suite) {
	zero, one := s.pair()
	lens := sizes(s.rand, 3000)
	done := make(chan error, 2)
	tried := 0
	go func() {
		var err error
		tried, err = try(one, lens, 1000, s.rand)
		done <- err
	}()
	go func() { done <- receive(zero, lens, 1000) }()
	for range cap(done) {
		s.must(s.wait("an end of the connection", done))
	}
	s.Logf("%d of %d frames were sent without a wait", tried, len(lens))
}

func tryNeverWaits(s *suite) {
	zero, one := s.pair()
	const n, max = 256 << 10, 256
	sent := 0
	done := make(chan error, 1)
	s.must(s.in("a try", func() error {
		for ; sent < max; sent++ {
			if ok, err := one.TryFrame(frame(nil, n, uint64(sent))); !ok {
				return err
			}
		}
		return errors.New("everything was taken though nobody read")
	}))
	go func() { done <- one.WriteFrame(frame(nil, n, uint64(sent))) }()
	want := make([]int, sent+1)
	for i := range want {
		want[i] = n
	}
	s.must(s.in("reading", func() error { return receive(zero, want, 0) }))
	s.must(s.wait("the writer", done))
	s.must(one.Close())
	_, err := one.TryFrame(frame(nil, 20, 0))
	if err == nil { // a network that never can
		err = one.WriteFrame(frame(nil, 20, 0))
	}
	s.wantClosed("a try afterwards", err)
}

func ready(s *suite) {
	zero, one := s.pair()
	if zero.Ready() {
		s.Error("a frame is ready and none was sent")
	}
	s.must(send(one, []int{24, 24, 24, 24}, 1))
	time.Sleep(100 * time.Millisecond) // for all of them to arrive
	seen := 0                          // a network may read one frame at a time
	for i := range 4 {
		s.must(s.in("reading", func() error { return receive(zero, []int{24}, 1+uint64(i)) }))
		if zero.Ready() {
			seen++
		}
	}
	if zero.Ready() {
		s.Error("a frame is ready and all were read")
	}
	s.Logf("%d of 4 frames that arrived together were ready", seen)
}

func order(s *suite) {
	zero, one := s.pair()
	up, down := sizes(s.rand, 3000), sizes(s.rand, 3000)
	errs := make(chan error, 4)
	go func() { errs <- send(one, up, 1000) }()
	go func() { errs <- send(zero, down, 2000) }()
	go func() { errs <- receive(zero, up, 1000) }()
	go func() { errs <- receive(one, down, 2000) }()
	for range cap(errs) {
		s.must(s.wait("an end of the connection", errs))
	}
}

func largeFrames(s *suite) {
	zero, one := s.pair()
	for _, n := range []int{64 << 10, 64<<10 + 1, 128 << 10, 1<<20 - 1, 5 << 20, 9_999_999} {
		sent := make(chan error, 1)
		go func() { sent <- send(one, []int{n, 20}, 5) }()
		s.must(s.in("reading", func() error { return receive(zero, []int{n, 20}, 5) }))
		s.must(<-sent)
	}
}

func lyingFrame(s *suite) {
	zero, one := s.pair()
	for _, lie := range []uint32{0, wire.HeaderLen - 1, 99, 101, 1 << 31} {
		f := frame(nil, 100, 0)
		binary.LittleEndian.PutUint32(f, lie)
		if err := one.WriteFrame(f); err == nil {
			s.Errorf("a frame of 100 bytes that claims %d was sent", lie)
		}
		if _, err := one.TryFrame(f); err == nil {
			s.Errorf("a frame of 100 bytes that claims %d was sent at a try", lie)
		}
	}
	if err := one.WriteFrame([]byte{3}); err == nil {
		s.Error("a frame of one byte was sent")
	}
	// The connection is none the worse for it.
	s.must(send(one, []int{50}, 1))
	s.must(receive(zero, []int{50}, 1))
}

// stuck starts to write frames of n bytes to c until it is held back. It
// returns the count of those written so far and a channel with the writer's
// error.
func (s *suite) stuck(c transport.Conn, n, max int) (*atomic.Int64, <-chan error) {
	var count atomic.Int64
	done := make(chan error, 1)
	go func() {
		for i := range max {
			if err := c.WriteFrame(frame(nil, n, uint64(i))); err != nil {
				done <- err
				return
			}
			count.Add(1)
		}
		done <- nil
	}()
	for last := int64(-1); last != count.Load(); time.Sleep(300 * time.Millisecond) {
		last = count.Load()
	}
	return &count, done
}

func backPressure(s *suite) {
	zero, one := s.pair()
	const n, max = 256 << 10, 256
	count, done := s.stuck(one, n, max)
	if got := count.Load(); got == max {
		s.Fatalf("%d bytes were taken though nobody read", n*max)
	}
	want := make([]int, max)
	for i := range want {
		want[i] = n
	}
	s.must(s.in("reading", func() error { return receive(zero, want, 0) }))
	s.must(s.wait("the writer", done))
}

func eof(s *suite) {
	zero, one := s.pair()
	s.must(send(one, []int{20, 100_000, 30}, 9))
	s.must(one.Close())
	s.must(s.in("reading", func() error { return receive(zero, []int{20, 100_000, 30}, 9) }))
	for range 2 {
		if _, err := zero.ReadFrame(); err != io.EOF {
			s.Errorf("read after the last frame: %v, want %v", err, io.EOF)
		}
	}
}

func closeEndsReaders(s *suite) {
	zero, one := s.pair()
	here, there := make(chan error, 1), make(chan error, 1)
	go func() { _, err := one.ReadFrame(); here <- err }()
	go func() { _, err := zero.ReadFrame(); there <- err }()
	time.Sleep(20 * time.Millisecond)
	s.must(one.Close())
	s.wantClosed("the closing side's reader", s.wait("the closing side's reader", here))
	if err := s.wait("the peer's reader", there); err != io.EOF {
		s.Errorf("the peer's reader: %v, want %v", err, io.EOF)
	}
	_, err := one.ReadFrame()
	s.wantClosed("a read afterwards", err)
	s.wantClosed("a write afterwards", one.WriteFrame(frame(nil, 20, 0)))
	s.must(one.Close())
}

func closeEndsWriter(s *suite) {
	_, one := s.pair()
	_, done := s.stuck(one, 256<<10, 256)
	s.must(one.Close())
	s.wantClosed("the writer", s.wait("the writer", done))
}

func writeToClosedPeer(s *suite) {
	zero, one := s.pair()
	_, done := s.stuck(one, 256<<10, 256)
	s.must(zero.Close())
	if err := s.wait("the writer", done); err == nil {
		s.Error("everything could be written to a peer that had closed")
	}
}

// rawPeer connects to a listener as a node 1 that then writes the bytes given
// below the frames, and returns the connection of node 0.
func (s *suite) rawPeer(after []byte) (transport.Conn, io.ReadWriteCloser) {
	s.Helper()
	if s.Below == nil {
		s.Skip("there is nothing below the frames")
	}
	l := s.listen()
	dialed := s.dial(l.Addr())
	c, err := l.Accept(s.ctx, hello(0), secret)
	s.must(err)
	s.Cleanup(func() { c.Close() })
	d := <-dialed
	s.must(d.err)
	raw := s.Below(d.conn)
	_, err = raw.Write(after)
	s.must(err)
	return c, raw
}

// allocated returns the bytes that were allocated while f ran.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func garbageLength(s *suite) {
	for _, n := range []uint32{0, wire.HeaderLen - 1, wire.MaxFrame + 1, 1<<32 - 1} {
		c, _ := s.rawPeer(binary.LittleEndian.AppendUint32(nil, n))
		for range 2 { // and nothing is made of what follows
			var err error
			if got := allocated(func() { _, err = c.ReadFrame() }); got > 1<<20 {
				s.Errorf("length %d: %d bytes were allocated", n, got)
			}
			if err == nil || err == io.EOF {
				s.Errorf("length %d: error %v, want one about the length", n, err)
			}
		}
	}
}

func claimedLength(s *suite) {
	c, raw := s.rawPeer(append(binary.LittleEndian.AppendUint32(nil, wire.MaxFrame), make([]byte, 1000)...))
	s.must(raw.Close())
	var err error
	if got := allocated(func() { _, err = c.ReadFrame() }); got > 1<<20 {
		s.Errorf("%d bytes were allocated for 1000 that came", got)
	}
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		s.Errorf("error %v, want %v", err, io.ErrUnexpectedEOF)
	}
}
