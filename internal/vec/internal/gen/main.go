// Command gen writes the assembly of package vec, for amd64 with AVX2 and AVX-512
// and for arm64 with NEON, and its Go declarations. It is a module of its own so that
// the main module does not depend on avo. Run it by "go generate" in package vec.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/mmcloughlin/avo/build"
)

// The other flags are avo's: -out and -stubs for the amd64 assembly and the
// declarations, -pkg for their package.
var neonFile = flag.String("neon", "", "write the arm64 assembly to this file")

func main() {
	flag.Parse()
	n := &neon{}
	kernels(n)
	if err := os.WriteFile(*neonFile, n.file(), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
	build.ConstraintExpr("amd64 arm64")
	build.ConstraintExpr("!purego")
	kernels(avx2())
	wideMatrices()
	exponentials(avx512())
	build.Generate()
}

// kernels is all that package vec needs of a machine.
func kernels(m machine) {
	elementwise(m)
	complexProducts(m)
	m.reductions()
	exponentials(m)
	m.matrices()
}
