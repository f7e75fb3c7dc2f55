package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"

	"github.com/godwit-ps/godwit/job/cli"
	"github.com/godwit-ps/godwit/telemetry/record"
)

func topCommand() *cobra.Command {
	var once, asJSON bool
	cmd := &cobra.Command{
		Use:   "top RUN",
		Short: "Show what the nodes of a run do, each second",
		Long: `Show what the nodes of a run do, from what it writes with --trace: where the time of their workers goes,
tables and hot keys, waste, and what holds the run up. The run may be under way or over. RUN is the folder
of a run, or of --trace if there is one run in it; of one that has gone on by itself with a node less, what
it does since then is shown, under its name NAME-restartN. Figures of nodes are those of the last ten seconds;
what is said of keys is of those that are traced, since the run began.

On a terminal it goes on until q is pressed; arrow keys show what has no room. Elsewhere, and with --once, it is printed once; with --json
as an object, in which "failed" is why the run failed (empty: it did not, or goes on).`,
		Example: "  godwit train kge --nodes 4 --trace /tmp/trace &\n  godwit top /tmp/trace",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := record.Recent(args[0], lately)
			if err == nil {
				err = r.Watch(cmd.Context())
			}
			if err != nil {
				return cli.Failed(err)
			}
			out := cmd.OutOrStdout()
			switch {
			case asJSON:
				err = json.NewEncoder(out).Encode(lookAt(r))
			case once || !cli.Rewrites(out):
				_, err = io.WriteString(out, lookAt(r).String())
			default:
				err = watch(cmd.Context(), args[0], r, os.Stdin, out)
			}
			if err != nil {
				return cli.Failed(err)
			}
			return nil
		},
	}
	g := cli.NewGroup("Output")
	g.BoolVar(&once, "once", false, "print it once")
	g.BoolVar(&asJSON, "json", false, "print it once, as a JSON object")
	cli.AddGroups(cmd, g)
	return cmd
}

// lookEvery is how often the picture on a terminal is made anew.
const lookEvery = time.Second

// watch shows a run on a terminal until it is told to end. dir is the folder that the run was looked for in.
func watch(ctx context.Context, dir string, r *record.Run, in io.Reader, out io.Writer) error {
	m, err := tea.NewProgram(screen{dir: dir, run: r, look: lookAt(r)}, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out)).Run()
	if s, ok := m.(screen); ok && s.err != nil {
		return s.err
	}
	if errors.Is(err, tea.ErrInterrupted) {
		return nil
	}
	return err
}

// A screen is what a terminal shows.
type screen struct {
	dir           string // in which the run was looked for
	run           *record.Run
	look          *look
	width, height int // of the terminal; 0: not known yet
	top           int // the first line that is shown
	err           error
}

// A moment says that it is time to look again.
type moment struct{}

func (s screen) Init() tea.Cmd { return again() }

// later returns the part of the run that is the last one since it went on by itself; nil: it is the one that is shown.
func (s screen) later() *record.Run {
	r, err := record.Begin(s.dir)
	if err != nil || r.Dir == s.run.Dir { // another run may have come: this one is shown
		return nil
	}
	if r, err = record.Recent(r.Dir, lately); err != nil {
		return nil // it has hardly begun
	}
	return r
}

func again() tea.Cmd {
	return tea.Tick(lookEvery, func(time.Time) tea.Msg { return moment{} })
}

// Update takes what happened: a key, another size, or that it is time to look again.
func (s screen) Update(m tea.Msg) (tea.Model, tea.Cmd) {
	switch m := m.(type) {
	case moment:
		if _, s.err = s.run.Poll(); s.err != nil {
			return s, tea.Quit
		}
		if r := s.later(); r != nil {
			s.run = r
		}
		s.look = lookAt(s.run)
		return s, again()
	case tea.WindowSizeMsg:
		s.width, s.height = m.Width, m.Height
	case tea.KeyPressMsg:
		switch m.String() {
		case "q", "esc", "ctrl+c":
			return s, tea.Quit
		case "down", "j":
			s.top = first(s.text(), s.height, s.top+1)
		case "up", "k":
			s.top = first(s.text(), s.height, s.top-1)
		}
	}
	return s, nil
}

// View returns as much as the terminal has room for.
func (s screen) View() tea.View {
	v := tea.NewView(cut(s.text(), s.width, s.height, s.top))
	v.AltScreen = true
	return v
}

// text returns all that there is to show, with its sentences as wide as the terminal.
func (s screen) text() string { return fold(s.look.String(), s.width) }
