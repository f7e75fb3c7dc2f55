package capi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/checkpoint"
	"github.com/godwit-ps/godwit/node"
)

// A Saving says what is to be saved where, as JSON.
type Saving struct {
	Place  string `json:"place"`  // a folder
	Number uint64 `json:"number"` // of the checkpoint, as the leader says
	Keep   int    `json:"keep"`   // how many checkpoints to keep; 0: all

	// Folders with other tables of the run, which were saved under the number before: what is older there than all that is kept is removed, too.
	Beside []string `json:"beside"`
}

// stateSection is the section of a checkpoint with what the program wants to keep beside the rows.
const stateSection = "state"

var saving = "save"

// Save writes a checkpoint of all rows. Each process of the run calls it with its first worker, and no other worker of the
// process is used meanwhile. The leader's state becomes part of it.
func (w *Worker) Save(config, state []byte, wait time.Duration) (uint64, error) {
	var s Saving
	if err := decode(config, &s, "what save is told"); err != nil {
		return 0, fmt.Errorf("%s: save: %w", w.name, err)
	}
	c := w.cluster
	if s.Place == "" || s.Keep < 0 || s.Number == 0 && c.rank == 0 {
		return 0, wrong("%s: save: %q does not say where to, want {\"place\": \"folder\", \"number\": 1}", w.name, config)
	}
	if err := checkpoint.CheckTables(c.cfg.Model.Tables()); err != nil {
		return 0, wrong("%s: save: %v", w.name, err)
	}
	leave, err := c.enterAll(&saving)
	if err != nil {
		return 0, err
	}
	state = slices.Clone(state)
	if err := w.enter(&saving); err != nil { // enterAll left this one out, as beside leaves it
		leave()
		return 0, err
	}
	return w.all(saving, wait, func(ctx context.Context) error {
		defer leave()
		return c.save(ctx, s, state)
	})
}

// enterAll enters all workers of this process but the first.
func (c *Cluster) enterAll(what *string) (leave func(), err error) {
	var entered []*Worker
	leave = func() {
		for _, w := range entered {
			w.leave()
		}
	}
	for i := 1; i < len(c.made); i++ {
		w, err := c.Worker(i)
		if err == nil {
			err = w.enter(what)
		}
		if err != nil {
			leave()
			return nil, err
		}
		entered = append(entered, w)
	}
	return leave, nil
}

// together has all workers of the nodes here do something.
func (c *Cluster) together(do func(godwit.Cutter) error) error {
	errs := make([]error, len(c.here)*c.workers)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { errs[i] = do(c.here[i/c.workers].Worker(i % c.workers).(godwit.Cutter)) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// meet has all workers of the run meet, with all updates arrived.
func (c *Cluster) meet(ctx context.Context) error {
	return c.together(func(w godwit.Cutter) error {
		err := w.SyncAll(ctx)
		w.Rest()
		return err
	})
}

func (c *Cluster) save(ctx context.Context, s Saving, state []byte) error {
	store, err := checkpoint.OpenStore(ctx, s.Place)
	if err != nil {
		return err
	}
	for len(c.notes) > 0 { // of a checkpoint that was given up: nobody tells of this one before all have met
		<-c.notes
	}
	if err := c.meet(ctx); err != nil {
		return err
	}
	if c.rank > 0 {
		return c.follow(ctx, store)
	}
	return c.lead(ctx, store, s, state)
}

// written is the last checkpoint, of which nodes know what changed since.
type written struct {
	place    string
	manifest *checkpoint.Manifest
}

// there reports whether the checkpoint is the last one in a folder: nobody has removed it, or written another.
func (w written) there(ctx context.Context, place string) bool {
	if w.manifest == nil || w.place != place {
		return false
	}
	now, err := checkpoint.OpenPlace(ctx, place)
	return err == nil && now.Manifest().ID == w.manifest.ID
}

// A note is what processes tell each other of a checkpoint.
type note struct {
	Node  int               `json:"node"` // who says it
	ID    checkpoint.ID     `json:"id"`
	Cut   uint64            `json:"cut"`   // the number of the cut,
	Which node.Which        `json:"which"` // … and of which rows it is
	Piece *checkpoint.Piece `json:"piece,omitempty"`
	Err   string            `json:"err,omitempty"`
}

// lead has all nodes write, and commits.
func (c *Cluster) lead(ctx context.Context, store checkpoint.Store, s Saving, state []byte) error {
	n := note{ID: checkpoint.NewID(s.Number), Cut: c.cuts + 1}
	m := c.manifest(n.ID)
	if c.last.there(ctx, s.Place) && checkpoint.Incremental(c.last.manifest) {
		n.Which, m.BuildsOn = node.ChangedCut, c.last.manifest.Layers()
	}
	c.last = written{} // after a checkpoint that failed, nobody knows what changed since the last
	lock, err := checkpoint.Acquire(ctx, store, c.holder())
	if err != nil {
		n.Err = err.Error()
	}
	pieces, err := c.pieces(ctx, store, n, state, err)
	if err == nil {
		var made *checkpoint.Manifest
		if made, err = checkpoint.Commit(ctx, store, m, pieces); err == nil {
			c.last = written{s.Place, made}
		}
	}
	if err == nil && s.Keep > 0 {
		if _, err = lock.Prune(ctx, store, s.Keep); err == nil {
			err = c.pruneBeside(ctx, store, s.Beside)
		}
	}
	if lock != nil {
		err = errors.Join(err, lock.Release())
	}
	end := note{ID: n.ID}
	if err != nil {
		end.Err = err.Error()
	}
	ctx, cancel := lastWord(ctx)
	defer cancel()
	return errors.Join(err, c.tellAll(ctx, end))
}

// lastWord returns a context for telling others how it ended, also if it was given up: they wait for it.
func lastWord(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx.Err() == nil {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(context.WithoutCancel(ctx), wordTime)
}

// wordTime bounds how long a checkpoint that was given up waits until the others know.
const wordTime = 5 * time.Second

// pruneBeside removes from other folders the checkpoints that are older than all that a store has.
func (c *Cluster) pruneBeside(ctx context.Context, store checkpoint.Store, folders []string) error {
	kept, err := checkpoint.Numbers(ctx, store)
	if err != nil || len(kept) == 0 {
		return err
	}
	for _, folder := range folders {
		if err := c.pruneBefore(ctx, folder, kept[0]); err != nil {
			return err
		}
	}
	return nil
}

// pruneBefore removes from a folder the checkpoints before a number.
func (c *Cluster) pruneBefore(ctx context.Context, folder string, first uint64) error {
	store, err := checkpoint.OpenStore(ctx, folder)
	if err != nil {
		return err
	}
	lock, err := checkpoint.Acquire(ctx, store, c.holder())
	if err != nil {
		return err
	}
	numbers, err := checkpoint.Numbers(ctx, store)
	older, _ := slices.BinarySearch(numbers, first)
	if left := len(numbers) - older; err == nil && older > 0 && left > 0 {
		_, err = lock.Prune(ctx, store, left)
	}
	return errors.Join(err, lock.Release())
}

// holder is what others read who find a folder locked.
func (c *Cluster) holder() checkpoint.Holder {
	return checkpoint.Holder{Run: c.name(), PID: os.Getpid(), Since: time.Now().UTC().Truncate(time.Second)}
}

// pieces has all nodes write what they have.
func (c *Cluster) pieces(ctx context.Context, store checkpoint.Store, n note, state []byte, failed error) ([]*checkpoint.Piece, error) {
	if err := c.tellAll(ctx, n); err != nil || failed != nil {
		return nil, errors.Join(failed, err)
	}
	mine, err := c.write(ctx, store, n, state)
	if len(c.here) == c.nodes {
		return mine, err
	}
	for range c.nodes - 1 {
		other, nerr := c.hear(ctx, n.ID)
		if nerr != nil {
			return nil, errors.Join(err, nerr)
		}
		if other.Err != "" {
			err = errors.Join(err, fmt.Errorf("rank %d: %s", other.Node, other.Err))
		}
		mine = append(mine, other.Piece)
	}
	return mine, err
}

// follow writes what this node has, and returns when the leader has committed.
func (c *Cluster) follow(ctx context.Context, store checkpoint.Store) error {
	n, err := c.begins(ctx)
	if err != nil {
		return err
	}
	if n.Err != "" {
		_, err = c.hear(ctx, n.ID) // the end
		return errors.Join(fmt.Errorf("rank 0: %s", n.Err), err)
	}
	piece, err := c.write(ctx, store, n, nil)
	mine := note{Node: c.rank, ID: n.ID}
	if err != nil {
		mine.Err = err.Error()
	} else {
		mine.Piece = piece[0]
	}
	word, cancel := lastWord(ctx)
	defer cancel()
	if terr := c.tell(word, 0, mine); terr != nil {
		return errors.Join(err, terr)
	}
	end, herr := c.hear(ctx, n.ID)
	if herr == nil && end.Err != "" {
		herr = fmt.Errorf("rank 0: %s", end.Err)
	}
	return errors.Join(err, herr)
}

// write writes what the nodes of this process have.
func (c *Cluster) write(ctx context.Context, store checkpoint.Store, n note, state []byte) ([]*checkpoint.Piece, error) {
	c.cuts = n.Cut
	tables := checkpoint.Tables(c.cfg.Model)
	pieces, errs := make([]*checkpoint.Piece, len(c.here)), make([]error, len(c.here))
	var wg sync.WaitGroup
	for i, nd := range c.here {
		wg.Go(func() {
			pieces[i], errs[i] = checkpoint.Write(ctx, store, n.ID, c.rank+i, tables, func(w *checkpoint.Writer) error {
				if c.rank+i == 0 && len(state) > 0 {
					if err := w.Section(stateSection, state); err != nil {
						return err
					}
				}
				_, err := nd.Cut(ctx, n.Cut, n.Which, w.Write)
				return err
			})
		})
	}
	wg.Wait()
	return pieces, errors.Join(errs...)
}

func (c *Cluster) manifest(id checkpoint.ID) checkpoint.Manifest {
	return checkpoint.Manifest{
		Format: checkpoint.Format, ID: id, Run: c.name(), Task: "library", Written: time.Now().UTC().Truncate(time.Second),
		Nodes: c.nodes, Seed: c.cfg.Seed, Tables: checkpoint.Tables(c.cfg.Model),
	}
}

func (c *Cluster) name() string {
	if c.cfg.Run != "" {
		return c.cfg.Run
	}
	return "local"
}

// tellAll tells all other processes something.
func (c *Cluster) tellAll(ctx context.Context, n note) error {
	var errs []error
	for id := range c.nodes {
		if c.node(id) == nil {
			errs = append(errs, c.tell(ctx, id, n))
		}
	}
	return errors.Join(errs...)
}

// tell tells another process something, which its next call of hear returns.
func (c *Cluster) tell(ctx context.Context, to int, n note) error {
	b, err := json.Marshal(n)
	if err != nil {
		return err
	}
	var answer []byte
	if err := c.here[0].Ask(godwit.NodeID(to), append([]byte{askNote}, b...), func(b []byte) { answer = slices.Clone(b) })(ctx); err != nil {
		return err
	}
	if len(answer) != 1 {
		return fmt.Errorf("rank %d takes no word of checkpoints: it has not called save as often as this one", to)
	}
	return nil
}

// told takes what another process tells.
func (c *Cluster) told(b []byte) []byte {
	var n note
	if json.Unmarshal(b, &n) != nil {
		return nil
	}
	select {
	case c.notes <- n:
		return []byte{1}
	default:
		return nil
	}
}

// begins returns the note by which the leader begins a checkpoint. What is left of one that was given up is dropped.
func (c *Cluster) begins(ctx context.Context) (note, error) {
	for {
		n, err := c.next(ctx)
		if err != nil || n.Cut != 0 {
			return n, err
		}
	}
}

// hear returns what another process has told of a checkpoint. What is left of one that was given up is dropped.
func (c *Cluster) hear(ctx context.Context, id checkpoint.ID) (note, error) {
	for {
		n, err := c.next(ctx)
		if err != nil || n.ID == id {
			return n, err
		}
	}
}

// next returns what another process has told.
func (c *Cluster) next(ctx context.Context) (note, error) {
	select {
	case n := <-c.notes:
		return n, nil
	case <-ctx.Done():
		return note{}, context.Cause(ctx)
	case <-c.here[0].Done():
		return note{}, c.here[0].Err()
	}
}

// restore gives the nodes here the rows of a checkpoint that have their home there.
func (c *Cluster) restore(ctx context.Context, from *checkpoint.Checkpoint) error {
	for _, n := range c.here {
		err := from.Rows(ctx, nil, func(table int, rows []uint64, vals []float32) error {
			_, err := n.Restore(table, rows, vals, false)
			return err
		})
		if err != nil {
			return fmt.Errorf("restoring %s: %w", c.from, err)
		}
	}
	return c.meet(ctx)
}

// openFrom opens the checkpoint to begin from, whose seed becomes that of the run.
func (c *Cluster) openFrom(place string, model *godwit.Model) (*checkpoint.Checkpoint, error) {
	c.from = place
	from, err := checkpoint.OpenPlace(context.Background(), place)
	if err != nil {
		return nil, wrong("the checkpoint to begin from: %v", err)
	}
	if old, now := from.Manifest().Tables, checkpoint.Tables(model); !slices.Equal(old, now) {
		return nil, wrong("the cluster cannot begin from %s: %s", place, difference(old, now))
	}
	return from, nil
}
