// Package wordvec holds named vectors, such as word vectors, reads and writes the usual
// file formats of them, and finds nearest neighbours.
//
// # Files
//
// The ending of a file's name says what it is, for [Create] and [Read]:
//
//	.txt  word2vec's text format: a line "rows dim", then a line for each
//	      vector: its name and its numbers, separated by spaces
//	.bin  word2vec's binary format: the same first line, then for each vector
//	      its name, a space, its numbers as little-endian float32, a line feed
//	.npy  a NumPy array of float32 (see package npy), with the names in a text
//	      file of the same name that ends in .txt instead, a line each
//
// Names in .txt and .bin have no spaces. Text without the first line, as GloVe
// writes it, is read as well, and so is .vec for .txt.
//
// # Similarity
//
// Vectors are near if their cosine is large. An analogy "a is to b as c is to ?" is
// answered by the vector nearest to b − a + c of unit vectors, other than a, b
// and c (Mikolov, Yih, Zweig, NAACL 2013, section 4), and [Questions] in the
// format of word2vec's questions-words.txt are evaluated so.
package wordvec
