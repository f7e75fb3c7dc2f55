package main

import "fmt"

// rows and 16 columns of a product are what the registers hold on all machines.
const rows = 6

const productSig = "func(c *float32, ldc int, a *float32, row, col, panel int, b *float32, k, panels int, add bool)"

func productText(m machine, r int) {
	m.text(fmt.Sprintf("gemm%d", r), productSig,
		fmt.Sprintf(`multiplies panels of %d rows of A with a strip of B[k×16],
k ≥ 1, panels ≥ 1, and stores the result in C, or adds it if add is set.
Elements of A are row floats apart within a column and col floats within a row,
panels are panel floats apart.`, r))
}

func packRowsText(m machine) {
	m.text("packRows", "func(dst, src *float32, ld, k int)", "copies k ≥ 1 runs of 16 floats that lie ld floats apart.")
}

func packColumnsText(m machine) {
	m.text("packColumns", "func(dst, src *float32, ld, blocks int)", `transposes 8 rows that lie ld floats apart,
8 floats of each in each of blocks ≥ 1 blocks: column p of them becomes the 8
floats at dst[16·p].`)
}
