// Package libsvm holds sparse labelled examples, as linear models and
// factorization machines train on them: a label and a few features with
// values, of very many possible ones.
//
// [Load] reads a file, [Generate] makes examples of a sparse
// model, and [Set.Write] saves them.
//
// # The format
//
// A line is one example: a label, then pairs index:value, separated by spaces
// or tabs. LibSVM numbers features from 1, libFM from 0; an index is taken as
// it stands, so that feature 0 just has no examples in LibSVM's files. The
// pairs of a line may come in any order. A feature that occurs twice in a line
// is an error. Text from a '#' on is a comment.
//
//	+1 3:1 11:0.5 14:-2
//	-1 1:1 3:1
//
// Labels are numbers: of classes, or values ([Target]). Two different ones are two classes, such
// as 1 and -1, 1 and 0, or 2 and 1, of which the smaller one is that of negative examples
// ([Set].Classes). If one is no whole number, they are values. Otherwise Options.Target says
// what they are. The examples to train decide for all splits. Values are finite numbers of float32.
//
// A byte order mark at the start, line ends of the form CR LF and a last line
// without its line end are accepted. A line without anything but spaces and a
// comment is ignored. Everything else that is not an example is an error
// that names file, line and reason; no malformed line is ever skipped. A file
// whose name ends in .gz is decompressed as it is read.
//
// # Hashed features
//
// Where indices are names, or too large to have a weight each, Options.HashBits
// hashes what stands before the colon, as text (U+FFFD in the place of what is not
// UTF-8, which [Splits.Warnings] counts), to one of 2^HashBits features
// (Weinberger et al., ICML 2009, without signs). Features of a line that collide
// are added up.
//
// # Rare features
//
// In large data, most features occur in few examples. [Splits.KeepFrequent] removes those
// that occur in fewer than a least number, without a map of all features.
package libsvm
