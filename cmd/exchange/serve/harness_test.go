package serve

import (
	"testing"

	"github.com/spf13/cobra"

	"exchange/cmd/exchange/cli"
	"exchange/prove/clitest"
)

// commandLine has the commands of this machine alone.
var commandLine clitest.Line = func(p *cli.Program) *cobra.Command {
	root := &cobra.Command{Use: "exchange"}
	own := New(p)
	root.AddCommand(own.TopLevel()...)
	root.AddCommand(cli.Group("config", "", own.OfConfig()...),
		cli.Group("cluster", "", own.OfCluster()...))
	return root
}

// runLine runs one command line.
var runLine = commandLine.Run

// must returns v, or panics at an error.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// worked ends the test at an error.
func worked(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
