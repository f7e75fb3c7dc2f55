// Package corpus reads text as sentences of numbered words, for tasks that
// learn from the neighbourhood of words.
//
// [Open] reads the files once, counts the words and records where blocks of a given
// number of words begin; it keeps nothing else. Afterwards any number of readers read
// blocks from the files, which may be much larger than memory:
//
//	c, err := corpus.Open("novels", corpus.Options{MinCount: 5, Block: 500})
//	r := c.Reader()
//	defer r.Close()
//	var t corpus.Text
//	for b := range c.Blocks() {
//		err := r.Read(b, &t)
//		// t.Words are word numbers, t.Ends where sentences end
//	}
//
// Workers that share a corpus take consecutive blocks each, and read only these.
// [Generate] makes a small corpus whose structure is known.
//
// # Files
//
// A corpus is one file, or all files *.txt and *.gz of a folder, in the order of their
// names. A file may be compressed by gzip, which its first bytes tell, not its name. Text
// is UTF-8. A byte that is not becomes U+FFFD, a part of its word, and is counted; a NUL byte is an error that names file and line.
//
// # Sentences
//
// The format [Prose] is for text as people write it. A word is a run of
// letters, marks and digits of any script, in lower case, with apostrophes
// within; everything else separates words. A sentence is a paragraph: an empty
// line ends it. Full stops do not: they also occur in "Mr. Pickwick", and the words after
// one are still related.
//
// The format [Lines] is for preprocessed text: words are separated by blanks and taken
// unchanged, and each line is a sentence.
//
// Lines may have any length. A sentence longer than a block is split. A word longer than
// [MaxWord] bytes is left out, and counted in [Stats].
//
// # Blocks
//
// A block ends with the first sentence that makes it as long as Options.Block,
// or with its file. It has fewer than twice that many words. A block of a
// compressed file is found by reading the file up to there, so a compressed
// file that many workers share is decompressed by each of them up to its part;
// text that is not compressed, and many small files, are read at once.
package corpus
