package main

import (
	"context"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"exchange/cmd/exchange/cli"
)

// versionCommand prints the program's version and commit.
func versionCommand(p *cli.Program) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print what this program was built from",
		Args:  cli.Takes(),
		RunE: cli.Run(func(context.Context, []string) error {
			v := cli.BuildVersion()
			if p.JSON {
				return cli.PrintJSON(p.Stdout, v)
			}
			from := ""
			if v.Commit != "" {
				from = " " + v.Commit
				if v.Modified {
					from += " with changes"
				}
			}
			_, err := fmt.Fprintf(p.Stdout, "exchange %s%s (%s, %s/%s)\n", v.Version, from, v.Go,
				runtime.GOOS, runtime.GOARCH)
			return err
		}),
	}
}
