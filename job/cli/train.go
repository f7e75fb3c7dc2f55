package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/godwit-ps/godwit/job"
	"github.com/godwit-ps/godwit/placement"
	"github.com/godwit-ps/godwit/train/task"
)

// A Task is what is special about the command line of one task. Only Settings are
// needed.
type Task struct {
	// Settings are the defaults, which the task's own flags change.
	Settings task.Settings

	// Short and About are what the task does, as a line and as paragraphs.
	Short, About string
	// Example is command lines, each with two blanks before it.
	Example string
	// Data is what --data is, with its `kind` in such quotes; empty: the task reads no
	// data, and has no --data.
	Data string
	// Legend is what the figures of the table mean.
	Legend string

	// DataFlags, ModelFlags and TrainingFlags add the task's own flags, which change
	// the fields of Settings. Each may be nil. An error of package setting about such
	// a field is said in the words of its flag. A flag of a field without effect is
	// refused, where Settings are task.Partial.
	DataFlags, ModelFlags, TrainingFlags func(g Group)

	// Settle, which may be nil, sets the defaults that follow from other settings. It is
	// called when the flags were read, and told which of them were given; not for a run
	// that goes on from a checkpoint, which keeps its settings.
	Settle func(given func(flag string) bool)
}

// A training is the command line that trains a task.
type training struct {
	*Task
	spec     job.Spec
	cluster  cluster
	policies []string
	resume   string
	json     bool
	quiet    bool
	curves   curves
}

const tokenHelp = `Nodes of a run show its token, GODWIT_TOKEN, before they are let in. It is new for
each run and part of the command that --await prints; set it in the environment of
all nodes to choose it, 16 … 256 characters, or to USER:PASSWORD for an etcd of
--etcd that has users. The environment of a process is not shown to other users of
the machine, its command line is. Without the three --tls files, who can listen to
the network reads the token and everything else.`

const trainHelp = `The run can be watched on stderr; the result is a table on stdout. With --json,
stdout has a JSON object a line instead: "run", "policy", "time" (RFC 3339),
"seconds" since the begin, and one of "waiting", "start" (with all settings),
"tick" (every second or ten), "epoch", "evaluation", "checkpoint", "stopping", "failed",
"restart" (with a node less) and, last, "result"
(their fields are those of the types Event and Result of package job). Figures have
the same names everywhere: evaluation.metrics.valid.MRR, result.test.MRR.
Ctrl-C, SIGTERM and a terminal that closes (but under nohup) end the run in order:
the model is evaluated and, with --export, exported: as it is, or the best one of those
in checkpoints. A second Ctrl-C ends it at once.

With --await, it prints the command for the other machines.
` + tokenHelp + `

` + checkpointHelp + `

Filters (--filters) make pushes to other nodes take fewer bytes, one after the other:
  fixed(bytes=1) or fixed(bytes=2): numbers of so many bytes; bf16: of two
  significant(threshold=0.01,decay=0.1): what is small waits; skip(p=0.5): any may
  noise(std=0.1); sparse: no zeros; s2, zstd: compress frames, where they shrink
What is rounded away or waits is pushed later, so nothing is lost. With answers=1,
fixed and bf16 round what is pulled from other nodes, too; with forget=1 they
forget what they round away.

Policies (--policy, --policies):
  `

// Command returns a command that trains the task, of the settings' name.
func (k *Task) Command() *cobra.Command {
	t := &training{Task: k, spec: job.Default(k.Settings)}
	cmd := &cobra.Command{
		Use:     k.Settings.Name(),
		Short:   k.Short,
		Long:    paragraphs(k.About, trainHelp) + strings.Join(placement.Names(), ", ") + "\n\"adaptive\" needs no tuning; the others show what earlier systems do.",
		Example: k.Example,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return t.run(cmd) },
	}
	AddGroups(cmd, t.cluster.flags(&t.spec), t.dataGroup(), t.modelGroup(), t.trainingGroup(), t.checkpointGroup(), t.outputGroup(), t.cluster.watching.showing(), TLSFlags(&t.cluster.tls))
	return cmd
}

// paragraphs puts texts below each other, without the empty ones.
func paragraphs(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), "\n\n")
}

func (t *training) dataGroup() Group {
	g := NewGroup("Data")
	if t.Task.Data != "" {
		g.StringVarP(&t.spec.Data, "data", "d", "", t.Task.Data)
	}
	g.with(t.DataFlags)
	return g
}

func (t *training) modelGroup() Group {
	g := NewGroup("Model")
	g.with(t.ModelFlags)
	return g
}

func (t *training) trainingGroup() Group {
	g, s := NewGroup("Training"), &t.spec
	g.IntVarP(&s.Options.Epochs, "epochs", "e", s.Options.Epochs, "`number` of passes over the data to train")
	g.IntVar(&s.Options.EvalEvery, "eval-every", s.Options.EvalEvery, "evaluate the model every so many `epochs`; 0: after the last")
	g.IntVar(&s.Options.Patience, "patience", s.Options.Patience, "end after so many `evaluations` without improvement; 0: never")
	g.with(t.TrainingFlags)
	g.StringVar(&s.InitFrom, "init-from", "", "exported `folder`, or checkpoint, whose model to begin with: what it has of the same names, features or cells, else as without")
	g.Uint64Var(&s.Seed, "seed", s.Seed, "decides first values, samples and order")
	return g
}

func (t *training) outputGroup() Group {
	g := NewGroup("Output")
	g.StringVarP(&t.cluster.node.Export, "export", "o", "", exportUsage)
	g.StringVar(&t.cluster.node.Profile, "profile", "", profileUsage)
	g.Policies(&t.policies, "run under each of these policies, one after the other, and compare: `names` by commas, or all")
	t.curves.flags(g)
	g.BoolVar(&t.spec.Untrained, "untrained", t.spec.Untrained, "evaluate the model before training too")
	g.BoolVar(&t.json, "json", false, "print events and results on stdout as a JSON object a line")
	g.BoolVarP(&t.quiet, "quiet", "q", false, "say nothing on stderr but warnings, errors, and what nobody could know else: a free port, a new token")
	return g
}

const exportUsage = "`folder` to write the model to, as NumPy arrays with a model.json that describes them; replaces an earlier export of the same task"

const profileUsage = "`folder` to write profiles of training to, for \"go tool pprof\": node-N.cpu.pprof, .mutex, .block and .allocs of each node started here"

func (t *training) run(cmd *cobra.Command) error {
	if err := given(cmd); err != nil {
		return Usage(err)
	}
	if t.resume != "" {
		if err := t.goOn(cmd); err != nil {
			return err
		}
	} else if t.Settle != nil {
		t.Settle(cmd.Flags().Changed)
	}
	policies, err := t.check()
	if err == nil {
		err = t.cluster.ignored(cmd, &t.spec)
	}
	if err == nil {
		err = t.unused(cmd)
	}
	if err != nil {
		return Usage(inFlags(cmd, err, t.Settings, &t.spec, &t.cluster.node))
	}
	if err := t.curves.check(); err != nil {
		return Failed(err)
	}
	stop, ctx := interrupts(t.kept())
	t.cluster.node.Stop = stop
	p := newPrinter(t.quiet, t.json)
	p.again = cmd.CommandPath()
	p.curves = t.curves
	p.curves.task = t.Settings.Name()
	end, err := t.cluster.watching.show(t.cluster.node.TLS, p.listening)
	if err != nil {
		return Failed(err)
	}
	results, failed := t.each(ctx, cmd, policies, p)
	if err := errors.Join(t.show(cmd, results), p.unread, end()); failed == nil && err != nil {
		return Failed(err)
	}
	return failed
}

// unused refuses flags of the task that have no effect beside others, or on the data.
func (t *training) unused(cmd *cobra.Command) error {
	partial, ok := t.Settings.(task.Partial)
	if !ok {
		return nil
	}
	for _, u := range partial.Unused(t.spec.Data) {
		for _, field := range u.Fields {
			if name, ok := givenIn(cmd.Flags(), field); ok {
				return fmt.Errorf("--%s has no effect: %s; leave it out", name, u.Why)
			}
		}
	}
	return nil
}

// each runs the policies, one after the other.
func (t *training) each(ctx context.Context, cmd *cobra.Command, policies []string, p *printer) (results []*job.Result, failed error) {
	for _, name := range policies {
		spec, c := t.spec, t.cluster
		spec.Policy = name
		if len(policies) > 1 {
			c.run += "-" + plain(name)
		}
		r, err := c.do(ctx, spec, p)
		p.stopped(ctx, r)
		if failed = outcome(r, inFlags(cmd, err, t.Settings, &t.spec)); r != nil {
			results = append(results, r)
		}
		if failed != nil {
			break // what was found out so far is shown
		}
	}
	return results, failed
}

// kept says what an interrupt does to the run, and how long after a SIGTERM it ends at the latest; 0: it says nothing of that. A run with
// checkpoints can be gone on with.
func (t *training) kept() (what string, within time.Duration) {
	export := t.cluster.node.Export
	what = evaluated(export)
	switch {
	case t.cluster.place(&t.spec) != "":
		return "a checkpoint is written, and then " + what, termWithin
	case export == "":
		what += "; no --export: the model is not kept"
	}
	return what, 0
}

// plain makes a part of a run's name of that of a policy, which may have parameters.
func plain(policy string) string {
	return strings.NewReplacer("(", "-", "=", "-", ",", "-", ")", "", " ", "").Replace(policy)
}

// show prints the table of what was found out, for people.
func (t *training) show(cmd *cobra.Command, results []*job.Result) error {
	if t.json || len(results) == 0 {
		return nil
	}
	if err := table(cmd.OutOrStdout(), results); err != nil || t.quiet {
		return err
	}
	if logger.Load() == nil {
		legend(cmd.ErrOrStderr(), t.Legend)
	}
	return nil
}

// check checks the command line, and returns the policies to
// run.
func (t *training) check() ([]string, error) {
	policies := t.policies
	switch {
	case len(policies) == 0:
		policies = []string{t.spec.Policy}
	case len(policies) == 1 && policies[0] == "all":
		policies = placement.Names()
	}
	if len(policies) > 1 && t.cluster.await {
		return nil, fmt.Errorf("--policies makes several runs, and --await waits for the nodes of one: choose one of them")
	}
	if len(policies) > 1 && t.cluster.node.Export != "" {
		return nil, fmt.Errorf("--policies makes several runs, and --export takes the model of one: choose one of them")
	}
	if len(policies) > 1 && (t.spec.Checkpoint != "" || t.spec.Resume != "") {
		return nil, fmt.Errorf("--policies makes several runs, and --checkpoint and --resume are for one: choose one of them")
	}
	if len(policies) > 1 && job.ReadOnce(t.spec.Data) {
		return nil, fmt.Errorf("--policies makes several runs, which all read the data, and %s can be read only once: write them to a file, or choose one policy", t.spec.Data)
	}
	if t.cluster.restarts < 0 {
		return nil, fmt.Errorf("--restarts %d: want 0 or more", t.cluster.restarts)
	}
	if len(policies) > 1 && t.cluster.node.Profile != "" {
		return nil, fmt.Errorf("--policies makes several runs, and --profile takes the profiles of one: choose one of them")
	}
	for _, name := range policies {
		spec := t.spec
		spec.Policy = name
		if err := spec.Check(); err != nil {
			return nil, err
		}
	}
	if t.spec.Data != "" {
		// The other processes and people on other machines read it too.
		dir, err := filepath.Abs(t.spec.Data)
		if err != nil {
			return nil, err
		}
		t.spec.Data = dir
	}
	for _, place := range []*string{&t.spec.Checkpoint, &t.spec.Resume, &t.spec.InitFrom} {
		if err := absolute(place); err != nil {
			return nil, err
		}
	}
	return policies, t.cluster.prepare(&t.spec)
}
