package schedule

// mostChunks bounds the chunks of an epoch whose steps keep their order: what is near each other may have much in common, and be better
// learned by one worker. mostItemChunks does so for [Items]. At the end of an epoch, each worker trains the chunk that it has begun, and mostly one more, while
// others wait: of w workers for about w/most of its time. A node that is slow by a factor of s delays an epoch by at most about 2·s·w/most of its time.
const (
	mostChunks     = 4096
	mostItemChunks = 16384
)

// formerChunks bounded the chunks of an epoch before positions said how many there are ([Epoch.Chunks]).
const formerChunks = 1024

// Cut divides an epoch of so many steps into chunks. All chunks have perChunk steps but the
// last, which may have fewer. No steps are no chunks.
func Cut(steps int) (chunks, perChunk int) { return cut(steps, mostChunks) }

// cut divides an epoch of so many steps into as many chunks at the most.
func cut(steps, most int) (chunks, perChunk int) {
	perChunk = max(1, (steps+most-1)/most)
	return (steps + perChunk - 1) / perChunk, perChunk
}

// Steps returns the number of steps of a chunk of an epoch of so many steps.
func Steps(steps, chunk int) int {
	_, per := Cut(steps)
	return stepsOf(steps, chunk, per)
}

// stepsOf is Steps where chunks have so many.
func stepsOf(steps, chunk, per int) int { return max(0, min(per, steps-chunk*per)) }

// Range returns the chunks from … to-1 of part i of n equal parts, such as a node's own.
func Range(chunks, i, n int) (from, to int) { return chunks * i / n, chunks * (i + 1) / n }

// Progress is how far a part of n parts is, 0 … 1, when it goes from first to last through its
// range and has done a share of a chunk.
func Progress(chunks, chunk, n int, share float64) float64 {
	i := ((chunk+1)*n - 1) / chunks
	from, to := Range(chunks, i, n)
	return (float64(chunk-from) + share) / float64(to-from)
}
