package mem

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/transport"
)

// Bounds of a queue: about what sockets hold.
const (
	maxQueued  = 64      // frames
	maxBytes   = 1 << 20 // of all frames; one frame alone may have more
	keepBuffer = 1 << 16 // larger buffers are not kept for reuse
)

var errPeerClosed = errors.New("the peer closed the connection")

// A queue is one direction of a connection. A writer waits while it is full, a
// reader while it is empty.
type queue struct {
	mu      sync.Mutex
	changed sync.Cond // signals every change of what is below; mu is its lock

	frames       [maxQueued][]byte // a ring: n frames from first on
	first, n     int
	bytes        int      // of the n frames
	free         [][]byte // buffers for frames to come
	lastRead     []byte   // the frame that was read last; the reader may still use it
	writerClosed bool     // no frame will follow
	readerClosed bool     // no frame will be read
}

func newQueue() *queue {
	q := &queue{}
	q.changed.L = &q.mu
	return q
}

// put adds a copy of a frame. If there is no room, it waits or reports false.
func (q *queue) put(frame []byte, wait bool) (bool, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.writerClosed && !q.readerClosed && (q.n == maxQueued || q.n > 0 && q.bytes+len(frame) > maxBytes) {
		if !wait {
			return false, nil
		}
		q.changed.Wait()
	}
	switch {
	case q.writerClosed:
		return false, godwit.ErrClosed
	case q.readerClosed:
		return false, errPeerClosed
	}
	var b []byte
	if last := len(q.free) - 1; last >= 0 {
		b, q.free = q.free[last], q.free[:last]
	}
	b = transport.Room(b, len(frame))
	copy(b, frame)
	q.frames[(q.first+q.n)%maxQueued] = b
	q.n++
	q.bytes += len(frame)
	q.changed.Broadcast()
	return true, nil
}

// take returns the oldest frame, which is the reader's until the next take.
func (q *queue) take() ([]byte, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if b := q.lastRead; b != nil {
		if q.lastRead = nil; cap(b) <= keepBuffer {
			q.free = append(q.free, b)
		}
	}
	for q.n == 0 && !q.writerClosed && !q.readerClosed {
		q.changed.Wait()
	}
	switch {
	case q.readerClosed:
		return nil, fmt.Errorf("mem: read: %w", godwit.ErrClosed)
	case q.n == 0:
		return nil, io.EOF
	}
	b := q.frames[q.first]
	q.frames[q.first] = nil
	q.first = (q.first + 1) % maxQueued
	q.n--
	q.bytes -= len(b)
	q.lastRead = b
	q.changed.Broadcast()
	return b, nil
}

func (q *queue) ready() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.n > 0
}

func (q *queue) closeWriter() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.writerClosed = true
	q.changed.Broadcast()
}

// closeReader also lets go of what nobody will read.
func (q *queue) closeReader() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.readerClosed = true
	q.frames, q.n, q.bytes, q.free = [maxQueued][]byte{}, 0, 0, nil
	q.changed.Broadcast()
}
