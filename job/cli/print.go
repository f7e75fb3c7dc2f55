package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/godwit-ps/godwit/internal/plural"
	"github.com/godwit-ps/godwit/job"
	"github.com/godwit-ps/godwit/node"
)

// A printer shows the events of runs: to people on stderr, and to programs as
// a line of JSON each on stdout.
type printer struct {
	people   io.Writer // nil: nothing for people
	quiet    bool      // people hear of warnings only
	terminal bool      // people look at what is written
	rewrites bool      // … and a line may be written over
	json     *json.Encoder
	unread   error                  // why JSON could not be written
	join     func(job.Event) string // the command by which a node joins
	again    string                 // the command that trains, by which a run is gone on with, too
	curves   curves                 // learning curves in files

	written bool             // the terminal shows a line that the next one replaces
	epoch   int              // the last that ended
	last    *job.Checkpoint  // that was written; nil: none was
	since   time.Time        // when an early end was asked for
	begun   bool             // training has, since the run was begun or begun again
	items   map[string]int64 // of the data, trained before each checkpoint that was written, by its place
	failed  *job.Failed      // how training ended; nil: by no error
	unit    string
}

func newPrinter(quiet, asJSON bool) *printer {
	p := &printer{people: os.Stderr, quiet: quiet, unit: "items"}
	if asJSON {
		p.json = json.NewEncoder(os.Stdout)
	}
	p.terminal = !quiet && IsTerminal(os.Stderr) && logger.Load() == nil
	p.rewrites = p.terminal && Rewrites(os.Stderr)
	return p
}

// IsTerminal reports whether people look at what is written: it goes to a character device, and not to the one that keeps nothing.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}

// Rewrites reports whether a line of what is written can be written anew: it goes to a terminal that knows more than lines.
func Rewrites(w io.Writer) bool { return IsTerminal(w) && os.Getenv("TERM") != "dumb" }

// jsonTick is how often a program hears of a tick. A line takes about a kilobyte.
const jsonTick = 10 * time.Second

// tick is how often a terminal's line is written anew, and programs hear of a tick.
func (p *printer) tick() time.Duration {
	switch {
	case p.rewrites:
		return time.Second
	case p.json != nil:
		return jsonTick
	}
	return 0
}

func (p *printer) event(e job.Event) {
	switch {
	case e.Start != nil:
		p.begun = true
		logAs(e.Run, int(e.Start.Self))
	case e.Checkpoint != nil && e.Checkpoint.Error == "":
		p.last = e.Checkpoint
		if p.items == nil {
			p.items = map[string]int64{}
		}
		p.items[p.last.Place] = p.last.Items
	case e.Stopping != "":
		p.since = e.Time
	case e.Failed != nil && p.begun:
		p.failed = e.Failed
	}
	if p.json != nil {
		if err := p.json.Encode(e); err != nil {
			complain(slog.LevelError, "writing JSON (no more follows): %v", err)
			p.json = nil // nobody reads it any more, and the run goes on
			p.unread = fmt.Errorf("writing JSON: %w", err)
		}
	}
	p.show(e)
	if err := p.curves.event(e); err != nil {
		p.warn("the learning curve is not written, and the run goes on: %v", err)
	}
}

// show shows an event to people.
func (p *printer) show(e job.Event) {
	switch {
	case e.Waiting != nil:
		who := fmt.Sprintf("%d more nodes; on each of their machines", e.Waiting.Nodes)
		if e.Waiting.Nodes == 1 {
			who = "one more node; on its machine"
		}
		waiting := p.line
		if e.Waiting.Token != "" && p.json == nil {
			waiting = p.tell // a quiet run, too: without the token no node comes
		}
		waiting("waiting for %s run\n\n  %s\n", who, p.join(e))
	case e.Start != nil:
		p.start(e)
	case e.Tick != nil && p.rewrites:
		p.tickLine(e.Tick)
	case e.Epoch != nil:
		p.epoch = e.Epoch.Epoch
		p.line("%s", epochLine(e.Epoch, p.unit))
	case e.Evaluation != nil:
		p.evaluation(e.Evaluation)
	case e.Checkpoint != nil:
		p.checkpoint(e.Checkpoint)
	case e.Warning != "":
		p.warn("%s", e.Warning)
	case e.Stopping != "":
		p.line("stopping: %s", e.Stopping)
	}
}

// line writes a line that stays.
func (p *printer) line(format string, args ...any) {
	if !p.quiet {
		p.tell(format, args...)
	}
}

// tell is line for what people hear of in a quiet run, too.
func (p *printer) tell(format string, args ...any) {
	if p.people == nil {
		return
	}
	p.clear()
	say(p.people, slog.LevelInfo, fmt.Sprintf(format, args...))
}

// listening tells where something listens that was asked to listen at host:port. Where the system chose the port, a quiet run tells it,
// too: nothing else does.
func (p *printer) listening(asked, text string) {
	if _, port, err := net.SplitHostPort(asked); err == nil && strings.Trim(port, "0") == "" {
		p.tell("%s", text)
		return
	}
	p.line("%s", text)
}

// warn is line for what people hear of in any case.
func (p *printer) warn(format string, args ...any) {
	if p.people == nil {
		return
	}
	p.clear()
	text := fmt.Sprintf(format, args...)
	if logger.Load() == nil {
		text = "warning: " + text
	}
	say(p.people, slog.LevelWarn, text)
}

// say is line for a text that is no format.
func (p *printer) say(text string) { p.line("%s", text) }

// clear removes the line that is to be replaced.
func (p *printer) clear() {
	if p.written {
		fmt.Fprint(p.people, "\r\x1b[K")
		p.written = false
	}
}

func (p *printer) start(e job.Event) {
	p.unit, p.epoch = e.Start.Unit, 0
	p.line("policy %s: %s", e.Policy, e.Start.Data)
	for _, d := range e.Start.Warnings {
		p.warn("%s", d)
	}
	if len(e.Start.Nodes) == 1 {
		p.line("1 node with %s", plural.Of(e.Start.Nodes[0].Workers, "worker"))
		return
	}
	for _, n := range e.Start.Nodes {
		p.line("node %d: %s, %s, process %d on %s", n.ID, plural.Of(n.Workers, "worker"), n.Addr, n.PID, n.Host)
	}
}

func (p *printer) tickLine(t *job.Tick) {
	p.clear()
	fmt.Fprintf(p.people, "epoch %d, this node: %s %s/s, %s", p.epoch+1, count(float64(t.Items)/t.Seconds), p.unit, shares(&t.Stats))
	p.written = true
}

func epochLine(e *job.Epoch, unit string) string {
	s := fmt.Sprintf("epoch %d/%d: loss %.4f, %s %s/s", e.Epoch, e.Of, e.Loss, count(float64(e.Items)/max(e.Seconds, 1e-9)), unit)
	if e.Stats.Frames == 0 {
		return s
	}
	return fmt.Sprintf("%s, %s, %s moves, %s replicas, sent %s", s, shares(&e.Stats), count(float64(e.Stats.Moves)), count(float64(e.Stats.Replicas)), size(float64(e.Stats.SentBytes)))
}

// shares is the text of where accesses were served.
func shares(s *node.Stats) string {
	n := max(float64(s.Accesses()), 1) / 100
	text := fmt.Sprintf("accesses local %.1f %%, replica %.1f %%, fetched ahead %.1f %%, waited %.3f %%, remote %.3f %%",
		float64(s.Local)/n, float64(s.Replica)/n, float64(s.Ahead)/n, float64(s.Queued)/n, float64(s.Remote)/n)
	if s.Blocked > 0 {
		text += fmt.Sprintf(", workers waited %v for others", s.BlockedTime.Round(time.Millisecond))
	}
	return text
}

func (p *printer) evaluation(e *job.Evaluation) {
	what := fmt.Sprintf("after epoch %d", e.Epoch)
	if e.Epoch == 0 {
		what = "untrained"
	}
	p.line("%s: %s", what, metrics(e.Metrics))
	for _, w := range e.Warnings {
		p.warn("%s", w)
	}
}

func (p *printer) checkpoint(c *job.Checkpoint) {
	switch {
	case c.GivenUp:
		p.line("checkpoint %d is left out: %s", c.Number, c.Error)
		return
	case c.Error != "":
		p.warn("checkpoint %d could not be written, and the run goes on: %s", c.Number, c.Error)
		return
	}
	p.line("checkpoint %d %s: %s rows, %s in %.2f s", c.Number, moment(c), count(float64(c.Rows)), size(float64(c.Bytes)), c.Seconds)
}

// stopped tells how to go on with a run that was stopped. It has a result if it ended in order.
func (p *printer) stopped(ctx context.Context, r *job.Result) {
	late := errors.Is(context.Cause(ctx), errLate)
	if !late && (r == nil || !r.Interrupted()) {
		return
	}
	if late {
		p.warn("%v: ended before the model was evaluated and exported", errLate)
	}
	if p.last == nil {
		if late {
			p.warn("no checkpoint was written: nothing is kept")
		}
		return
	}
	p.goOn("")
}

// goOn tells by which command the run can be gone on with, if there is a checkpoint.
func (p *printer) goOn(flags string) {
	if p.last != nil {
		p.line("to go on (checkpoint %d %s):\n\n  %s --resume %s%s\n", p.last.Number, moment(p.last), p.again, Argument(p.last.Place), flags)
	}
}

// Argument returns a text as a shell takes it for one argument: in quotes, if it has characters that mean something there.
func Argument(text string) string {
	plain := func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("%+,-./:=@_#", r)
	}
	if text != "" && text[0] != '#' && !strings.ContainsFunc(text, func(r rune) bool { return !plain(r) }) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// lost tells what is left of a run of which a node of another machine was lost.
func (p *printer) lost(nodes int) {
	switch {
	case p.last == nil:
		p.warn("no checkpoint was written before: nothing is kept")
	case nodes == 2:
		p.goOn(" --nodes 1")
	default:
		p.goOn(fmt.Sprintf(" --nodes %d --await", nodes-1))
	}
}

// moment says when a checkpoint was made.
func moment(c *job.Checkpoint) string {
	if c.Within > 0 {
		return fmt.Sprintf("within epoch %d", c.Within)
	}
	return fmt.Sprintf("after epoch %d", c.Epoch)
}

// metrics names a split where it is another one than before.
func metrics(ms job.SplitMetrics) string {
	var parts []string
	split := ""
	for _, m := range ms {
		name := m.Name
		if m.Split != split {
			name, split = m.Label(), m.Split
		}
		parts = append(parts, fmt.Sprintf("%s %.4f", name, m.Value))
	}
	return strings.Join(parts, ", ")
}

// table prints results of one task beside each other.
func table(w io.Writer, rs []*job.Result) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "policy\tnodes\tworkers\tepochs\tuntrained\t")
	for _, m := range rs[0].Test {
		fmt.Fprintf(t, "%s\t", m.Name)
	}
	fmt.Fprintln(t, "time\twaiting\tno message\tmoves\treplicas\tsent\tmemory\t")
	for _, r := range rs {
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t", r.Policy, r.Nodes, r.Workers, r.Epochs)
		if len(r.Untrained) > 0 {
			fmt.Fprintf(t, "%.4f\t", r.Untrained[0].Value)
		} else {
			fmt.Fprint(t, "-\t")
		}
		for _, m := range r.Test {
			fmt.Fprintf(t, "%.4f\t", m.Value)
		}
		fmt.Fprintf(t, "%.1f s\t%.1f %%\t%.3f %%\t%s\t%s\t%s\t%s\t\n", r.TrainSeconds, 100*r.Waiting, 100*r.NoMessage,
			count(float64(r.Stats.Moves)), count(float64(r.Stats.Replicas)), size(float64(r.Stats.SentBytes)), size(float64(r.Stats.Bytes)))
	}
	return t.Flush()
}

const tableLegend = `time: of the epochs. waiting: share of the workers' time in them in which they
waited, for messages or for each other. no message: share of accesses to parameters
that needed no message (a value that is fetched ahead needs one). replicas: the most
at the end of an epoch. memory: of the parameters, all nodes together.
`

// legend explains the table, whose figures of quality are the task's. The run is as good where nobody reads it.
func legend(w io.Writer, figures string) {
	if figures != "" {
		figures += "\n"
	}
	_, _ = fmt.Fprint(w, figures, tableLegend)
}

// count writes a number in at most five places.
func count(x float64) string {
	switch {
	case x < 1e4:
		return fmt.Sprintf("%.0f", x)
	case x < 1e7:
		return fmt.Sprintf("%.0fk", x/1e3)
	}
	return fmt.Sprintf("%.0fM", x/1e6)
}

func size(x float64) string {
	switch {
	case x == 0:
		return "0"
	case x < 1e6:
		return fmt.Sprintf("%.0f kB", x/1e3)
	case x < 1e9:
		return fmt.Sprintf("%.1f MB", x/1e6)
	}
	return fmt.Sprintf("%.2f GB", x/1e9)
}
