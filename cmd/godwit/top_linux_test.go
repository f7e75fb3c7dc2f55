package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/term"
	"golang.org/x/sys/unix"

	"github.com/godwit-ps/godwit/telemetry/record"
)

// terminal opens a terminal of a size and returns the ends of its user and of programs.
func terminal(t *testing.T, width, height uint16) (user, program *os.File) {
	t.Helper()
	user, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("there are no terminals: ", err)
	}
	t.Cleanup(func() { user.Close() })
	fd := int(user.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: height, Col: width})
	}
	if err == nil {
		program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		t.Skip("there are no terminals: ", err)
	}
	t.Cleanup(func() { program.Close() })
	return user, program
}

// A terminal shows a run in its own width, also after that changed, and is as it was when a key has ended it. It need not answer anything.
func TestTopLeavesTheTerminalAsItWas(t *testing.T) {
	user, program := terminal(t, 60, 30)
	before, err := term.GetState(program.Fd())
	if err != nil {
		t.Fatal(err)
	}
	r := &record.Run{About: record.About{Run: strings.Repeat("r", 100), Policy: "adaptive"}, Events: []record.Event{{Start: &record.Start{Task: "kge"}}}}
	ended := make(chan error, 1)
	go func() { ended <- watch(t.Context(), "", r, program, program) }()
	shown := make(chan string)
	go func() {
		for all, b := "", make([]byte, 1<<12); ; {
			n, err := user.Read(b)
			if err != nil {
				return
			}
			all += string(b[:n])
			select {
			case shown <- all:
			case <-t.Context().Done():
				return
			}
		}
	}()
	all := ""
	until := func(from int, want string) {
		t.Helper()
		for end := time.After(time.Minute); !strings.Contains(all[from:], want); {
			select {
			case all = <-shown:
			case <-time.After(100 * time.Millisecond): // who has just begun may not hear of sizes yet; a terminal of its own would be told by this
				if err := unix.Kill(os.Getpid(), unix.SIGWINCH); err != nil {
					t.Fatal(err)
				}
			case <-end:
				t.Fatalf("%q is not in %q", want, all[from:])
			}
		}
	}
	until(0, strings.Repeat("r", 60))
	if strings.Contains(all, strings.Repeat("r", 61)) {
		t.Errorf("a line is wider than the terminal: %q", all)
	}
	narrow := len(all)
	if err := unix.IoctlSetWinsize(int(user.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 30, Col: 70}); err != nil {
		t.Fatal(err)
	}
	until(narrow, "ver  gc") // of the table's head, which there is room for now
	if _, err := user.WriteString("q"); err != nil {
		t.Fatal(err)
	}
	until(narrow, "\x1b[?1049l") // the other screen
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if after, err := term.GetState(program.Fd()); err != nil || *after != *before {
		t.Errorf("the terminal is left as %+v, was %+v (%v)", after, before, err)
	}
}
