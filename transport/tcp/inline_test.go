package tcp

import (
	"encoding/binary"
	"errors"
	"flag"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/transport"
)

var seed = flag.Uint64("seed", uint64(time.Now().UnixNano()), "of the random tests")

// joined returns the two ends of a connection.
func joined(t *testing.T) (here, there *conn) {
	t.Helper()
	l, err := Network{}.Listen(anyAddr())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	type end struct {
		c   transport.Conn
		err error
	}
	accepted := make(chan end, 1)
	go func() {
		c, err := l.Accept(t.Context(), transport.Hello{}, secret)
		accepted <- end{c, err}
	}()
	dialed, err := Network{}.Dial(t.Context(), l.Addr(), transport.Hello{From: 1}, secret)
	if err != nil {
		t.Fatal(err)
	}
	other := <-accepted
	if other.err != nil {
		t.Fatal(other.err)
	}
	t.Cleanup(func() { dialed.Close(); other.c.Close() })
	return dialed.(*conn), other.c.(*conn)
}

// A served connection has somebody who serves it.
type served struct {
	*conn
	ended chan error // what Serve returned
}

func serve(t *testing.T, c *conn, take func(frame []byte) bool) *served {
	s := &served{conn: c, ended: make(chan error, 1)}
	go func() { s.ended <- c.Serve(take) }()
	t.Cleanup(func() { c.Close() })
	return s
}

// watched waits until somebody can read inline.
func (s *served) watched(t *testing.T) {
	t.Helper()
	w := newWatch(s.stream)
	if w == nil {
		t.Skip("this system has no watches")
	}
	w.close()
	never := make(chan struct{}, 1)
	s.ReadInline(func() {}, never, time.Millisecond)
	for end := time.Now().Add(limit); s.watch.Load() == nil; time.Sleep(100 * time.Microsecond) {
		if time.Now().After(end) {
			t.Fatalf("nobody can read inline within %v", limit)
		}
	}
}

func (s *served) end(t *testing.T) error {
	t.Helper()
	select {
	case err := <-s.ended:
		return err
	case <-time.After(limit):
		t.Fatalf("Serve did not return within %v", limit)
		return nil
	}
}

// readingInline reports whether ReadInline called the caller.
func readingInline() bool {
	pcs := make([]uintptr, 16)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	for {
		f, more := frames.Next()
		if strings.HasSuffix(f.Function, ".ReadInline") {
			return true
		}
		if !more {
			return false
		}
	}
}

// numbered is a frame of n bytes, at least 24, with a number in it.
func numbered(n int, number uint64) []byte {
	f := sized(n)
	binary.LittleEndian.PutUint64(f[16:], number)
	return f
}

func numberOf(f []byte) uint64 { return binary.LittleEndian.Uint64(f[16:]) }

func TestWhoReadsInlineTakesTheAnswer(t *testing.T) {
	here, there := joined(t)
	done := make(chan struct{}, 1)
	var own int
	s := serve(t, here, func(f []byte) bool {
		if readingInline() {
			own++
		}
		done <- struct{}{}
		return true
	})
	s.watched(t)
	go echo(there)
	const asks = 100
	for i := range uint64(asks) {
		s.ReadInline(func() {
			if err := s.WriteFrame(numbered(32, i)); err != nil {
				t.Error(err)
			}
		}, done, limit)
		<-done // who serves may be at it
	}
	if own == 0 {
		t.Errorf("of %d answers, who stood in took none", asks)
	}
	// Now nobody reads inline: who serves takes what comes.
	if err := s.WriteFrame(numbered(32, asks)); err != nil {
		t.Fatal(err)
	}
	select {
	case <-done:
	case <-time.After(limit):
		t.Fatalf("a frame that nobody waited for was not taken within %v", limit)
	}
	here.Close()
	if err := s.end(t); !errors.Is(err, godwit.ErrClosed) {
		t.Errorf("Serve of a closed connection returned %v, want ErrClosed", err)
	}
}

func TestEachFrameIsTakenOnceAndInOrderWhoeverReads(t *testing.T) {
	t.Logf("-seed %d", *seed)
	rng := rand.New(rand.NewPCG(*seed, 1))
	const frames = 600
	here, there := joined(t)
	all := make(chan struct{})
	var busy atomic.Int32 // who is taking a frame
	next := uint64(0)
	s := serve(t, here, func(f []byte) bool {
		if busy.Add(1) != 1 {
			t.Error("two take a frame at the same time")
		}
		defer busy.Add(-1)
		if got := numberOf(f); got != next {
			t.Errorf("frame %d came, want %d", got, next)
			return false
		}
		if next++; next == frames {
			close(all)
		}
		return true
	})
	s.watched(t)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for i := range 3 {
		rng := rand.New(rand.NewPCG(*seed, uint64(2+i)))
		wg.Go(func() {
			done := make(chan struct{}, 1)
			for {
				select {
				case <-stop:
					return
				default:
				}
				switch rng.IntN(6) {
				case 0:
					s.Interrupt()
				case 1, 2:
					s.ReadInline(func() {}, done, time.Duration(rng.IntN(2_000_000)))
				default:
					s.Poll()
				}
			}
		})
	}
	// Parts of frames, and many at once, as a network cuts them.
	var stream []byte
	for i := range uint64(frames) {
		stream = append(stream, numbered(24+8*rng.IntN(100)+rng.IntN(20)/19*70_000, i)...)
	}
	for len(stream) > 0 {
		n := min(len(stream), 1+rng.IntN(3000)+rng.IntN(30)/29*200_000)
		if _, err := there.stream.Write(stream[:n]); err != nil {
			t.Fatal(err)
		}
		stream = stream[n:]
		if rng.IntN(50) == 0 {
			time.Sleep(time.Duration(rng.IntN(300_000)))
		}
	}
	select {
	case <-all:
	case err := <-s.ended:
		t.Errorf("Serve ended: %v", err)
	case <-time.After(limit):
		t.Errorf("not all frames were taken within %v", limit)
	}
	close(stop)
	wg.Wait()
}

// While others poll, and read nothing else, each frame is taken, also the one that comes when
// nobody polls any more.
func TestNoFrameIsLeftByThosePolling(t *testing.T) {
	const frames, pollers = 300, 2
	here, there := joined(t)
	taken := make(chan uint64, frames)
	s := serve(t, here, func(f []byte) bool {
		taken <- numberOf(f)
		return true
	})
	s.watched(t)
	var stop atomic.Bool
	var wg sync.WaitGroup
	for range pollers {
		wg.Go(func() {
			for !stop.Load() {
				s.Poll()
			}
		})
	}
	for i := range uint64(frames) {
		if i == frames/2 {
			stop.Store(true)
			wg.Wait()
		}
		if err := there.WriteFrame(numbered(32, i)); err != nil {
			t.Fatal(err)
		}
		select {
		case n := <-taken:
			if n != i {
				t.Fatalf("frame %d was taken, want %d", n, i)
			}
		case <-time.After(limit):
			t.Fatalf("frame %d was not taken within %v", i, limit)
		}
	}
	there.Close()
	s.Poll()
	if err := s.end(t); err != io.EOF {
		t.Errorf("Serve returned %v after the peer's end", err)
	}
}

// What arrives when one who polls has read all, and has not let others read yet, is taken.
func TestAFrameThatCameWhilePollingEndsIsTaken(t *testing.T) {
	here, there := joined(t)
	taken := make(chan struct{}, 1)
	s := serve(t, here, func([]byte) bool { taken <- struct{}{}; return true })
	s.watched(t)
	for i := range uint64(20) {
		s.reading.Lock() // as Poll does
		w := s.watch.Load()
		w.share()
		err := s.takeAll(w)
		s.passed.Store(false)
		if err := there.WriteFrame(numbered(32, i)); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(limit); !s.passed.Load(); time.Sleep(10 * time.Microsecond) {
			if time.Now().After(end) {
				t.Fatalf("who serves did not see within %v that a frame has come", limit)
			}
		}
		s.stopPolling(w, err)
		select {
		case <-taken:
		case <-time.After(limit):
			t.Fatalf("frame %d was not taken within %v", i, limit)
		}
	}
}

func TestWhoeverReadsThePeersEndIsNoticed(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(s *served, there *conn)
		want error
	}{
		{"the peer closes", func(_ *served, there *conn) { there.Close() }, io.EOF},
		{"the peer is gone", func(_ *served, there *conn) { // what it did not read, it resets
			there.stream.(*net.TCPConn).SetLinger(0)
			there.Close()
		}, syscall.ECONNRESET},
		{"this side closes", func(s *served, _ *conn) { s.Close() }, godwit.ErrClosed},
	} {
		t.Run(c.name, func(t *testing.T) {
			here, there := joined(t)
			s := serve(t, here, func([]byte) bool { return true })
			s.watched(t)
			done := make(chan struct{}, 1)
			if c.want == syscall.ECONNRESET {
				c.end(s, there) // while nobody stands in, the watch finds out
				if err := s.end(t); !errors.Is(err, c.want) {
					t.Errorf("Serve returned %v, want %v", err, c.want)
				}
				return
			}
			// It stands in again and again, so that most likely it reads when the end comes.
			stop := make(chan struct{})
			var wg sync.WaitGroup
			wg.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
						s.ReadInline(func() {}, done, time.Millisecond)
					}
				}
			})
			c.end(s, there)
			if err := s.end(t); !errors.Is(err, c.want) {
				t.Errorf("Serve returned %v, want %v", err, c.want)
			}
			close(stop)
			wg.Wait()
		})
	}
}

func TestReadingInlineEnds(t *testing.T) {
	here, _ := joined(t)
	s := serve(t, here, func([]byte) bool { return true })
	s.watched(t)
	never := make(chan struct{}, 1)
	s.ReadInline(func() {}, never, time.Millisecond) // by itself, as no answer comes
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for { // one may come before the wait
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
				s.Interrupt()
			}
		}
	})
	s.ReadInline(func() {}, never, limit)
	close(stop)
	wg.Wait()
	done := make(chan struct{}, 1)
	done <- struct{}{}
	sent := false
	s.ReadInline(func() { sent = true; s.Interrupt() }, done, limit)
	if !sent {
		t.Error("who stood in sent nothing")
	}
}

func TestNobodyTakesFramesAfterTheLastThatWasWanted(t *testing.T) {
	here, there := joined(t)
	done := make(chan struct{}, 1)
	taken := 0
	s := serve(t, here, func([]byte) bool {
		taken++
		done <- struct{}{}
		return false
	})
	s.watched(t)
	for i := range uint64(3) {
		if err := there.WriteFrame(numbered(32, i)); err != nil {
			t.Fatal(err)
		}
	}
	<-done
	never := make(chan struct{}, 1)
	s.ReadInline(func() {}, never, time.Millisecond)
	here.Close()
	s.end(t)
	if taken != 1 {
		t.Errorf("%d frames were taken, want 1", taken)
	}
}

// stale has a connection believe that its reads end in an hour, and has them end at
// once: so it is when an Interrupt meets somebody who begins to read.
func (s *served) stale() {
	s.deadline.Store(int64(time.Since(epoch) + time.Hour))
	s.stream.SetReadDeadline(epoch)
}

func TestWhoWasInterruptedAtTheWrongTimeReadsAgain(t *testing.T) {
	here, _ := joined(t)
	s := serve(t, here, func([]byte) bool { return true })
	s.watched(t)
	never := make(chan struct{}, 1)
	s.stale()
	s.ReadInline(func() {}, never, time.Millisecond) // finds out
	const timeout = 20 * time.Millisecond
	for range 100 { // who serves may be having a look
		begin := time.Now()
		s.ReadInline(func() {}, never, timeout)
		if time.Since(begin) >= timeout {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Errorf("who stands in leaves before %v are over, although nothing came", timeout)
}

// What comes while the time runs out is taken by who stands in, whom it is for,
// rather than by who serves, who is not awake.
func TestWhoReadsInlineTakesWhatCameWhenTimeWasUp(t *testing.T) {
	here, there := joined(t)
	own := 0
	taken := make(chan struct{}, 1)
	s := serve(t, here, func([]byte) bool {
		if readingInline() {
			own++
		}
		taken <- struct{}{}
		return true
	})
	s.watched(t)
	never := make(chan struct{}, 1)
	for range 1000 { // a machine may be slow to carry even this
		s.stale()
		s.ReadInline(func() {
			if err := there.WriteFrame(numbered(32, 0)); err != nil {
				t.Error(err)
			}
		}, never, time.Millisecond)
		<-taken
		if own > 0 {
			return
		}
	}
	t.Error("of 1000 frames, who stood in took none")
}
