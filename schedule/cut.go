package schedule

// mostChunks bounds the chunks of an epoch. At its end, workers wait for others that train their last chunk: of w workers
// for half of w/mostChunks of its time in the mean. A node that is slow by a factor of s delays an epoch by at most about
// 2·s·w/mostChunks of its time.
const mostChunks = 16384

// formerChunks bounded the chunks of an epoch before positions said how many there are ([Epoch.Chunks]).
const formerChunks = 1024

// Cut divides an epoch of so many steps into chunks. All chunks have perChunk steps but the
// last, which may have fewer. No steps are no chunks.
func Cut(steps int) (chunks, perChunk int) {
	perChunk = max(1, (steps+mostChunks-1)/mostChunks)
	return (steps + perChunk - 1) / perChunk, perChunk
}

// Steps returns the number of steps of a chunk of an epoch of so many steps.
func Steps(steps, chunk int) int {
	_, per := Cut(steps)
	return max(0, min(per, steps-chunk*per))
}

// Range returns the chunks from … to-1 of part i of n equal parts, such as a node's own.
func Range(chunks, i, n int) (from, to int) { return chunks * i / n, chunks * (i + 1) / n }

// Progress is how far a part of n parts is, 0 … 1, when it goes from first to last through its
// range and has done a share of a chunk.
func Progress(chunks, chunk, n int, share float64) float64 {
	i := ((chunk+1)*n - 1) / chunks
	from, to := Range(chunks, i, n)
	return (float64(chunk-from) + share) / float64(to-from)
}
