// Libgodwit is Godwit as a C library, built with -buildmode=c-shared. godwit.h describes its
// functions. The Python package loads it, and programs in other languages can.
package main

/*
#include <stdint.h>
#include <stdlib.h>

void godwit_fail(char *text);
*/
import "C"

import (
	"fmt"
	"math"
	"runtime/debug"
	"time"
	"unsafe"

	"github.com/godwit-ps/godwit/internal/capi"
)

func main() {}

// failed keeps an error as the thread's and returns its code.
func failed(err error) C.int32_t {
	if err == nil {
		return C.int32_t(capi.OK)
	}
	C.godwit_fail(C.CString(err.Error()))
	return C.int32_t(capi.CodeOf(err))
}

// again is the result of a wait.
func again(over bool, err error) C.int32_t {
	if !over && err == nil {
		return C.int32_t(capi.Again)
	}
	return failed(err)
}

// number returns a number, or the code of an error.
func number(n int64, err error) C.int64_t {
	if err != nil {
		return C.int64_t(failed(err))
	}
	return C.int64_t(n)
}

// recovered makes an error of a panic: none may reach C.
func recovered[T C.int32_t | C.int64_t](code *T) {
	if p := recover(); p != nil {
		C.godwit_fail(C.CString(fmt.Sprintf("a defect of Godwit: %v\n%s", p, debug.Stack())))
		*code = T(capi.Panic)
	}
}

func wait(ms C.int32_t) time.Duration { return time.Duration(ms) * time.Millisecond }

// slice makes a slice of C's memory. No memory is only good for no elements, and no memory
// has more elements than an address space.
func slice[T int64 | float32 | byte](at unsafe.Pointer, n C.size_t) ([]T, error) {
	var x T
	if uint64(n) > math.MaxInt64/uint64(unsafe.Sizeof(x)) || at == nil && n != 0 {
		return nil, capi.BadBuffer(uint64(n))
	}
	if n == 0 {
		return nil, nil
	}
	return unsafe.Slice((*T)(at), int(n)), nil
}

func longs(at *C.int64_t, n C.size_t) ([]int64, error) { return slice[int64](unsafe.Pointer(at), n) }

func floats(at *C.float, n C.size_t) ([]float32, error) { return slice[float32](unsafe.Pointer(at), n) }

// on calls a worker's function that may leave an operation, whose number it hands to C.
func on(id C.int64_t, op *C.uint64_t, f func(*capi.Worker) (uint64, error)) C.int32_t {
	if op == nil {
		return failed(capi.BadBuffer(1))
	}
	*op = 0
	w, err := capi.WorkerOf(int64(id))
	if err != nil {
		return failed(err)
	}
	o, err := f(w)
	if err == nil && o != 0 {
		*op = C.uint64_t(o)
		return C.int32_t(capi.Again)
	}
	return failed(err)
}

// onRows is on of a function about rows, and values of them.
func onRows(id C.int64_t, op *C.uint64_t, rows *C.int64_t, count C.size_t, vals *C.float, n C.size_t, f func(w *capi.Worker, rows []int64, vals []float32) (uint64, error)) C.int32_t {
	r, err := longs(rows, count)
	if err != nil {
		return failed(err)
	}
	v, err := floats(vals, n)
	if err != nil {
		return failed(err)
	}
	return on(id, op, func(w *capi.Worker) (uint64, error) { return f(w, r, v) })
}

//export go_open
func go_open(config *C.char, length C.size_t) (code C.int64_t) {
	defer recovered(&code)
	text, err := slice[byte](unsafe.Pointer(config), length)
	if err != nil {
		return number(0, err)
	}
	return number(capi.OpenNumber(text))
}

//export go_ready
func go_ready(id C.int64_t, ms C.int32_t) (code C.int32_t) {
	defer recovered(&code)
	c, err := capi.ClusterOf(int64(id))
	if err != nil {
		return failed(err)
	}
	return again(c.Ready(wait(ms)))
}

//export go_close
func go_close(id C.int64_t, ms C.int32_t) (code C.int32_t) {
	defer recovered(&code)
	return again(capi.CloseNumber(int64(id), wait(ms)))
}

//export go_abandon
func go_abandon(id C.int64_t, reason *C.char, length C.size_t, ms C.int32_t) (code C.int32_t) {
	defer recovered(&code)
	text, err := slice[byte](unsafe.Pointer(reason), length)
	if err != nil {
		return failed(err)
	}
	return again(capi.AbandonNumber(int64(id), string(text), wait(ms)))
}

//export go_worker
func go_worker(id C.int64_t, index C.int32_t) (code C.int64_t) {
	defer recovered(&code)
	return number(capi.WorkerNumber(int64(id), int(index)))
}

//export go_stats
func go_stats(id C.int64_t, text *C.char, size C.size_t, length *C.size_t) (code C.int32_t) {
	defer recovered(&code)
	return texts(id, text, size, length, (*capi.Cluster).Stats)
}

//export go_note
func go_note(id C.int64_t, event *C.char, length C.size_t) (code C.int32_t) {
	defer recovered(&code)
	text, err := slice[byte](unsafe.Pointer(event), length)
	if err != nil {
		return failed(err)
	}
	c, err := capi.ClusterOf(int64(id))
	if err != nil {
		return failed(err)
	}
	return failed(c.Note(text))
}

//export go_address
func go_address(id C.int64_t, text *C.char, size C.size_t, length *C.size_t) (code C.int32_t) {
	defer recovered(&code)
	return texts(id, text, size, length, func(c *capi.Cluster) ([]byte, error) { return []byte(c.Address()), nil })
}

// texts hands a text of a cluster to C.
func texts(id C.int64_t, text *C.char, size C.size_t, length *C.size_t, of func(*capi.Cluster) ([]byte, error)) C.int32_t {
	return bytesTo(text, size, length, func() ([]byte, error) {
		c, err := capi.ClusterOf(int64(id))
		if err != nil {
			return nil, err
		}
		return of(c)
	})
}

// bytesTo hands bytes to C.
func bytesTo(text *C.char, size C.size_t, length *C.size_t, of func() ([]byte, error)) C.int32_t {
	dst, err := slice[byte](unsafe.Pointer(text), size)
	if err != nil || length == nil {
		return failed(capi.BadBuffer(uint64(size)))
	}
	b, err := of()
	if err != nil {
		return failed(err)
	}
	if *length = C.size_t(len(b)); copy(dst, b) < len(b) {
		return failed(capi.BadBuffer(uint64(size)))
	}
	return 0
}

//export go_pull
func go_pull(id C.int64_t, table C.int32_t, rows *C.int64_t, count C.size_t, dst *C.float, n C.size_t, flags, ms C.int32_t, op *C.uint64_t) (code C.int32_t) {
	defer recovered(&code)
	return onRows(id, op, rows, count, dst, n, func(w *capi.Worker, rows []int64, dst []float32) (uint64, error) {
		return w.Pull(int(table), rows, dst, int(flags), wait(ms))
	})
}

//export go_lookup
func go_lookup(id C.int64_t, table C.int32_t, rows *C.int64_t, count C.size_t, unique, inverse *C.int64_t, room C.size_t, distinct *C.int64_t, dst *C.float, n C.size_t, ms C.int32_t, op *C.uint64_t) (code C.int32_t) {
	defer recovered(&code)
	if distinct == nil {
		return failed(capi.BadBuffer(1))
	}
	*distinct = 0
	u, err := longs(unique, room)
	if err != nil {
		return failed(err)
	}
	at, err := longs(inverse, room)
	if err != nil {
		return failed(err)
	}
	return onRows(id, op, rows, count, dst, n, func(w *capi.Worker, rows []int64, dst []float32) (uint64, error) {
		found, o, err := w.Lookup(int(table), rows, u, at, dst, wait(ms))
		*distinct = C.int64_t(found)
		return o, err
	})
}

//export go_add
func go_add(where *C.int64_t, places C.size_t, vals *C.float, n, repeat, stride C.size_t, dim C.int32_t, sums *C.float, room C.size_t) (code C.int32_t) {
	defer recovered(&code)
	at, err := longs(where, places)
	if err != nil {
		return failed(err)
	}
	from, err := floats(vals, n)
	if err != nil {
		return failed(err)
	}
	to, err := floats(sums, room)
	if err != nil {
		return failed(err)
	}
	return failed(capi.Add(at, from, int(repeat), int(stride), int(dim), to))
}

//export go_push
func go_push(id C.int64_t, table C.int32_t, rows *C.int64_t, count C.size_t, vals *C.float, n C.size_t, rate, scale C.float, flags, ms C.int32_t, op *C.uint64_t) (code C.int32_t) {
	defer recovered(&code)
	return onRows(id, op, rows, count, vals, n, func(w *capi.Worker, rows []int64, vals []float32) (uint64, error) {
		return w.Push(int(table), rows, vals, float32(rate), float32(scale), int(flags), wait(ms))
	})
}

//export go_set
func go_set(id C.int64_t, table C.int32_t, rows *C.int64_t, count C.size_t, vals *C.float, n C.size_t, ms C.int32_t, op *C.uint64_t) (code C.int32_t) {
	defer recovered(&code)
	return onRows(id, op, rows, count, vals, n, func(w *capi.Worker, rows []int64, vals []float32) (uint64, error) {
		return w.Set(int(table), rows, vals, wait(ms))
	})
}

//export go_read
func go_read(id C.int64_t, table C.int32_t, rows *C.int64_t, count C.size_t, dst *C.float, n C.size_t, parts, ms C.int32_t, op *C.uint64_t) (code C.int32_t) {
	defer recovered(&code)
	return onRows(id, op, rows, count, dst, n, func(w *capi.Worker, rows []int64, dst []float32) (uint64, error) {
		return w.Read(int(table), rows, dst, int(parts), wait(ms))
	})
}

//export go_write
func go_write(id C.int64_t, table C.int32_t, rows *C.int64_t, count C.size_t, vals *C.float, n C.size_t, parts, ms C.int32_t, op *C.uint64_t) (code C.int32_t) {
	defer recovered(&code)
	return onRows(id, op, rows, count, vals, n, func(w *capi.Worker, rows []int64, vals []float32) (uint64, error) {
		return w.Write(int(table), rows, vals, int(parts), wait(ms))
	})
}

//export go_state
func go_state(id C.int64_t, table C.int32_t) (code C.int32_t) {
	defer recovered(&code)
	w, err := capi.WorkerOf(int64(id))
	if err != nil {
		return failed(err)
	}
	n, err := w.StateLen(int(table))
	if err != nil {
		return failed(err)
	}
	return C.int32_t(n)
}

//export go_localize
func go_localize(id C.int64_t, table C.int32_t, rows *C.int64_t, count C.size_t, ms C.int32_t, op *C.uint64_t) (code C.int32_t) {
	defer recovered(&code)
	return onRows(id, op, rows, count, nil, 0, func(w *capi.Worker, rows []int64, _ []float32) (uint64, error) {
		return w.Localize(int(table), rows, wait(ms))
	})
}

//export go_intent
func go_intent(id C.int64_t, table C.int32_t, rows *C.int64_t, count C.size_t, start, end C.int64_t) (code C.int32_t) {
	defer recovered(&code)
	w, err := capi.WorkerOf(int64(id))
	if err != nil {
		return failed(err)
	}
	keys, err := longs(rows, count)
	if err != nil {
		return failed(err)
	}
	return failed(w.Intent(int(table), keys, int64(start), int64(end)))
}

//export go_advance
func go_advance(id C.int64_t) (code C.int64_t) {
	defer recovered(&code)
	w, err := capi.WorkerOf(int64(id))
	if err != nil {
		return number(0, err)
	}
	return number(w.Advance())
}

//export go_bound_age
func go_bound_age(id, steps C.int64_t) (code C.int32_t) {
	defer recovered(&code)
	w, err := capi.WorkerOf(int64(id))
	if err != nil {
		return failed(err)
	}
	return failed(w.BoundAge(int64(steps)))
}

//export go_clock
func go_clock(id C.int64_t) (code C.int64_t) {
	defer recovered(&code)
	w, err := capi.WorkerOf(int64(id))
	if err != nil {
		return number(0, err)
	}
	return number(w.Clock())
}

//export go_in_order
func go_in_order(id C.int64_t) (code C.int64_t) {
	defer recovered(&code)
	w, err := capi.WorkerOf(int64(id))
	if err != nil {
		return number(0, err)
	}
	in, err := w.InOrder()
	if in {
		return number(1, err)
	}
	return number(0, err)
}

//export go_wait_sync
func go_wait_sync(id C.int64_t, ms C.int32_t, op *C.uint64_t) (code C.int32_t) {
	defer recovered(&code)
	return on(id, op, func(w *capi.Worker) (uint64, error) { return w.WaitSync(wait(ms)) })
}

//export go_sync_all
func go_sync_all(id C.int64_t, ms C.int32_t, op *C.uint64_t) (code C.int32_t) {
	defer recovered(&code)
	return on(id, op, func(w *capi.Worker) (uint64, error) { return w.SyncAll(wait(ms)) })
}

//export go_barrier
func go_barrier(id C.int64_t, ms C.int32_t, op *C.uint64_t) (code C.int32_t) {
	defer recovered(&code)
	return on(id, op, func(w *capi.Worker) (uint64, error) { return w.Barrier(wait(ms)) })
}

//export go_wait
func go_wait(id C.int64_t, op C.uint64_t, ms C.int32_t) (code C.int32_t) {
	defer recovered(&code)
	w, err := capi.WorkerOf(int64(id))
	if err != nil {
		return failed(err)
	}
	return again(w.Wait(uint64(op), wait(ms)))
}

//export go_cancel
func go_cancel(id C.int64_t, op C.uint64_t) (code C.int32_t) {
	defer recovered(&code)
	w, err := capi.WorkerOf(int64(id))
	if err != nil {
		return failed(err)
	}
	return failed(w.Cancel(uint64(op)))
}

//export go_unique
func go_unique(keys *C.int64_t, count C.size_t, unique, inverse *C.int64_t, room C.size_t) (code C.int64_t) {
	defer recovered(&code)
	var list [3][]int64
	for i, at := range []*C.int64_t{keys, unique, inverse} {
		n := room
		if i == 0 {
			n = count
		}
		var err error
		if list[i], err = longs(at, n); err != nil {
			return number(0, err)
		}
	}
	n, err := capi.Unique(list[0], list[1], list[2])
	return number(int64(n), err)
}

//export go_save
func go_save(id C.int64_t, config *C.char, length C.size_t, state *C.char, size C.size_t, ms C.int32_t, op *C.uint64_t) (code C.int32_t) {
	defer recovered(&code)
	text, err := slice[byte](unsafe.Pointer(config), length)
	if err != nil {
		return failed(err)
	}
	kept, err := slice[byte](unsafe.Pointer(state), size)
	if err != nil {
		return failed(err)
	}
	return on(id, op, func(w *capi.Worker) (uint64, error) { return w.Save(text, kept, wait(ms)) })
}

//export go_next
func go_next(place *C.char, length C.size_t) (code C.int64_t) {
	defer recovered(&code)
	text, err := slice[byte](unsafe.Pointer(place), length)
	if err != nil {
		return number(0, err)
	}
	return number(capi.Next(string(text)))
}

//export go_checkpoint
func go_checkpoint(place *C.char, length C.size_t) (code C.int64_t) {
	defer recovered(&code)
	text, err := slice[byte](unsafe.Pointer(place), length)
	if err != nil {
		return number(0, err)
	}
	return number(capi.ReaderNumber(string(text)))
}

//export go_describe
func go_describe(id C.int64_t, text *C.char, size C.size_t, length *C.size_t) (code C.int32_t) {
	defer recovered(&code)
	return bytesTo(text, size, length, func() ([]byte, error) {
		r, err := capi.ReaderOf(int64(id))
		if err != nil {
			return nil, err
		}
		return r.Describe()
	})
}

//export go_kept
func go_kept(id C.int64_t, text *C.char, size C.size_t, length *C.size_t) (code C.int32_t) {
	defer recovered(&code)
	return bytesTo(text, size, length, func() ([]byte, error) {
		r, err := capi.ReaderOf(int64(id))
		if err != nil {
			return nil, err
		}
		return r.State()
	})
}

//export go_rows
func go_rows(id C.int64_t, table C.int32_t, rows *C.int64_t, count C.size_t, dst *C.float, n C.size_t, parts C.int32_t) (code C.int32_t) {
	defer recovered(&code)
	keys, err := longs(rows, count)
	if err != nil {
		return failed(err)
	}
	vals, err := floats(dst, n)
	if err != nil {
		return failed(err)
	}
	r, err := capi.ReaderOf(int64(id))
	if err != nil {
		return failed(err)
	}
	return failed(r.Read(int(table), keys, vals, int(parts)))
}

//export go_forget
func go_forget(id C.int64_t) (code C.int32_t) {
	defer recovered(&code)
	return failed(capi.ForgetReader(int64(id)))
}

//export go_prepare_sample
func go_prepare_sample(id C.int64_t, sampler, n C.int32_t, start, end C.int64_t) (code C.int64_t) {
	defer recovered(&code)
	w, err := capi.WorkerOf(int64(id))
	if err != nil {
		return number(0, err)
	}
	return number(w.PrepareSample(int(sampler), int(n), int64(start), int64(end)))
}

//export go_pull_sample
func go_pull_sample(id C.int64_t, sampler C.int32_t, sample C.int64_t, rows *C.int64_t, count C.size_t, dst *C.float, n C.size_t, ms C.int32_t, op *C.uint64_t) (code C.int32_t) {
	defer recovered(&code)
	return onRows(id, op, rows, count, dst, n, func(w *capi.Worker, rows []int64, dst []float32) (uint64, error) {
		return w.PullSample(int(sampler), int64(sample), rows, dst, wait(ms))
	})
}

//export go_finish_sample
func go_finish_sample(id, sample C.int64_t) (code C.int32_t) {
	defer recovered(&code)
	w, err := capi.WorkerOf(int64(id))
	if err != nil {
		return failed(err)
	}
	return failed(w.FinishSample(int64(sample)))
}
