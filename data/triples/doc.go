// Package triples holds knowledge graphs: lists of facts "head, relation, tail"
// in three splits, as link prediction trains and ranks on them.
//
// [Load] reads a graph in the customary layout (a folder with train, valid and
// test files), [Generate] makes one with planted structure, [Graph.Write] saves
// one, and [NewFilter] indexes the known facts for filtered ranking.
//
// # The layout of a graph's folder
//
// A folder holds the files train, valid and test, each as .txt or as .txt.gz.
// A line is one fact: head, relation and tail, separated by single tabs. A name
// is any non-empty UTF-8 text without tab, line break or NUL; it is taken as it
// stands, spaces included. A file whose first fact has no tab is read as
// separated by runs of spaces and tabs instead, and then names have no spaces.
//
// A byte order mark at the start of a file, line ends of the form CR LF and a
// last line without its line end are accepted. A line of no characters at all
// is not a fact and is passed over. Everything else that is not a fact is an
// error that names file, line and reason; no malformed line is ever skipped.
//
// # Numbers
//
// Entities and relations are numbered from 0 in the order of their first
// appearance: in train, then valid, then test; in a line the head before the
// tail. Frequent entities tend to appear early and so have low numbers; who
// spreads keys over nodes should not do it by ranges of them.
package triples
