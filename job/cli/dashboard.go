package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/godwit-ps/godwit/dashboard"
	"github.com/godwit-ps/godwit/transport/tcp"
)

// anyPort is where the dashboard is if nobody says where.
const anyPort = "127.0.0.1:0"

// withAddress makes one argument of --dashboard and the address that follows it: the flag's value may be left out, so
// it is not looked for in the next argument.
func withAddress(args []string) (joined []string) {
	for i := 0; i < len(args); i++ {
		a := args[i]
		if a == "--" {
			return append(joined, args[i:]...)
		}
		if a == "--dashboard" && i+1 < len(args) && strings.Contains(args[i+1], ":") && !strings.HasPrefix(args[i+1], "-") {
			i++
			a += "=" + args[i]
		}
		joined = append(joined, a)
	}
	return joined
}

// show serves the dashboard of the runs that follow, if the flags say so: from the folder of the trace, or a temporary one. What it
// returns ends that. files are the certificates of the run; nil: none.
func (w *watching) show(files *tcp.TLSFiles, tell func(asked, text string)) (end func() error, err error) {
	if w.dashboard == "" {
		return func() error { return nil }, nil
	}
	t, err := files.Config()
	if err != nil {
		return nil, err
	}
	if _, err := dashboard.Address(w.dashboard, t != nil); err != nil {
		return nil, Usage(fmt.Errorf("--dashboard: %w", err))
	}
	remove := func() error { return nil }
	if w.trace == "" {
		if w.trace, err = os.MkdirTemp("", "godwit-dashboard-"); err != nil {
			return nil, fmt.Errorf("--dashboard: a folder for what it shows: %w: set TMPDIR to one that can be written to, or give --trace", err)
		}
		dir := w.trace
		remove = func() error { return os.RemoveAll(dir) }
	}
	s, err := dashboard.Serve(dashboard.Config{Dir: w.trace, Addr: w.dashboard, TLS: t, Live: true})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w; say another address by --dashboard", err), remove())
	}
	tell(w.dashboard, "dashboard: "+s.URL())
	return func() error {
		ctx, cancel := context.WithTimeout(context.Background(), showTimeout)
		defer cancel()
		return errors.Join(s.Close(ctx), remove())
	}, nil
}

// showTimeout is how long pages that are being sent are waited for at the end.
const showTimeout = 3 * time.Second
