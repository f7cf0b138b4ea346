package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// A program is one run of the command line, with its surroundings.
type program struct {
	environ        []string
	stdout, stderr io.Writer

	json       bool   // print one JSON object
	operator   string // address of the operator's listener
	operatorCA string // file of authorities
	tokenFile  string
	as         string // the operator, for the log of actions

	logsEnd bool // the reason of the end is a line of the log, because machines read all lines
}

// A usageError is a command line that cannot be understood. It exits with exitUsage, and its
// message comes with how to get help.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usage(format string, args ...any) error {
	return withExit(exitUsage, usageError{fmt.Errorf(format, args...)})
}

// execute runs one command line and returns the code to exit with.
func execute(ctx context.Context, args, environ []string, stdout, stderr io.Writer) int {
	output := &outputWriter{to: stdout}
	p := &program{environ: environ, stdout: output, stderr: stderr}
	root := p.root()
	root.SetArgs(amountLast(args))
	root.SetOut(output)
	root.SetErr(stderr)
	command, err := root.ExecuteContextC(ctx)
	if err == nil {
		err = output.err // as of a help text
	}
	if err == nil {
		return exitDone
	}
	var coded *exitError
	if !errors.As(err, &coded) {
		// from the parser of the command line; commands give all theirs a code
		err = usage("%w", err)
	}
	// there --json names a file
	p.fail(command, err, p.json || wantsJSON(args) && command.Name() != loadtestName)
	return exitCode(err)
}

// wantsJSON finds --json in a command line that could not be parsed.
func wantsJSON(args []string) bool {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	return slices.Contains(args, "--json") || slices.Contains(args, "--json=true")
}

// fail prints the error.
func (p *program) fail(command *cobra.Command, err error, asJSON bool) {
	if p.logsEnd {
		slog.Error(err.Error(), "exit", exitCode(err))
		return
	}
	if asJSON {
		_ = printJSON(p.stderr, map[string]string{"error": err.Error()})
		return
	}
	fmt.Fprintf(p.stderr, "exchange: %v\n", err)
	var u usageError
	if errors.As(err, &u) {
		fmt.Fprintf(p.stderr, "Run `%s --help` for help.\n", command.CommandPath())
	}
}

// printJSON writes one object and a line break.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// env returns the value of an environment variable; an empty one counts as not set.
func (p *program) env(name string) string {
	for _, e := range slices.Backward(p.environ) {
		if n, value, _ := strings.Cut(e, "="); n == name {
			return value
		}
	}
	return ""
}

const rootHelp = `A trading exchange in one program.

` + "`exchange serve`" +
	` runs it. The operator's commands talk to a running one over its operator's listener, and
need its bearer token: run them where the server runs, or with --operator https://... from elsewhere. ` + "`exchange restore`" +
	` fills its store from a backup,
while it does not run.

Exit codes:
   0  done
  64  the command line, the configuration or the request is wrong
  70  an invariant is broken, or stored data is damaged
  75  the store or the server cannot be reached, is locked, or the outcome is unknown: try again
  77  another process has taken over the store: started again, this one is its standby;
      or the node was removed from its cluster: do not start it again`

func (p *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:                "exchange",
		Short:              "A trading exchange in one program",
		Long:               rootHelp,
		SilenceErrors:      true,
		SilenceUsage:       true,
		DisableSuggestions: true,
		CompletionOptions:  cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	flags := root.PersistentFlags()
	flags.BoolVar(&p.json, "json", false, "print one JSON object instead of text")
	flags.StringVar(&p.operator, "operator", "",
		"where the exchange takes commands: unix:PATH, host:port, or https://host:port if it has "+
			"TLS\n"+
			"(default ./data/operator.sock or EXCHANGE_OPERATOR)")
	flags.StringVar(&p.operatorCA, "operator-ca", "",
		"file of the authorities that https trusts (default the system's, or EXCHANGE_OPERATOR_CA)")
	flags.StringVar(&p.tokenFile, "operator-token-file", "",
		"file of the operator's token (default ./data/operator.token or "+
			"EXCHANGE_OPERATOR_TOKEN_FILE;\n"+
			"EXCHANGE_OPERATOR_TOKEN holds a token itself)")
	flags.StringVar(&p.as, "as", "",
		"your name in the log of operators' actions (default EXCHANGE_OPERATOR_NAME or the "+
			"user's name)")
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(p.serveCommand(), p.restoreCommand(), p.configCommand(), p.versionCommand(),
		p.healthCommand(), p.callCommand(), p.loadtestCommand(), p.secretKeyCommand(),
		p.clusterCommand())
	root.AddCommand(p.operatorCommands()...)
	return root
}

// group returns a command that only has commands below it.
func group(name, short string, commands ...*cobra.Command) *cobra.Command {
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
				return usage("%s has no command %q, only %s", name, args[0],
					strings.Join(names, ", "))
			}
			return usage("%s needs a command: %s", name, strings.Join(names, ", "))
		},
	}
	g.AddCommand(commands...)
	return g
}

// takes checks that exactly the named arguments are there.
func takes(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return usage("%s needs %s", strings.TrimPrefix(c.CommandPath(), "exchange "),
				strings.Join(names[len(args):], " "))
		case len(args) > len(names):
			return usage("%q is one argument too many for %s", args[len(names)],
				strings.TrimPrefix(c.CommandPath(), "exchange "))
		}
		return nil
	}
}

// run makes a cobra command's function of fn. It gives every error a code, which tells it from
// those of the parser.
func run(fn func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		return withExit(exitUnclassified, fn(c.Context(), args))
	}
}
