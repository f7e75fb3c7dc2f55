// Package filter has the usual filters of pushes ([godwit.Filter]): what a
// message to another node may lose on its way, for fewer bytes. A table lists its
// filters ([godwit.Table].Filters); [Parse] reads them from a text, and [On] gives
// them to all tables of a model.
//
//	Fixed        fixed-point numbers of 1 or 2 bytes, rounded at random   Li et al., OSDI 2014, with three repairs, see there
//	BF16         floats of 2 bytes, rounded at random
//	Significant  holds back vectors until they matter                    Li et al., NIPS 2014, section 3.2
//	Skip         holds back vectors at random                            likewise
//	Noise        adds Gaussian noise
//	Active       drops what a solver knows not to matter (KKT)           likewise, section 3.3
//	Sparse       leaves out zeros; loses nothing
//	Compress     whole frames, by s2 or zstd; loses nothing
//
// Several work one after the other, in any order that makes sense: first what drops or
// holds back, then what rounds, then Sparse. Random numbers come from the batch.
//
// What Fixed, BF16, Significant and Skip leave out is pushed later (see
// [godwit.Filter]): the residual of a key is kept by the worker that pushed,
// as error feedback (Seide et al., "1-bit SGD", 2014). With Forget, what Fixed
// and BF16 round away is forgotten instead. Without a bias in the rounding, sums
// of many pushes end about right then, too; that suits tables whose rows are
// used up and set anew all the time, where WaitSync after every few pushes would
// push every remainder at its full length.
package filter

import "github.com/godwit-ps/godwit"

// Filters say by these interfaces what the server may do with them.
var (
	_ godwit.Quantizer    = Fixed{}
	_ godwit.Quantizer    = BF16{}
	_ godwit.LossReporter = BF16{}
	_ godwit.LossReporter = Sparse{}
	_ godwit.LossReporter = Compress{}
)
