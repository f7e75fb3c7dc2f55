package tcp

import (
	"errors"
	"net"
	"os"
	"sync/atomic"
	"syscall"
)

// A watch waits for what arrives at a socket, beside those who read it: it is an
// epoll of its own, for which Go's poller waits as for any file. While it is
// masked it does not report what arrives.
//
// An epoll that is rearmed, and finds that something is there, reports it only if
// the socket is not in its list of what may be ready. It stays in that after each
// arrival until somebody asks the epoll, or the poller finds nothing ready in it.
// So, once others read, too, the goroutine that waits for it asks it after
// each wakeup. Then whenever the socket is in the list, a wakeup is under way.
type watch struct {
	sock  syscall.RawConn
	file  *os.File // the epoll
	epoll syscall.RawConn

	disarm func()
	rearm  func()      // reports arrivals again, first what is there already
	masked atomic.Bool // or shared, at some time

	// Of the goroutine that holds conn.reading.
	read func(fd uintptr) // made once: a read allocates nothing
	sent func(fd uintptr) bool
	send func()
	r    *frameReader
	b    []byte
	n    int
	err  error
}

// exchange calls send and waits until something arrives, which it reads into r.
// That the wait begins before send saves a look at the socket. What was there
// already is read with what comes.
func (w *watch) exchange(send func(), r *frameReader) error {
	w.send, w.r = send, r
	err := w.sock.Read(w.sent)
	w.r = nil
	if w.send != nil { // there was not even a beginning
		w.send = nil
		send()
	}
	return err
}

func (w *watch) sendAndRead(fd uintptr) bool {
	if send := w.send; send != nil {
		w.send = nil
		send()
		return false
	}
	for {
		n, err := readSocket(fd, w.r.room())
		if err == syscall.EINTR {
			continue
		}
		w.r.end += max(n, 0)
		w.r.arrived.Add(uint64(max(n, 0)))
		return err != syscall.EAGAIN
	}
}

// newWatch returns nil for a stream that is no plain socket, and where the
// system has nothing left to watch with.
func newWatch(stream net.Conn) *watch {
	sock := rawOf(stream)
	if sock == nil {
		return nil
	}
	fd, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil
	}
	if err := syscall.SetNonblock(fd, true); err != nil { // so that Go waits for it without a thread
		syscall.Close(fd)
		return nil
	}
	w := &watch{sock: sock, file: os.NewFile(uintptr(fd), "epoll")}
	if w.epoll, err = w.file.SyscallConn(); err == nil {
		w.read, w.sent = w.readFrom, w.sendAndRead
		err = w.add()
	}
	if err != nil {
		w.file.Close()
		return nil
	}
	return w
}

// add has the epoll watch the socket.
func (w *watch) add() (err error) {
	e := w.sock.Control(func(sock uintptr) {
		w.disarm, w.rearm = w.change(int(sock), 0), w.change(int(sock), arrivals)
		e := w.epoll.Control(func(epoll uintptr) {
			err = syscall.EpollCtl(int(epoll), syscall.EPOLL_CTL_ADD, int(sock), &syscall.EpollEvent{Events: arrivals})
		})
		err = errors.Join(e, err)
	})
	return errors.Join(e, err)
}

// change returns a function that tells the epoll what to see of the socket. It
// allocates nothing, and does nothing once either is closed, as nobody cares for
// the events of a connection that is over.
func (w *watch) change(sock int, events uint32) func() {
	event := &syscall.EpollEvent{Events: events}
	change := func(epoll uintptr) { syscall.EpollCtl(int(epoll), syscall.EPOLL_CTL_MOD, sock, event) }
	both := func(uintptr) { w.epoll.Control(change) } // while the socket is kept open: its number is its own
	return func() { w.sock.Control(both) }
}

// arrivals tells an epoll to report each of them once.
const arrivals = syscall.EPOLLIN | syscall.EPOLLRDHUP | 1<<31 // EPOLLET, which package syscall has as a negative number

// each calls f, and again each time that something has arrived, until f returns
// true. It looks at the socket before it begins to wait, so f must take
// everything that is there.
func (w *watch) each(f func() bool) error {
	return w.epoll.Read(func(epoll uintptr) bool {
		if w.masked.Load() {
			ask(epoll)
		}
		return f()
	})
}

// ask empties the epoll's list.
func ask(epoll uintptr) {
	var events [1]syscall.EpollEvent // it watches one socket
	syscall.EpollWait(int(epoll), events[:], 0)
}

// mask stops the reports of arrivals until rearm. One goroutine at a time calls it.
func (w *watch) mask() {
	w.disarm()
	w.share()
}

// share says that from now on others read as well, and may rearm the watch. One goroutine at a
// time calls it.
func (w *watch) share() {
	if !w.masked.Load() {
		w.masked.Store(true)
		w.epoll.Control(ask)
	}
}

// wake ends each.
func (w *watch) wake() { w.file.SetReadDeadline(epoch) }

func (w *watch) close() { w.file.Close() }

// Read reads what is there, or returns errWouldBlock.
func (w *watch) Read(b []byte) (int, error) {
	w.b, w.n, w.err = b, 0, nil
	err := w.sock.Control(w.read)
	w.b = nil
	if err == nil {
		err = w.err
	}
	return w.n, err
}

func (w *watch) readFrom(fd uintptr) {
	if w.n, w.err = readNow(fd, w.b); w.err == syscall.EAGAIN {
		w.err = errWouldBlock
	}
}
