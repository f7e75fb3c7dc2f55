package protocol

import (
	"unsafe"

	"github.com/godwit-ps/godwit/internal/hint"
)

// A pool hands out numbered things, from 1. They are kept in chunks, so that they
// do not move and growing wastes little.
type pool[T any] struct {
	chunks []*[poolChunk]T
	made   uint32
	free   []uint32
}

const poolChunk = 16

func (p *pool[T]) at(n uint32) *T { return &p.chunks[(n-1)/poolChunk][(n-1)%poolChunk] }

// take returns the number of a zero thing. It prefetches the thing that the next call
// will return: keys of one shard are handled one after the other.
func (p *pool[T]) take() uint32 {
	if l := len(p.free); l > 0 {
		n := p.free[l-1]
		p.free = p.free[:l-1]
		if l > 1 {
			hint.Write(unsafe.Pointer(p.at(p.free[l-2])), 1)
		}
		return n
	}
	if p.made%poolChunk == 0 {
		p.chunks = append(p.chunks, new([poolChunk]T))
	}
	p.made++
	return p.made
}

// give takes back what take returned.
func (p *pool[T]) give(n uint32) {
	var zero T
	*p.at(n) = zero
	p.free = append(p.free, n)
}

func (p *pool[T]) used() int { return int(p.made) - len(p.free) }

// bytes returns the memory that the pool takes.
func (p *pool[T]) bytes() int {
	return len(p.chunks)*int(unsafe.Sizeof([poolChunk]T{})) + 8*cap(p.chunks) + 4*cap(p.free)
}
