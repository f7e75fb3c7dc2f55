package task

import (
	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/internal/frozen"
)

// Readers returns n workers that read a model of these tables, whose rows come from functions, one for each table. What the functions do not
// have, the tables' initializers make, by the seed of the run. They cannot write.
func Readers(n int, tables []godwit.Table, rows []train.Rows, seed uint64) ([]godwit.Worker, error) {
	return frozen.Workers(n, tables, rows, seed)
}
