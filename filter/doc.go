// Package filter has the usual filters of pushes ([godwit.Filter]): they change what is
// sent to other nodes, so that it takes fewer bytes. A table lists its
// filters ([godwit.Table].Filters); [Parse] reads them from a text, and [On] gives
// them to all tables of a model.
//
//	Fixed        fixed-point numbers of 1 or 2 bytes, rounded at random  Li et al., OSDI 2014, with three repairs, see there
//	BF16         floats of 2 bytes, rounded at random
//	Significant  defers vectors until they are large                     Li et al., NIPS 2014, section 3.2
//	Skip         defers vectors at random                                likewise
//	Noise        adds Gaussian noise
//	Active       drops what a solver knows to be irrelevant (KKT)        likewise, section 3.3
//	Sparse       writes zeros as one bit; loses nothing
//	Compress     whole frames, by s2 or zstd; loses nothing
//
// Several filters work one after the other: first those that drop or defer, then those
// that round, then Sparse. Random numbers come from the batch.
//
// What Fixed, BF16, Significant and Skip leave out is pushed later (see
// [godwit.Filter]): the residual of a key is kept by the worker that pushed,
// as error feedback (Seide et al., "1-bit SGD", 2014). With Forget, what Fixed
// and BF16 round away is discarded instead. As rounding has no bias, sums of many pushes
// are still about right. That suits tables whose rows are overwritten often, where
// WaitSync after every few pushes would push every residual at its full length.
package filter

import "github.com/godwit-ps/godwit"

// These interfaces tell the server what a filter does.
var (
	_ godwit.Quantizer    = Fixed{}
	_ godwit.Quantizer    = BF16{}
	_ godwit.LossReporter = BF16{}
	_ godwit.LossReporter = Sparse{}
	_ godwit.LossReporter = Compress{}
)
