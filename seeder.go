package godwit

// A Seeder is a [Worker] whose samples can be drawn again: by another worker, or in another run
// that goes on where this one was.
type Seeder interface {
	Worker
	// SeedSample has the next sample of a sampler that the worker prepares draw by a
	// generator of its own, with two seeds. With the schemes independent and prepared, the
	// sample follows from the seeds alone; with local, from them and the keys that are here.
	// Samples of the other schemes share draws.
	SeedSample(sampler int, seed1, seed2 uint64)
}
