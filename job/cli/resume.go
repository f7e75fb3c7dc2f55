package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/checkpoint"
	"github.com/godwit-ps/godwit/coord"
	"github.com/godwit-ps/godwit/internal/plural"
	"github.com/godwit-ps/godwit/job"
	"github.com/godwit-ps/godwit/telemetry/trace"
)

const checkpointHelp = `With --checkpoint, the state of the run is written while training goes on: when the model is the
best so far, at the end, after a SIGTERM or Ctrl-C, and else as often as takes a hundredth of
the time, at least every 10 minutes. A run that was killed goes on with --resume, within the
epoch, on any number of nodes; when one of the nodes that this command started is lost, it goes on
by itself with the others. Without --checkpoint, but with --export, the checkpoints are in a
folder beside the export, such as embeddings.checkpoints, until the run has ended well; with
--await the nodes of other machines send their part there. After SIGTERM a run with
checkpoints ends within 25 s; if the last one cannot be written until then, the former one
stays. Settings come from the checkpoint; flags may change --nodes, --workers, --policy,
--filters, --staleness, --epochs, --eval-every, --patience, --data (the same data elsewhere), --keep,
--ttl, --join and all of output. The model that is evaluated and exported at the end is the
best one of those in checkpoints and the last.`

// keptByDefault and restartsByDefault are what the flags are unless they are given.
const (
	keptByDefault     = 3
	restartsByDefault = 3
)

func (t *training) checkpointGroup() Group {
	g := NewGroup("Checkpoints")
	g.StringVar(&t.spec.Checkpoint, "checkpoint", "", "`folder`, or URL of a bucket, to write checkpoints to, which all nodes see (default with --resume: there)")
	g.IntVar(&t.spec.Keep, "keep", keptByDefault, "`number` of checkpoints to keep, the last ones; the best one is kept too")
	g.StringVar(&t.resume, "resume", "", "`folder` or URL of a checkpoint to go on from, the last one there or, as in runs/kge#12, that of a number")
	g.IntVar(&t.cluster.restarts, "restarts", restartsByDefault, "how many `times` a run with checkpoints goes on by itself with a node less when one is lost")
	return g
}

// absolute makes the path of a place absolute, because other processes read it too. A URL stays.
func absolute(place *string) error {
	if *place == "" || strings.Contains(*place, "://") {
		return nil
	}
	path, err := filepath.Abs(*place)
	if err == nil {
		*place = path
	}
	return err
}

// goOn takes the settings of the run that wrote the checkpoint of --resume, and then those of the flags that
// were given.
func (t *training) goOn(cmd *cobra.Command) error {
	if err := absolute(&t.resume); err != nil {
		return Failed(err)
	}
	spec, err := job.Resumed(cmd.Context(), t.resume)
	if err != nil {
		return Failed(err)
	}
	if name := spec.Task.Name(); name != t.Settings.Name() {
		return Usage(fmt.Errorf("--resume %s: it is a checkpoint of the task %s, not of %s", t.resume, name, t.Settings.Name()))
	}
	type flag struct {
		*pflag.Flag
		text string
	}
	var given []flag
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if _, list := f.Value.(pflag.SliceValue); !list { // no field of the spec is a list
			given = append(given, flag{f, f.Value.String()})
		}
	})
	if err := t.take(spec); err != nil {
		return Failed(err)
	}
	if cmd.Flags().Changed("nodes") {
		t.spec.Workers = 0 // follows from the cores, if it is not given
	}
	model, err := t.model()
	if err != nil {
		return Failed(err)
	}
	for _, f := range given {
		had := f.Value.String()
		if err := f.Value.Set(f.text); err != nil {
			return Usage(fmt.Errorf("--%s %s: %w", f.Name, f.text, err))
		}
		if now, err := t.model(); err != nil {
			return Failed(err)
		} else if now != model {
			return Usage(fmt.Errorf("--%s %s: the run that wrote %s had %s, and goes on with that: leave the flag out", f.Name, f.text, spec.Resume, cmp.Or(had, "none")))
		}
	}
	return nil
}

// model returns what a run keeps that goes on, as a text: the settings of the task and the seed.
func (t *training) model() (string, error) {
	b, err := json.Marshal(t.Settings)
	return fmt.Sprintf("%s, seed %d", b, t.spec.Seed), err
}

// take makes a specification that of the training. The fields of the task's settings stay where the flags have them.
func (t *training) take(spec job.Spec) error {
	b, err := json.Marshal(spec.Task)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, t.Settings); err != nil {
		return err
	}
	spec.Task = t.Settings
	t.spec = spec
	return nil
}

// do runs the job. If a node is lost, and there are checkpoints, it goes on from the last one with a node less. If it could not begin again from that
// because it is damaged, it goes on from the one before.
func (c *cluster) do(ctx context.Context, spec job.Spec, p *printer) (*job.Result, error) {
	return c.again(ctx, spec, p, c.once)
}

// again is [cluster.do], whose parts once runs.
func (c *cluster) again(ctx context.Context, spec job.Spec, p *printer, once func(context.Context, job.Spec, *printer) (*job.Result, error)) (*job.Result, error) {
	name, suspect := c.run, ""
	var cause error // why it began again
	for n := 1; ; n++ {
		p.begun = false
		r, err := once(ctx, spec, p)
		if cause != nil && errors.Is(err, job.ErrInterrupted) {
			return nil, p.interrupted(&spec, cause)
		}
		place := c.place(&spec)
		c.tell(p, spec.Nodes, err)
		lost := errors.Is(err, godwit.ErrPeerLost)
		vain := n > 1 && err != nil && !p.begun && !errors.Is(err, job.ErrInterrupted)
		if !lost && !vain || place == "" || c.await || n > c.restarts || ctx.Err() != nil {
			return r, err
		}
		select {
		case <-c.node.Stop:
			return nil, p.interrupted(&spec, err)
		default:
		}
		if vain {
			suspect = spec.Resume
		}
		from, rerr := lastWhole(ctx, place, suspect, p.warn)
		switch {
		case !lost && (rerr != nil || from.Resume == spec.Resume): // it was not for the checkpoint, or there is no other
			return r, err
		case errors.Is(rerr, checkpoint.ErrNone) && spec.Checkpoint == "":
			return r, err
		case errors.Is(rerr, checkpoint.ErrNone):
		case rerr != nil:
			return nil, errors.Join(err, rerr)
		default:
			spec.Resume, spec.InitFrom, spec.Untrained = from.Resume, "", false
		}
		if lost {
			spec.Nodes--
		}
		c.run, cause = trace.Restarted(name, n), err
		p.restart(c.run, n, c.restarts, &spec, err)
	}
}

// interrupted is the error of a run whose end was asked for before it trained again, for a cause. It tells how to go on with it.
func (p *printer) interrupted(s *job.Spec, cause error) error {
	if p.last == nil && s.Resume == "" {
		p.warn("no checkpoint was written: nothing is kept")
	}
	p.goOn("")
	return fmt.Errorf("%w again, after this: %v", job.ErrInterrupted, cause)
}

// lastWhole returns the specification to go on with from the last checkpoint at a place. If that cannot be opened, or is the suspect one and
// not whole, it is from the last whole one before it, with a warning.
func lastWhole(ctx context.Context, place, suspect string, warn func(format string, args ...any)) (job.Spec, error) {
	from, err := job.Resumed(ctx, place)
	if err == nil && from.Resume == suspect {
		err = verify(ctx, suspect)
	}
	if err == nil || errors.Is(err, checkpoint.ErrNone) {
		return from, err
	}
	s, serr := checkpoint.OpenStore(ctx, place)
	if serr != nil {
		return job.Spec{}, err
	}
	numbers, serr := checkpoint.Numbers(ctx, s)
	if serr != nil {
		return job.Spec{}, err
	}
	for i := len(numbers) - 2; i >= 0 && ctx.Err() == nil; i-- {
		before, berr := job.Resumed(ctx, fmt.Sprintf("%s#%d", place, numbers[i]))
		if berr == nil && verify(ctx, before.Resume) == nil {
			warn("the last checkpoint %s#%d cannot be used, and the run goes on from %s, which is whole: %v", place, numbers[len(numbers)-1], before.Resume, err)
			return before, nil
		}
	}
	return job.Spec{}, err
}

// verify reads all of a checkpoint.
func verify(ctx context.Context, place string) error {
	c, err := checkpoint.OpenPlace(ctx, place)
	if err == nil {
		_, err = c.Verify(ctx)
	}
	return err
}

// tell says how a run can be gone on with that ended because of a node of another machine, or of the coordinator.
func (c *cluster) tell(p *printer, nodes int, err error) {
	switch {
	case errors.Is(err, godwit.ErrPeerLost) && c.await:
		p.lost(nodes)
	case errors.Is(err, coord.ErrCoordinator) && c.await:
		p.goOn(" --await")
	case errors.Is(err, coord.ErrCoordinator):
		p.goOn("")
	}
}

// place is where the run writes checkpoints; empty: it writes none.
func (c *cluster) place(spec *job.Spec) string {
	if spec.Checkpoint != "" || c.node.Export == "" {
		return spec.Checkpoint
	}
	place := job.Beside(c.node.Export)
	if err := absolute(&place); err != nil {
		return ""
	}
	return place
}

// restart tells that a run goes on.
func (p *printer) restart(run string, n, of int, s *job.Spec, cause error) {
	r := &job.Restart{Attempt: n, Of: of, Nodes: s.Nodes, From: s.Resume}
	from := "from the beginning: there was no checkpoint yet"
	if s.Resume != "" {
		from = "from " + s.Resume
	}
	if p.failed != nil {
		r.Again = p.failed.Items
		if s.Resume != "" {
			r.Again = max(0, r.Again-p.items[s.Resume])
		}
	}
	p.event(job.Event{Run: run, Policy: s.Policy, Time: time.Now(), Restart: r})
	p.warn("%v", cause)
	p.line("restart %d of at most %d: going on with %s %s; about %s %s that were trained behind it are trained again", n, of, plural.Of(s.Nodes, "node"), from, count(float64(r.Again)), p.unit)
}
