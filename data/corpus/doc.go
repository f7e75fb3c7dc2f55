// Package corpus reads text as sentences of numbered words, for tasks that
// learn from which words stand near each other.
//
// [Open] passes over the files once, counts the words and notes where blocks of
// a given number of words begin; that is all it keeps. Afterwards any number of
// readers read blocks from the files, which may be much larger than memory:
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
// Who shares a corpus takes a run of blocks: it reads only these. [Generate]
// makes a small corpus of which it is known what there is to learn.
//
// # Files
//
// A corpus is one file, or a folder, of which it is all files called *.txt or
// *.gz, in the order of their names. A file may be compressed by gzip; its first
// bytes tell, not its name. Text is UTF-8; anything else is an error that names
// file and line, since what is left out silently is missed much later.
//
// # Sentences
//
// The format [Prose] is for text as people write it. A word is a run of
// letters, marks and digits of any script, in lower case, with apostrophes
// within; everything else separates words. A sentence is a paragraph: an empty
// line ends it. Full stops do not, as they also stand in "Mr. Pickwick", and
// what follows one is still near.
//
// The format [Lines] is for text that was prepared: words stand between blanks,
// are taken as they are, and each line is a sentence.
//
// Lines may have any length. A sentence longer than a block is cut. A word
// longer than [MaxWord] bytes is no word: it is left out, and counted in
// [Stats].
//
// # Blocks
//
// A block ends with the first sentence that makes it as long as Options.Block,
// or with its file. It has fewer than twice that many words. A block of a
// compressed file is found by reading the file up to there, so a compressed
// file that many workers share is decompressed by each of them up to its part;
// text that is not compressed, and many small files, are read at once.
package corpus
