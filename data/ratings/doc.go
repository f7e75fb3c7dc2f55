// Package ratings holds sparse matrices: cells of rows and columns with known
// values, such as the ratings that users gave to films, in parts to train and
// to evaluate matrix factorization by.
//
// [Load] reads a matrix from a file or folder, [Generate] makes one of low rank
// with noise.
//
// # Files
//
// The ending of a file's name, but for a last .gz, says what it is:
//
//	.data .base .test .tsv  row, column, value, separated by single tabs, below a line of headings or not, as in MovieLens 100k
//	.csv                    the same by commas, as in MovieLens 20M
//	.dat                    the same by "::", as in MovieLens 1M
//	.mtx .mmc               a matrix in the coordinate format of Matrix Market, real or integer, general
//
// All but the last have a cell a line and may have a fourth field, the time in
// seconds, which is not used. What rows and columns are called is any text
// without the separator; numbers are taken as text too. A matrix in coordinate
// format has the line "%%MatrixMarket matrix coordinate real general", comments
// that begin with %, a line with the numbers of rows, columns and cells, and
// then a cell a line: row and column, counted from 1, and value, separated by
// spaces.
//
// A byte order mark at the start of a file and line ends of the form CR LF are
// accepted, and empty lines are ignored. What is not UTF-8 is replaced by U+FFFD, and
// [Set.Warnings] counts such lines. Everything else that is not a cell is an error that
// names file, line and reason; no malformed line is ever skipped. A cell may occur more than once, as a user may rate twice.
//
// # Folders and splits
//
// A split S of a folder is the files S.base and S.test, as MovieLens 100k has
// u1 … u5, ua and ub. Without a split, the folder is to hold either the files
// train and test, with one of the endings above, or a single ratings file:
// u.data, ratings.csv, ratings.dat, ratings.tsv, ratings.mtx or ratings.mmc. Of a single
// file a random share of the cells is held out for the test.
//
// # Numbers
//
// Rows and columns are numbered from 0 in the order of their first appearance,
// those of a matrix in coordinate format as they are.
package ratings
