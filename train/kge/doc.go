// Package kge trains knowledge-graph embeddings: a vector for each entity and
// relation of a graph of triples (s, r, o), such that facts score higher than other
// triples.
//
// A [Task] is trained by [train.Run] through any [godwit.Worker]:
//
//	task, err := kge.New(kge.DefaultConfig(), graph)
//	model, err := godwit.NewModel(task.Tables()...)
//	// … a node that serves the model, with a sampler that draws uniformly
//	// from the table "entity" …
//	report, err := train.Run(ctx, env, task, train.Options{Epochs: 20, EvalEvery: 5})
//	quality, err := task.Rank(ctx, &env, "test", graph.Test)
//	err = export.Write("embeddings", "kge", func(s *export.Set) error { return task.Export(ctx, env.Workers[0], s) })
//
// # Models
//
//	name      score of (s, r, o)     floats of a relation, for entities of d
//	complex   Re Σ s·r·ō             d        Trouillon et al., ICML 2016
//	distmult  Σ s·r·o                d        Yang et al., ICLR 2015
//	rescal    sᵀ·R·o                 d²       Nickel et al., ICML 2011
//	transe    −‖s + r − o‖₂          d        Bordes et al., NIPS 2013
//	rotate    −‖s∘e^{ir} − o‖₂       d/2      Sun et al., ICLR 2019
//
// # Training
//
// A triple is two queries, (s, r, ?) and (?, r, o). All queries of a batch are
// compared with the same sampled entities, the shared negatives, so that
// scoring them is one matrix product, and a step moves each row of the batch
// once however many triples it is in: one pull of the distinct rows, one of the
// negatives, one push of the gradients, which are summed over the batch. Triples
// that ask the same are one query with several answers, unless there is dropout, and
// an entity that is drawn again is scored once, and pushed as often as drawn. The
// loss is the softmax of the answer among the negatives, or logistic, which may weigh the
// negatives by how well they score (self-adversarial sampling, Sun et al., ICLR 2019, equation 5). A
// negative that happens to be the query's answer is left out; other facts among
// the negatives are not, being few.
//
// The update rule is AdaGrad, whose steps do not depend on the scale of
// gradients, so that the learning rate need not follow the batch. The N3
// regularizer (Lacroix, Usunier, Obozinski, ICML 2018) is what decides the
// quality on sparse graphs, then the dimension. The distance models, TransE and RotatE, take none, and
// learn faster by longer steps: unless one is given, their learning rates are 0.2 and 0.6, those of the others 0.1.
// LRSchedule lets the rate fall from epoch to epoch, which helps Adam at a high rate and not AdaGrad.
//
// # Measured
//
// FB15k-237, default settings, two workers of one process, 20 epochs: test MRR
// 0.336, Hits@1 0.245, Hits@3 0.369, Hits@10 0.520. Of 5, 10, 15 epochs the
// validation MRR is 0.320, 0.335, 0.340. Twice the batch and twice the
// negatives, for 30 epochs, reach a test MRR of 0.338. These change little
// there: the learning rate (0.05 … 0.3), its decay, InitStd, reciprocal
// relations, and dropout once N3 is near its best (0.04 … 0.06); half the
// dimension costs about 0.01.
//
// By other rules, at what suits them (Config.Settle) and Dim 64: after 2 epochs of FB15k-237 ComplEx has a test MRR of
// 0.256 by AdaGrad, 0.208 by FTRL, 0.019 by SGD and 0.008 by momentum (both without N3); after 10 epochs of a generated graph
// of 3,000 entities 0.75 by SGD, 0.76 by momentum, and 0.01 by SGD with the default N3. Of such rules [Task.Warnings] warns.
//
// # Reproducibility
//
// Order and dropout follow the seed, the epoch, the chunk and the step alone, so
// a run of one worker is reproducible bit by bit if the server's samples are.
package kge
