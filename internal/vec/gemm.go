//go:build (amd64 || arm64) && !purego

package vec

import "sync"

//go:generate go run -C internal/gen . -neon ../../kernels_arm64.s -out ../../kernels_amd64.s -stubs ../../kernels.go -pkg vec

// The product of two matrices is cut so that each part stays where it is reused
// (Goto, van de Geijn 2008): strips of B, 16 columns wide and blockK deep, in
// the first cache while all panels of A, 6 rows high, go past them; a block of
// A in the second cache while all strips of a block of B go past it. With AVX-512
// panels are 12 rows high, and go past two strips at a time.
const (
	stripCols = 16
	panelRows = 6
	wideRows  = 2 * panelRows
	blockM    = 16 * wideRows
	blockN    = 512
	blockK    = 256
)

// work is what one product needs besides its matrices.
type work struct {
	a [blockM * blockK]float32    // panels of A, where they are copied
	b [blockN * blockK]float32    // strips of B; what lies right of the last one counts for nothing
	c [blockM * stripCols]float32 // the product with the last strip, if it is wider than C

	wide bool // whether C is wide enough for the kernels with AVX-512
}

func (w *work) isWide() bool { return wide && w.wide }

var works = sync.Pool{New: func() any { return new(work) }}

// gemm computes C = A·B, or C += A·B if add is set, for C[m×n] contiguous,
// A[m×k] and B[k×n].
func gemm(c []float32, a, b operand, m, n, k int, add bool) {
	if m == 0 || n == 0 {
		return
	}
	if k == 0 {
		if !add {
			clear(c)
		}
		return
	}
	w := works.Get().(*work)
	w.wide = n > stripCols
	depth := even(k, blockK)
	for j := 0; j < n; j += blockN {
		for p := 0; p < k; p += depth {
			kb := min(depth, k-p)
			nb := min(blockN, n-j)
			w.packB(b, p, j, kb, nb)
			for i := 0; i < m; i += blockM {
				mb := min(blockM, m-i)
				rows := w.packA(a, i, p, mb, kb, (nb+stripCols-1)/stripCols)
				w.block(c[i*n+j:], n, rows, mb, nb, kb, add || p > 0)
			}
		}
	}
	works.Put(w)
}

// even is the size of the parts when n is cut into the least number of equal
// parts that are at most limit.
func even(n, limit int) int {
	parts := (n + limit - 1) / limit
	return (n + parts - 1) / parts
}

// packB fills w.b with strips of kb rows of 16 from B, from row p and column j
// on.
func (w *work) packB(b operand, p, j, kb, nb int) {
	for s := 0; s < nb; s += stripCols {
		dst, src := w.b[s*kb:(s+stripCols)*kb], b.x[p*b.row+(j+s)*b.col:]
		cols := min(stripCols, nb-s)
		switch {
		case cols < stripCols:
			packAny(dst, src, b, kb, cols)
		case b.col == 1:
			packRows(&dst[0], &src[0], b.row, kb)
		default:
			if kb >= 8 {
				packColumns(&dst[0], &src[0], b.col, kb/8)
				packColumns(&dst[8], &src[8*b.col], b.col, kb/8)
			}
			if rest := kb &^ 7; rest < kb {
				packAny(dst[rest*stripCols:], src[rest*b.row:], b, kb-rest, stripCols)
			}
		}
	}
}

// packAny is the general case, for what the kernels leave over.
func packAny(dst, src []float32, b operand, kb, cols int) {
	for c := range cols {
		for p := range kb {
			dst[p*stripCols+c] = src[p*b.row+c*b.col]
		}
	}
}

// panels are rows of A as the kernels take them: elements of a panel's column
// are row floats apart, those of its row col floats, panels step floats.
type panels struct {
	x              []float32
	row, col, step int
}

// packA gives the rows of A from row i and column p on, to go past strips
// strips. They are used as they lie, but for one case: where A lies by columns,
// the few floats that a panel needs of each column are far apart, in lines that
// crowd each other out of the first cache. Then they are copied together if
// they are read often enough for that to pay.
func (w *work) packA(a operand, i, p, mb, kb, strips int) panels {
	src, rows := a.x[i*a.row+p*a.col:], panelRows
	if w.isWide() {
		rows = wideRows
	}
	if a.row != 1 || strips <= 8 {
		return panels{src, a.row, a.col, rows * a.row}
	}
	for r := 0; r < mb; r += rows {
		if w.isWide() {
			widePack(&w.a[r*kb], &src[r], a.col, kb, min(wideRows, mb-r))
		} else {
			packPanel(w.a[r*kb:], src[r:], a.col, kb, min(panelRows, mb-r))
		}
	}
	return panels{w.a[:], 1, rows, rows * kb}
}

// packPanel copies kb runs of floats that lie ld floats apart, as many as a panel has rows.
func packPanel(dst, src []float32, ld, kb, rows int) {
	for q := range kb {
		x, y := src[q*ld:][:rows], dst[q*panelRows:][:panelRows]
		if rows < panelRows {
			copy(y, x)
			continue
		}
		// One by one: a copy of so few would be a call.
		y[0], y[1], y[2], y[3], y[4], y[5] = x[0], x[1], x[2], x[3], x[4], x[5]
	}
}

// block multiplies mb rows of A with the strips in w.b into C, whose rows are
// ldc floats apart.
func (w *work) block(c []float32, ldc int, a panels, mb, nb, kb int, add bool) {
	if w.isWide() {
		for s := 0; s < nb; s += 2 * stripCols {
			wideStrips(c[s:], ldc, a, w.b[s*kb:], mb, nb-s, kb, add)
		}
		return
	}
	for s := 0; s < nb; s += stripCols {
		b := w.b[s*kb:]
		cols := nb - s
		if cols >= stripCols {
			strip(c[s:], ldc, a, b, mb, kb, add)
			continue
		}
		strip(w.c[:], stripCols, a, b, mb, kb, false)
		for i := range mb {
			dst, src := c[i*ldc+s:][:cols], w.c[i*stripCols:][:cols]
			if add {
				plainAdd(dst, src)
			} else {
				copy(dst, src)
			}
		}
	}
}

// wideProducts are the kernels with AVX-512, of one and of two strips, for panels of 12 rows and, for
// what is left below them, of 8, 4, 2 and 1.
var wideProducts = [2][5]func(c *float32, ldc int, a *float32, row, col, panel int, b *float32, k, panels int, add bool, mask uint16){
	{wide12x16, wide8x16, wide4x16, wide2x16, wide1x16},
	{wide12x32, wide8x32, wide4x32, wide2x32, wide1x32},
}

// wideStrips multiplies all panels with a strip or two, for so many columns of C.
func wideStrips(c []float32, ldc int, a panels, b []float32, mb, cols, kb int, add bool) {
	kernels, last := &wideProducts[0], cols
	if cols > stripCols {
		kernels, last = &wideProducts[1], cols-stripCols
	}
	mask := uint16(1<<min(last, stripCols) - 1)
	full := mb / wideRows
	if full > 0 {
		kernels[0](&c[0], ldc, &a.x[0], a.row, a.col, a.step, &b[0], kb, full, add, mask)
	}
	row, at := full*wideRows, full*a.step
	for i, n := 1, 8; n > 0; i, n = i+1, n/2 {
		if mb-row >= n {
			kernels[i](&c[row*ldc], ldc, &a.x[at], a.row, a.col, 0, &b[0], kb, 1, add, mask)
			row, at = row+n, at+n*a.row
		}
	}
}

// strip multiplies all panels with one strip; the last panel may be lower.
func strip(c []float32, ldc int, a panels, b []float32, mb, kb int, add bool) {
	full, rest := mb/panelRows, mb%panelRows
	if full > 0 {
		gemm6(&c[0], ldc, &a.x[0], a.row, a.col, a.step, &b[0], kb, full, add)
	}
	if rest == 0 {
		return
	}
	kernel := gemm1
	switch rest {
	case 2:
		kernel = gemm2
	case 3:
		kernel = gemm3
	case 4:
		kernel = gemm4
	case 5:
		kernel = gemm5
	}
	kernel(&c[full*panelRows*ldc], ldc, &a.x[full*a.step], a.row, a.col, a.step, &b[0], kb, 1, add)
}
