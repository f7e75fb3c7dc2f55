//go:build preempt

package preempt

import "sync"

const On = true

var Unverified bool

var (
	installed sync.Mutex // is locked while a hook is
	hook      func()
	held      int // locks and parts that the hook's goroutines are in
)

func Point() {
	if hook != nil && held == 0 {
		hook()
	}
}

func Hold() {
	if hook != nil {
		held++
	}
}

func Release() {
	if hook != nil {
		held--
	}
}

func Copy(dst, src []float32) {
	half := min(len(dst), len(src)) / 2
	copy(dst[:half], src)
	Point()
	copy(dst[half:], src[half:])
}

type Mutex struct{ sync.Mutex }

func (m *Mutex) Lock() {
	Point()
	m.Mutex.Lock()
	Hold()
}

func (m *Mutex) TryLock() bool {
	if !m.Mutex.TryLock() {
		return false
	}
	Hold()
	return true
}

func (m *Mutex) Unlock() {
	m.Mutex.Unlock()
	Release()
	Point()
}

func Install(f func()) (remove func()) {
	installed.Lock()
	hook, held = f, 0
	return func() {
		hook = nil
		installed.Unlock()
	}
}
