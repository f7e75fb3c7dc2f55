//go:build !amd64

package bench

import "github.com/godwit-ps/godwit"

func collect(dst, slab []float32, keys []godwit.Key, dim int) { copyRows(dst, slab, keys, dim) }
