// Package export writes trained models to folders, and reads what it wrote.
//
// An export is a folder of files, one of which, model.json, is a [Model]: it names
// the others, with their layouts and checksums, and says what was trained, how, on
// what, and how good it is. All files appear at once ([github.com/godwit-ps/godwit/data/atomicfile.Folder]): a process that is
// killed leaves the earlier export or the new one. A folder with anything else in it
// than an earlier export of the same task is not touched.
//
//	err := export.Write("embeddings", "kge", func(s *export.Set) error {
//		return task.Export(ctx, worker, s)
//	})
//
// docs/file-formats.md lists the files of each task.
package export
