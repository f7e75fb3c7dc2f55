package job

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/checkpoint"
	"github.com/godwit-ps/godwit/train"
	"github.com/godwit-ps/godwit/train/task"
)

// keepCheckpoints are kept unless the spec says another number.
const keepCheckpoints = 3

// runSection is the section of a checkpoint with what a run needs beside its rows.
const runSection = "run"

// A savedRun is what a checkpoint says of the run that wrote it. Fields that are added later must
// be ones that earlier programs can ignore; else the version grows.
type savedRun struct {
	Version int             `json:"version"`
	Spec    json.RawMessage `json:"spec"`
	Data    string          `json:"data"` // its fingerprint
	State   *train.State    `json:"state"`
}

const savedVersion = 1

// readRun reads what a checkpoint says of its run.
func readRun(ctx context.Context, c *checkpoint.Checkpoint) (*savedRun, error) {
	if !slices.ContainsFunc(c.Manifest().Sections, func(s checkpoint.Section) bool { return s.Name == runSection }) {
		return nil, fmt.Errorf("job: checkpoint %d is of %q, and of no run of a task: only the program that wrote it can use it", c.Manifest().Number, c.Manifest().Task)
	}
	if name := c.Manifest().Task; !slices.Contains(task.Names(), name) {
		return nil, fmt.Errorf("job: checkpoint %d is of the task %q, and this program has %s: use the program that wrote it", c.Manifest().Number, name, strings.Join(task.Names(), ", "))
	}
	b, err := c.Section(ctx, runSection)
	if err != nil {
		return nil, err
	}
	var r savedRun
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, fmt.Errorf("job: checkpoint %d: the section %q cannot be read: %w", c.Manifest().Number, runSection, err)
	}
	if r.Version != savedVersion {
		return nil, fmt.Errorf("job: checkpoint %d: the section %q has version %d, and this program reads %d: use the version of godwit that wrote it", c.Manifest().Number, runSection, r.Version, savedVersion)
	}
	if r.State == nil {
		return nil, fmt.Errorf("job: checkpoint %d: the section %q has no state of a run", c.Manifest().Number, runSection)
	}
	return &r, nil
}

// spec returns the specification of the run. A rate that its task's settings left to what suits is as the run had it, where the
// checkpoint's tables tell that (see task.Settled): what suits may be something else in this program.
func (r *savedRun) spec(tables []checkpoint.Table) (Spec, error) {
	s, err := decode(r.Spec)
	if err == nil {
		err = s.Check()
	}
	if err != nil {
		return Spec{}, fmt.Errorf("job: the settings of the run that wrote the checkpoint cannot be read, was it another version? %w", err)
	}
	if t, ok := s.Task.(task.Settled); ok {
		for _, table := range tables {
			t.Settled(table.Name, table.Rule)
		}
	}
	return s, nil
}

// Resumed returns the specification of the run that wrote the checkpoint at a place, to go on from there: with
// its Resume, and a Checkpoint at the same place. These fields may be changed then: Nodes, Workers, Policy, Filters, Staleness,
// Options, Data (the same data elsewhere), Untrained, Checkpoint, Keep, TTL, Join. The task's settings and the seed may not.
func Resumed(ctx context.Context, place string) (Spec, error) {
	return resumed(ctx, place, checkpoint.Patience)
}

// resumed is [Resumed], of a store that may take so long for one thing.
func resumed(ctx context.Context, place string, limit time.Duration) (Spec, error) {
	store, _, err := checkpoint.SplitPlace(place)
	if err != nil {
		return Spec{}, err
	}
	c, err := openPlace(ctx, place, limit)
	if err != nil {
		return Spec{}, err
	}
	var s Spec
	r, err := readRun(ctx, c)
	if err == nil {
		s, err = r.spec(c.Manifest().Tables)
	}
	if err != nil {
		return Spec{}, fmt.Errorf("%w (%s, which version %q wrote)", err, numberedPlace(store, c.Manifest().Number), c.Manifest().Program)
	}
	if s.Temporary {
		s.Temporary, s.Keep = false, 0
	}
	s.Resume, s.Checkpoint, s.InitFrom, s.Untrained = numberedPlace(store, c.Manifest().Number), store, "", false
	if place == store {
		s.latest = s.Resume
	}
	return s, nil
}

func numberedPlace(store string, number uint64) string { return fmt.Sprintf("%s#%d", store, number) }

// A saver decides when checkpoints are written while training goes on, and knows their place. It belongs to the node of the process
// that leads, after that process made it.
type saver struct {
	store    checkpoint.Store
	lock     *checkpoint.Lock
	next     uint64               // the number of the next cut
	dir      string               // is removed when the run has ended well; empty: the checkpoints stay
	kept     bool                 // one was written, or was there
	left     string               // why old ones could not be removed, as it was told last
	failed   string               // why the last one could not be written; empty: it could
	manifest *checkpoint.Manifest // of the last checkpoint, on whose rows the next one can build; nil: on none
	resumed  *checkpoint.Resumed  // where the run went on at this place; nil: nowhere
	last     time.Time            // when the last one was complete, or the run began; zero: one is due at once
	cost     time.Duration        // of the last one; 0: there was none
}

// How far apart checkpoints are that are written while training goes on.
const (
	firstAfter = 10 * time.Second // the first one: nobody knows yet what it takes
	mostApart  = 10 * time.Minute
	costShare  = 100 // they take a hundredth of the time at most, if they need not be further apart for it than mostApart
)

// apart is how long after the last checkpoint, which cost something, the next one is due.
func apart(cost time.Duration) time.Duration {
	if cost == 0 {
		return firstAfter
	}
	return min(mostApart, (costShare-1)*cost)
}

// due is when the next checkpoint is to be written.
func (v *saver) due() time.Time { return v.last.Add(apart(v.cost)) }

// prepareSaver checks what the spec says of checkpoints, and takes the lock of their place; nil if there are to be
// none. It is done before anybody is waited for.
func (s *Spec) prepareSaver(ctx context.Context, run string, t task.Task) (*saver, error) {
	last := s.resumesLast()
	if s.Resume != "" {
		if err := s.checkResume(ctx, t); err != nil {
			return nil, err
		}
	}
	if s.Checkpoint == "" {
		return nil, nil
	}
	if err := checkpoint.CheckTables(len(t.Tables())); err != nil {
		return nil, err
	}
	v, err := s.openSaver(ctx, run)
	if err == nil && last && !s.elsewhere() {
		err = s.resumeLast(ctx, t, v)
	}
	if err != nil || v.next == 1 || s.Resume != "" {
		return v, err
	}
	v.release(ctx)
	if !s.Temporary {
		return nil, fmt.Errorf("job: at %s are checkpoints of an earlier run: go on with it (--resume), or choose another place for those of this run", v.store)
	}
	if err := setAside(s.Checkpoint); err != nil {
		return nil, err
	}
	return s.openSaver(ctx, run)
}

// resumesLast reports whether the run is to go on from the last checkpoint of a place, and not from that of a number.
func (s *Spec) resumesLast() bool {
	_, number, err := checkpoint.SplitPlace(s.Resume)
	return s.Resume != "" && err == nil && (number == 0 || s.Resume == s.latest)
}

// resumeLast has the run go on from the checkpoint that is the last one now that the lock is this run's: until then the run before may have written
// another one. An error gives the lock back.
func (s *Spec) resumeLast(ctx context.Context, t task.Task, v *saver) error {
	s.Resume = s.Checkpoint
	err := s.checkResume(ctx, t)
	if err == nil {
		err = s.goesOnFrom(ctx, v)
	}
	if err != nil {
		v.release(ctx)
	}
	return err
}

// openSaver takes the lock of the checkpoints' place.
func (s *Spec) openSaver(ctx context.Context, run string) (*saver, error) {
	store, err := checkpoint.OpenStore(ctx, s.Checkpoint)
	if err != nil {
		return nil, err
	}
	lock, err := checkpoint.Acquire(ctx, store, checkpoint.Holder{Run: run, Host: hostname(), PID: os.Getpid(), Since: time.Now()})
	if err != nil {
		return nil, err
	}
	v := &saver{store: store, lock: lock, last: time.Now()}
	if s.elsewhere() {
		v.last = time.Time{}
	}
	if s.Temporary {
		v.dir = s.Checkpoint
	}
	if v.next, err = checkpoint.Next(ctx, store); err == nil {
		err = s.goesOnFrom(ctx, v)
	}
	if err != nil {
		v.release(ctx)
		return nil, err
	}
	v.kept = v.next > 1
	return v, nil
}

// goesOnFrom notes the checkpoint that the run resumes, and on whose rows it can build, if that is at the saver's place.
func (s *Spec) goesOnFrom(ctx context.Context, v *saver) error {
	if s.Resume == "" || s.elsewhere() {
		return nil
	}
	c, err := openPlace(ctx, s.Resume, checkpoint.Patience)
	if err != nil {
		return err
	}
	v.manifest = c.Manifest()
	v.resumed = &checkpoint.Resumed{From: v.manifest.Number, Next: v.next}
	return nil
}

// releaseWithin is how long the lock's place is waited for once the run's context has ended: the process ends soon, and has to say before how it ended.
const releaseWithin = time.Second

// release gives the lock back.
func (v *saver) release(ctx context.Context) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = v.lock.Release() // if that fails, it is a lease that ends
	}()
	select {
	case <-done:
		return
	case <-ctx.Done():
	}
	select {
	case <-done:
	case <-time.After(releaseWithin):
	}
}

// close gives the lock back, and removes checkpoints that nobody needs any more. A nil saver has neither.
func (v *saver) close(ctx context.Context, r *Result, err error) {
	if v == nil {
		return
	}
	if well := err == nil && !r.Interrupted() && r.ExportError == ""; v.dir != "" && (well || !v.kept) {
		discard(v.dir)
	}
	v.release(ctx) // not before: the next run has the folder then
}

// checkResume fixes which checkpoint the run goes on from, and checks that it can.
func (s *Spec) checkResume(ctx context.Context, t task.Task) error {
	store, _, err := checkpoint.SplitPlace(s.Resume)
	if err != nil {
		return err
	}
	c, err := openPlace(ctx, s.Resume, checkpoint.Patience)
	if err != nil {
		return fmt.Errorf("job: the checkpoint to go on from: %w", err)
	}
	r, err := readRun(ctx, c)
	if err != nil {
		return err
	}
	old, err := r.spec(c.Manifest().Tables)
	if err != nil {
		return err
	}
	if open, err := Decode(r.Spec); err == nil && s.sameModel(&open) == nil {
		old = open // a program that leaves to what suits what it did before
	}
	if err := s.sameModel(&old); err != nil {
		return fmt.Errorf("job: the run cannot go on from %s: %w", s.Resume, err)
	}
	if t.Data() != r.Data {
		return fmt.Errorf("job: the run cannot go on from %s: its data were others: %s, and these are %s (%s)", s.Resume, r.Data, t.Data(), t.Summary())
	}
	s.Resume = numberedPlace(store, c.Manifest().Number)
	return nil
}

// differing names the fields of two JSON objects that differ, with what they were and are.
func differing(old, now []byte) string {
	var a, b map[string]json.RawMessage
	if json.Unmarshal(old, &a) != nil || json.Unmarshal(now, &b) != nil {
		return fmt.Sprintf("%s, and are %s now", old, now)
	}
	var all []string
	for name := range b {
		if a[name] == nil {
			all = append(all, fmt.Sprintf("%s is %s, and there was none", name, b[name]))
		} else if string(a[name]) != string(b[name]) {
			all = append(all, fmt.Sprintf("%s was %s, and is %s now", name, a[name], b[name]))
		}
		delete(a, name)
	}
	for name := range a {
		all = append(all, fmt.Sprintf("%s was %s, and there is none now", name, a[name]))
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}

// sameModel returns an error if a run with the spec trains something else than one with another spec.
func (s *Spec) sameModel(old *Spec) error {
	if s.Task.Name() != old.Task.Name() {
		return fmt.Errorf("it was of the task %s, not of %s", old.Task.Name(), s.Task.Name())
	}
	if s.Seed != old.Seed {
		return fmt.Errorf("its seed was %d, and is %d now", old.Seed, s.Seed)
	}
	mine, err := json.Marshal(s.Task)
	if err != nil {
		return err
	}
	theirs, err := json.Marshal(old.Task)
	if err != nil {
		return err
	}
	if string(mine) != string(theirs) {
		return fmt.Errorf("its settings of the task were others: %s", differing(theirs, mine))
	}
	return nil
}

// resume restores the rows that have their home at this node, and notes what was done.
func (p *part) resume(ctx context.Context) error {
	s, restore, err := p.openResumed(ctx)
	if err == nil {
		err = restore()
	}
	if !p.relays() { // else the leader alone reads
		err = p.allRestored(ctx, err)
	}
	if err != nil {
		return fmt.Errorf("job: restoring %s: %w", p.spec.Resume, err)
	}
	p.env.Begin = s
	if e, _ := s.Last(); e != nil {
		_, p.metrics = SplitMetrics(e.Metrics).bySplit()
	}
	return nil
}

// errNotRestored is in the error of each node if some could not restore their rows: no node was lost.
var errNotRestored = errors.New("not all nodes could restore their rows")

// allRestored tells the other nodes how restoring ended here. If it failed at any node, it returns an error at all.
func (p *part) allRestored(ctx context.Context, err error) error {
	var mine []byte
	if err != nil {
		mine = []byte(err.Error())
	}
	all, gerr := p.env.Gather(ctx, "job restored", mine)
	switch {
	case gerr != nil:
		return cmp.Or(err, gerr)
	case err != nil:
		return fmt.Errorf("%w: %w", errNotRestored, err)
	}
	for id, why := range all {
		if len(why) > 0 {
			return fmt.Errorf("%w: %v: %s", errNotRestored, p.session.Members()[id], why)
		}
	}
	return nil
}

// openResumed returns what was done at the checkpoint that the run goes on from, and what restores its rows.
func (p *part) openResumed(ctx context.Context) (s *train.State, restore func() error, err error) {
	if p.relays() && !p.leads() {
		return p.relay.askResumed(ctx)
	}
	c, err := openPlace(ctx, p.spec.Resume, p.cfg.patience())
	if err != nil {
		return nil, nil, err
	}
	m := p.env.Workers[0].Model()
	if old, now := c.Manifest().Tables, checkpoint.Tables(m); !slices.Equal(old, now) {
		return nil, nil, fmt.Errorf("its tables were %v, and are %v now", old, now)
	}
	r, err := readRun(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	p.lacking = append(p.lacking, openWarnings(p.spec, c.Manifest().Program, Version())...)
	return r.State, func() error {
		if err := c.Rows(ctx, p.mayBeHome(p.session.Self()), p.restore); err != nil || !p.relays() {
			return err
		}
		return p.relay.give(ctx, c, r.State)
	}, nil
}

// openWarnings warns if a run goes on from a checkpoint of another version, and leaves settings open of which the checkpoint does not tell what they were.
func openWarnings(s *Spec, wrote, now string) []string {
	t, ok := s.Task.(task.Settled)
	if !ok || wrote == now || len(t.Open()) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s was written by godwit %s, and this is %s: its run left %s to what suits, which is what suits in this version and may have been something else before",
		s.Resume, wrote, now, strings.Join(t.Open(), " and "))}
}

// restore is a [node.Sink].
func (p *part) restore(table int, rows []uint64, vals []float32) error {
	_, err := p.node.Restore(table, rows, vals, !p.spec.elsewhere())
	return err
}

// mostAsked is of how many rows it is found out whether one has its home here: more are read in any case.
const mostAsked = 1 << 16

// mayBeHome returns a function that reports whether a row of those between two rows of a table may have its home at a node.
func (p *part) mayBeHome(at godwit.NodeID) func(table int, first, last uint64) bool {
	m := p.env.Workers[0].Model()
	return func(table int, first, last uint64) bool {
		if len(p.session.Members()) == 1 || last-first >= mostAsked {
			return true
		}
		for row := first; row <= last; row++ {
			if p.node.Home(m.Key(table, row)) == at {
				return true
			}
		}
		return false
	}
}
