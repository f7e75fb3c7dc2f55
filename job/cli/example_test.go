package cli_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/godwit-ps/godwit/data/export"
	"github.com/godwit-ps/godwit/job/cli"
	"github.com/godwit-ps/godwit/train/task"
)

// A program of a task has all the flags of a run, and those that the task adds.
func ExampleProgram() {
	settings := task.DefaultSketch()
	settings.Stream.Items, settings.Stream.Distinct = 1000, 100
	program := cli.Program(cli.Task{
		Settings: settings,
		Short:    "Count the items of a stream",
		ModelFlags: func(g cli.Group) {
			g.IntVar(&settings.Width, "width", settings.Width, "cells of a row")
		},
	})

	dir, err := os.MkdirTemp("", "sketch")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	dir = filepath.Join(dir, "model")
	program.SetOut(io.Discard)
	program.SetArgs([]string{"--quiet", "--workers", "2", "--epochs", "3", "--width", "5000", "--export", dir})
	if err := program.Execute(); err != nil {
		panic(err)
	}
	m, err := export.Read(dir)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s: %d epochs, %s %v\n", m.Task, m.Run.Epochs, m.Files[0].Name, m.Files[0].Shape)

	program.SetArgs([]string{"--epochs", "0"})
	err = program.Execute()
	fmt.Printf("%v; the exit code is %d\n", err, cli.ExitCode(err))
	// Output:
	// sketch: 3 epochs, cells.npy [20000 2]
	// --epochs 0: want at least 1; the exit code is 2
}
