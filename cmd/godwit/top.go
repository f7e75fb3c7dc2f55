package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/charmbracelet/x/term"
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
as an object.`,
		Example: "  godwit train kge --nodes 4 --trace /tmp/trace &\n  godwit top /tmp/trace",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := record.Recent(args[0], lately)
			if err != nil {
				return cli.Failed(err)
			}
			out := cmd.OutOrStdout()
			switch {
			case asJSON:
				err = json.NewEncoder(out).Encode(lookAt(r))
			case once || !cli.IsTerminal(out) || os.Getenv("TERM") == "dumb": // which has nothing but lines
				_, err = io.WriteString(out, lookAt(r).String())
			default:
				err = watch(cmd.Context(), r, os.Stdin, out.(*os.File))
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

// watch shows a run on a terminal until it is told to end. It asks the terminal nothing: some do not answer.
func watch(ctx context.Context, r *record.Run, in, out *os.File) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	keys := make(chan string)
	if state, err := term.MakeRaw(in.Fd()); err == nil { // else keys come from elsewhere, and Ctrl-C ends it
		defer func() { _ = term.Restore(in.Fd(), state) }()
		go read(ctx, in, keys)
	}
	fmt.Fprint(out, "\x1b[?1049h\x1b[?25l") // another screen, without a cursor
	defer fmt.Fprint(out, "\x1b[?25h\x1b[?1049l")
	s := screen{run: r, look: lookAt(r)}
	sizes, looks := time.NewTicker(sizeEvery), time.NewTicker(lookEvery)
	defer sizes.Stop()
	defer looks.Stop()
	for shown, ended := "", false; !ended; {
		if w, h, err := term.GetSize(out.Fd()); err == nil {
			s.width, s.height = w, h
		}
		if view := s.view(); view != shown {
			shown = view
			if _, err := io.WriteString(out, "\x1b[H"+strings.ReplaceAll(view, "\n", "\x1b[K\r\n")+"\x1b[J"); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case key := <-keys:
			ended = s.pressed(key)
		case <-looks.C:
			if _, err := r.Poll(); err != nil {
				return err
			}
			s.look = lookAt(r)
		case <-sizes.C:
		}
	}
	return nil
}

// sizeEvery is how often it is looked whether the terminal has another size.
const sizeEvery = 200 * time.Millisecond

// read passes on the keys that are pressed, each as the bytes that the terminal sends of it, until ctx ends.
func read(ctx context.Context, from io.Reader, keys chan<- string) {
	b := make([]byte, 64)
	for {
		n, err := from.Read(b)
		if err != nil {
			return
		}
		select {
		case keys <- string(b[:n]):
		case <-ctx.Done():
			return
		}
	}
}

// A screen is what a terminal shows.
type screen struct {
	run           *record.Run
	look          *look
	width, height int // of the terminal; 0: not known
	top           int // the first line that is shown
}

// pressed does what a key says, and returns whether that is to end.
func (s *screen) pressed(key string) (end bool) {
	switch key {
	case "q", "\x1b", "\x03":
		return true
	case "\x1b[B", "\x1bOB", "j":
		s.top = first(s.text(), s.height, s.top+1)
	case "\x1b[A", "\x1bOA", "k":
		s.top = first(s.text(), s.height, s.top-1)
	}
	return false
}

// view returns as much as the terminal has room for.
func (s *screen) view() string { return cut(s.text(), s.width, s.height, s.top) }

// text returns all that there is to show, with its sentences as wide as the terminal.
func (s *screen) text() string { return fold(s.look.String(), s.width) }
