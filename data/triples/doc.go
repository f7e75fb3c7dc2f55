// Package triples holds knowledge graphs: lists of facts "head, relation, tail"
// in three splits, as link prediction trains and ranks on them.
//
// [Load] reads a graph from one file or the customary folder, [Generate] makes one with
// planted structure, [Graph.Write] saves one, and [NewFilter] indexes the known facts for
// filtered ranking.
//
// # Files
//
// A graph is one file with all facts, of which [Options].Split holds some out, or a folder with
// the files train, valid (or dev) and test, each as .txt, .tsv or .csv, with .gz or without; only
// train must be there. A line is one fact. Its fields are separated by commas (.csv, with
// double quotes), by single tabs, or, where the first line of a file has no tab and its
// name does not end in .tsv, by runs of spaces and tabs. They are head, relation and
// tail, or what [Options].Columns says. A name is any text that is not empty, without line
// break or NUL; it is taken as it stands, spaces included.
//
// A byte order mark at the start of a file, line ends of the form CR LF and a
// last line without its line end are accepted. A line of no characters at all
// is not a fact and is passed over, as may be a header ([Options].Header). What is not UTF-8 is
// replaced, and counted by [Graph.Warnings]. Everything else that is not a fact is an
// error that names file, line and reason; no malformed line is ever skipped.
//
// # Numbers
//
// Entities and relations are numbered from 0 in the order of their first
// appearance: in train, then valid, then test; in a line the head before the
// tail. Frequent entities tend to appear early and so have low numbers; who
// spreads keys over nodes should not do it by ranges of them.
package triples
