// Package optim holds the update rules that turn a pushed gradient into a
// change of a row.
//
// A table has a rule ([godwit.Table].Rule), which is a struct of this package or
// what [Parse] makes of a text such as "adagrad(lr=0.1)". The pushed vector is the
// gradient of the loss, and the rule steps against it. (The first five rules below take
// other things than gradients.) Each rule has a name that holds all
// its parameters; nodes compare names before they train together, and Parse reads
// names back. Rules are immutable: any number of goroutines may use one.
//
//	rule         state          step for gradient g
//	add          none           x += g
//	counter      none           as add, but exact: see [Counter]
//	max, min     none           x = the larger, the smaller of x and g
//	set          none           x = g
//	sgd          none           x -= lr·g
//	momentum     dim floats     v = decay·v + g;    x -= lr·v
//	adagrad      dim floats     s += g²;            x -= lr·g/(√s + eps)
//	rowadagrad   1 float        s += mean of g²;    x -= lr·g/(√s + eps)
//	adam         2·dim+1 floats see [Adam]
//	proxsgd      none           as sgd, then the minimum of an elastic net nearby
//	proxadagrad  dim floats     as adagrad, then the same
//	ftrl         dim floats     see [FTRL], which keeps a sum in the place of x
//
// Of these rules, some have a form that takes its learning rate from each push: see [Rated].
//
// Nodes of different kinds give the same bits for the same pushes, but for
// rowadagrad, where the order of a sum depends on the processor. Every product is
// converted to float32 before it is added to something: otherwise compilers for some
// processors fuse the two operations and round once.
//
// # Merging of copies
//
// A row may have several copies, and each push is applied to one of them. When
// copies are merged, the changes of each are applied to the other. For most rules the
// result is a sum: from a common row x0, copies that changed to x1 and x2 merge to
// x1 + x2 - x0. A [godwit.Merger] merges otherwise, for example keeps the larger. The
// rules differ in how close they come to applying all pushes to one row, one after the
// other:
//
//   - add and sgd: the same, but for the rounding of float32 sums.
//   - adagrad and rowadagrad, which are Mergers: the accumulators are the same,
//     but for rounding. The steps of a copy travel as a sum of its gradients and
//     are divided by the root of what the row that takes them has accumulated:
//     one push at each copy merges to what one row would have made of them. Of
//     several pushes at a copy between two rounds, an early one weighs more than
//     a late one, by at most √(1 + q/s0) for a row with history s0 and a round
//     that adds q in total: that fades as the history grows.
//   - adam: the step count is the same. The decaying means are not, see [Adam].
//   - momentum: the velocity decays less than in the serial run, see [Momentum].
//   - counter, max and min: the same, exactly.
//   - set: one of the last pushes of the copies, as a whole: the one that reached the
//     owner last.
//   - proxsgd and proxadagrad: copies of proxadagrad step as far as their own
//     accumulators allow, as many copies as there are up to the root of their
//     number too far. And each copy shrinks by its own pushes: where several
//     copies bring the same weight down to zero, each took away the whole of it,
//     and the merged weight lies beyond zero, by at most what was shrunk. The next
//     pushes shrink it back.
//   - ftrl: the sums of the squared gradients are the same. The weight follows
//     from the sums, so that it is zero where that of one row would be; the
//     terms σ·w differ as those of their copies did.
package optim
