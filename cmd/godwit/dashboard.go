package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/godwit-ps/godwit/dashboard"
	"github.com/godwit-ps/godwit/job/cli"
	"github.com/godwit-ps/godwit/telemetry/trace"
	"github.com/godwit-ps/godwit/transport/tcp"
)

func dashboardCommand() *cobra.Command {
	var addr string
	var tls tcp.TLSFiles
	cmd := &cobra.Command{
		Use:   "dashboard DIR",
		Short: "Show in a browser where the parameters of a run are, and why",
		Long: `Serve a web page that shows a run from the folder that it wrote, or still writes, with --trace: who has which
parameter over time and at any moment, the life of each key, where the time of each node goes, and curves. DIR is the
run's folder, or one with several runs, of which two can be compared. The page shows all nodes:
those that do not share the folder send what they do to the first node. It changes nothing.

The printed address has a token in it, without which nothing is shown. Ctrl-C ends it.
A run shows itself while it lasts with the flag --dashboard of "godwit train" and "godwit demo".`,
		Example: "  godwit train kge --nodes 4 --trace /tmp/trace\n  godwit dashboard /tmp/trace",
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return showRun(cmd, args[0], addr, &tls) },
	}
	g := cli.NewGroup("Dashboard")
	g.StringVar(&addr, "addr", "127.0.0.1:0", "`host:port` to listen at; without a host, loopback; other machines reach it only with the three --tls files")
	cli.AddGroups(cmd, g, cli.TLSFlags(&tls))
	return cmd
}

// showRun serves a folder until an interrupt.
func showRun(cmd *cobra.Command, dir, addr string, files *tcp.TLSFiles) error {
	if info, err := os.Stat(dir); err != nil {
		return cli.Failed(err)
	} else if !info.IsDir() {
		return cli.Usage(fmt.Errorf("%s is a file: want the folder that --trace named, or one in it", dir))
	}
	t, err := cli.TLSOf(files)
	if err != nil {
		return cli.Usage(err)
	}
	secured, err := t.Config()
	if err != nil {
		return cli.Failed(err)
	}
	if _, err := dashboard.Address(addr, secured != nil); err != nil {
		return cli.Usage(fmt.Errorf("--addr: %w", err))
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s, err := dashboard.Serve(dashboard.Config{Dir: dir, Addr: addr, TLS: secured})
	if err != nil {
		return cli.Failed(err)
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s\n", s.URL())
	fmt.Fprintln(cmd.ErrOrStderr(), "open it in a browser; Ctrl-C ends it")
	if _, err := trace.Open(dir); trace.IsEmpty(err) {
		fmt.Fprintf(cmd.ErrOrStderr(), "no run is there yet: %v; a run that begins there is shown then\n", err)
	}
	<-ctx.Done()
	stop() // another interrupt ends the process at once
	closing, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if err := s.Close(closing); err != nil {
		return cli.Failed(err)
	}
	return nil
}

// closeTimeout is how long pages that are being sent are waited for.
const closeTimeout = 3 * time.Second
