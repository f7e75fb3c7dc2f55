package job

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/data/atomicfile"
	"github.com/godwit-ps/godwit/telemetry/flight"
	"github.com/godwit-ps/godwit/telemetry/trace"
)

// While a profile is taken, one of so many contended unlocks is sampled, and
// every wait of at least so many nanoseconds (of shorter ones, their share).
const (
	mutexFraction = 10
	blockRate     = 10_000
)

// A profile is being taken of this process, for a node. It belongs to one
// goroutine, which must stop it.
type profile struct {
	prefix   string // of the files' paths
	cpu      *atomicfile.File
	fraction int // of contended unlocks, as it was before
}

// probeProfile makes the folder of profiles, and finds out whether files can be written there.
func probeProfile(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("job: profile: %w", err)
	}
	f, err := atomicfile.Create(filepath.Join(dir, "probe"))
	if err != nil {
		return fmt.Errorf("job: profile: %w", err)
	}
	f.Abort()
	return nil
}

// startProfile begins a profile in a folder, which is there. The Go runtime
// takes one at a time.
func startProfile(dir string, self godwit.NodeID) (*profile, error) {
	p := &profile{prefix: filepath.Join(dir, fmt.Sprintf("node-%d", self))}
	var err error
	if p.cpu, err = atomicfile.Create(p.path("cpu")); err != nil {
		return nil, fmt.Errorf("job: profile: %w", err)
	}
	if err := pprof.StartCPUProfile(p.cpu.Writer); err != nil {
		p.cpu.Abort()
		return nil, fmt.Errorf("job: profile %s: %w", p.path("cpu"), err)
	}
	p.fraction = runtime.SetMutexProfileFraction(mutexFraction)
	runtime.SetBlockProfileRate(blockRate)
	return p, nil
}

func (p *profile) path(kind string) string { return p.prefix + "." + kind + ".pprof" }

// stop ends the profile and writes its files.
func (p *profile) stop() error {
	pprof.StopCPUProfile()
	runtime.SetMutexProfileFraction(p.fraction)
	runtime.SetBlockProfileRate(0)
	errs := []error{named(p.path("cpu"), p.cpu.Commit())}
	for _, kind := range []string{"mutex", "block", "allocs"} {
		path := p.path(kind)
		errs = append(errs, named(path, atomicfile.Write(path, func(w io.Writer) error {
			return pprof.Lookup(kind).WriteTo(w, 0)
		})))
	}
	return errors.Join(errs...)
}

// named says of which file of a profile an error is.
func named(path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("job: profile %s: %w", path, err)
}

// beginFlight begins to keep what the process did in its last seconds, if that is wanted. What is
// written goes beside the node's trace, or to a folder for temporary files.
func (p *part) beginFlight() (err error) {
	if !p.cfg.Flight {
		return nil
	}
	dir := filepath.Join(os.TempDir(), "godwit-flight-"+p.run)
	if p.cfg.Trace != "" {
		dir = filepath.Join(p.cfg.Trace, p.run)
	}
	if p.flight, err = flight.Start(trace.NodeDir(dir, p.session.Self())); err != nil {
		return fmt.Errorf("job: %w", err)
	}
	return nil
}
