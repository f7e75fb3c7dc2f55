// Package lda trains topic models (latent Dirichlet allocation: Blei, Ng,
// Jordan, JMLR 2003) by collapsed Gibbs sampling: each word of each document
// belongs to a topic, documents are about few topics, and topics use few words.
//
// A [Task] is trained by [train.Run] through any [godwit.Worker]:
//
//	task, err := lda.New(lda.DefaultConfig(), documents, held)
//	model, err := godwit.NewModel(task.Tables()...)
//	// … a node that serves the model …
//	report, err := train.Run(ctx, env, task, train.Options{Epochs: 50, EvalEvery: 10})
//	quality, err := task.EvaluateOn(ctx, &env, "test", documents)
//	err = export.Write("topics", "lda", func(s *export.Set) error { return task.Export(ctx, env.Workers[0], s) })
//
// # Counts
//
// Workers share counts: in the table "word", how often each word belongs
// to each topic, and in the table "topic", how many words each topic has. The
// topics of the documents' words are rows of a third table, "assigned". A worker pulls the rows of a
// batch of documents, draws a new topic for each of their words, with
//
//	p(k) ∝ (n_dk + Alpha) · (n_wk + Beta) / (n_k + V·Beta)
//
// (Griffiths, Steyvers, PNAS 2004, equation 5, where the n do not count the word
// itself), and pushes the changes of the counts. Within a
// batch, counts are those of a serial sampler, but for what other workers did
// since the pull.
//
// # Exactness
//
// Each change of a topic subtracts as much as it adds, and the server loses no push and
// applies none twice. So once all pushes have arrived, the counts of a topic's words add
// up to the topic's count, all topics' counts to the number of words, and
// no count is negative: exactly, whatever keys were moved or replicated meanwhile. [Task.Check] checks that; evaluations warn if it does not hold.
//
// For that, sums have to be exact. A float32 holds every integer up to 2²⁴ =
// 16,777,216. A count of a word is at most its number of occurrences, and [New]
// refuses documents with more of one word than that. Topics' counts may be
// larger, so the table "topic" has a row for each 2²³ words of all documents: a
// document's words are counted in the row of its first word, at most 2²⁴ in each.
//
// # Measured
//
// 100 novels (14 million words; the 20,000 most frequent ones but for the first
// 200, in documents of 500 words), 50 topics, one worker: held-out perplexity 5153, 4595,
// 4408 after 10, 20, 30 epochs (20,000 before training). With a Beta of 0.01 it is 6685 after 12.
//
// The perplexity depends on the order of a document's words, as every second one is predicted from the others. After 10 epochs on
// the novels without their 500 most frequent words, or on generated documents, it is 6812 (157.7) in the order of the text, 6828 (156.8) in a random order,
// 6723 (155.7) in that of a file of counts, where equal words follow each other, and 7166 (169.1) where no word is in both
// halves. So figures of files of counts are to be compared with each other.
//
// A word takes 95 ns of processor time on one node (6,000 generated documents of 200 words, of
// 10,000 different ones).
//
// # Reproducibility
//
// Draws follow the seed, the epoch, the chunk and the step alone, so a run of one worker
// is reproducible bit by bit. Training begins with tables of zeros, with the counts of an
// earlier model ([Task.Continue]), or with those of a checkpoint, which also has the topics of the words.
package lda
