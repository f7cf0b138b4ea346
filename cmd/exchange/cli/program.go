package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// A Program is one run of the command line, with its surroundings.
type Program struct {
	Environ        []string
	Stdout, Stderr io.Writer

	JSON    bool // print one JSON object
	LogsEnd bool // log the reason of the end, because machines read all lines
}

// A usageError is a command line that cannot be understood. It exits with ExitUsage, and its
// message includes how to get help.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// Usage returns the error of a wrong command line.
func Usage(format string, args ...any) error {
	return WithExit(ExitUsage, usageError{fmt.Errorf(format, args...)})
}

// Execute runs one command line of a tree of commands and returns the code to exit with.
func (p *Program) Execute(ctx context.Context, tree func(*Program) *cobra.Command,
	args []string) int {
	output := &outputWriter{out: p.Stdout}
	p.Stdout = output
	root := tree(p)
	root.SilenceErrors, root.SilenceUsage, root.DisableSuggestions = true, true, true
	root.CompletionOptions.HiddenDefaultCmd = true
	root.PersistentFlags().BoolVar(&p.JSON, "json", false, "print one JSON object instead of text")
	root.SetFlagErrorFunc(flagError)
	root.SetArgs(AmountLast(args))
	root.SetOut(output)
	root.SetErr(p.Stderr)
	command, err := root.ExecuteContextC(ctx)
	if err == nil {
		err = output.err // as of a help text
	}
	if err == nil {
		return ExitDone
	}
	var coded *ExitError
	if !errors.As(err, &coded) {
		// from the command line's parser; errors of commands all have a code
		err = Usage("%w", err)
	}
	asJSON := p.JSON || wantsJSON(args)
	if own := command.LocalFlags().Lookup("json"); own != nil && own.Value.Type() != "bool" {
		asJSON = p.JSON // it names a file
	}
	p.fail(command, err, asJSON)
	return ExitCode(err)
}

// wantsJSON finds --json in a command line that could not be parsed.
func wantsJSON(args []string) bool {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	return slices.Contains(args, "--json") || slices.Contains(args, "--json=true")
}

// fail prints the error.
func (p *Program) fail(command *cobra.Command, err error, asJSON bool) {
	if p.LogsEnd {
		slog.Error(err.Error(), "exit", ExitCode(err))
		return
	}
	if asJSON {
		_ = PrintJSON(p.Stderr, map[string]string{"error": err.Error()})
		return
	}
	fmt.Fprintf(p.Stderr, "exchange: %v\n", err)
	var u usageError
	if errors.As(err, &u) {
		fmt.Fprintf(p.Stderr, "Run `%s --help` for help.\n", command.CommandPath())
	}
}

// Env returns the value of an environment variable; an empty one is treated as unset.
func (p *Program) Env(name string) string {
	for _, e := range slices.Backward(p.Environ) {
		if n, value, _ := strings.Cut(e, "="); n == name {
			return value
		}
	}
	return ""
}

// Group returns a command that only has commands below it.
func Group(name, short string, commands ...*cobra.Command) *cobra.Command {
	var names []string
	for _, c := range commands {
		names = append(names, c.Name())
	}
	g := &cobra.Command{
		Use:   name,
		Short: short,
		Args:  cobra.ArbitraryArgs, // otherwise a misspelt command prints the help and succeeds
		RunE: func(c *cobra.Command, args []string) error {
			name := strings.TrimPrefix(c.CommandPath(), "exchange ")
			if len(args) > 0 {
				return Usage("%s has no command %q, only %s", name, args[0],
					strings.Join(names, ", "))
			}
			return Usage("%s needs a command: %s", name, strings.Join(names, ", "))
		},
	}
	g.AddCommand(commands...)
	return g
}

// Takes checks that exactly the named arguments are there.
func Takes(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return Usage("%s needs %s", strings.TrimPrefix(c.CommandPath(), "exchange "),
				strings.Join(names[len(args):], " "))
		case len(args) > len(names):
			return Usage("%q is one argument too many for %s", args[len(names)],
				strings.TrimPrefix(c.CommandPath(), "exchange "))
		}
		return nil
	}
}

// Run makes a cobra command's function of fn. It gives every error a code, which distinguishes it
// from those of the parser.
func Run(fn func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		return WithExit(ExitUnclassified, fn(c.Context(), args))
	}
}
