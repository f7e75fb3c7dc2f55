package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/godwit-ps/godwit/job"
)

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "godwit %s %s %s/%s\n", job.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return ranErr(err)
		},
	}
}
