// Package w2v trains word vectors: a vector for each word of a text, such that
// words that occur in similar contexts have similar vectors.
//
// A [Task] is trained by [train.Run] through any [godwit.Worker]:
//
//	text, err := corpus.Open("novels", corpus.Options{MinCount: 5, Block: 250})
//	task, err := w2v.New(w2v.DefaultConfig(), text, questions)
//	model, err := godwit.NewModel(task.Tables()...)
//	// … a node that serves the model, with a sampler that draws by
//	// task.Distribution from the table "output" …
//	report, err := train.Run(ctx, env, task, train.Options{Epochs: 5})
//	quality, err := task.EvaluateOn(ctx, &env, "test", 0)
//	err = export.Write("vectors", "w2v", func(s *export.Set) error { return task.Export(ctx, env.Workers[0], s) })
//
// The text is opened at each node, which counts all of its words and afterwards
// reads only what its workers train.
//
// # What is trained
//
// Each word has an input vector v, which is the result, and an output vector v′.
// The models and their training by negative samples are those of word2vec
// (Mikolov, Chen, Corrado, Dean, ICLR workshop 2013; Mikolov, Sutskever, Chen,
// Corrado, Dean, NIPS 2013, equation 4). A query q has to predict a word w among
// k words drawn by P(w) ~ count(w)^0.75:
//
//	loss = −log σ(v′(w)·q) − Σ log σ(−v′(negative)·q)
//
// In skip-gram, q is the input vector of one word of w's context; in CBOW, it is
// the mean of all of them. The context of a word is its sentence up to a distance
// that the word draws from 1 … Window, after frequent words were left out at
// random: a word of frequency f is kept with probability √(t/f) + t/f. A negative
// that is w itself does not count. The rate falls evenly with the words read.
// It multiplies the gradients. So sgd steps by it, and the AdaGrad rules, which also divide by
// the gradients of before, by more: after 0.50, 0.75 and 0.90 of a run, the steps of
// gradients that are alike are 0.50, 0.25 and 0.10 of those at a constant rate with sgd, and
// 0.66, 0.38 and 0.16 with adagrad and rowadagrad. The steps of adam would not fall at all, which
// is refused.
//
// # Differences from word2vec.c
//
// word2vec.c makes a step for each pair, one after the other. Here a step is a
// block of sentences, whose gradients are summed: one pull of its distinct rows,
// one of its negatives, one push. All pairs of a step share its negatives, which
// makes them a matrix product, and each counts Negatives/Pool times, which
// leaves the expected gradient as it was. That takes less than half the time. The
// default rule is row-wise AdaGrad: it is stable for sums of many gradients, unlike SGD
// with large steps, and its state takes little to send.
// CBOW follows the gradient of its loss; word2vec.c leaves out the division by
// the number of words in the context.
//
// # Measured
//
// A hundred English novels, 14.2 million words, three epochs of the defaults: of
// 7,773 questions of questions-words.txt whose words are among the 30,000 most
// frequent ones, 34.1 to 34.6 % are answered right, by four workers of one node
// as by one worker of each of four nodes, which find 99.95 % of their parameters
// without a message; the loss of text held out is 2.441.
//
// The first 4.0 million words, two epochs, one node: the defaults answer 13.5 %,
// AdaGrad at 0.15 12.7 %, plain SGD in the same steps at a rate of 0.025 about
// 11 %, and word2vec's own order of steps, one pair at a time, at its own rate of
// 0.025, 8.2 %. The latter took more than twice the processor's time.
package w2v
