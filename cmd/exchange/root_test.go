package main

import (
	"encoding/json"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"exchange/cmd/exchange/cli"
	"exchange/config"
	"exchange/gateway/api"
	"exchange/prove/clitest"
)

func TestVersion(t *testing.T) {
	if r := clitest.Line(tree).Run(nil, "version"); r.Code != 0 || !strings.HasPrefix(r.Out,
		"exchange ") ||
		strings.Count(r.Out, "\n") != 1 {
		t.Errorf("%+v", r)
	}
	var v map[string]any
	if r := clitest.Line(tree).Run(nil, "version", "--json"); json.Unmarshal([]byte(r.Out),
		&v) != nil ||
		v["version"] != api.Version || v["commit"] == nil || v["go"] == "" {
		t.Errorf("%+v", r)
	}
}

// The document of the API names this version, too: recorded/testdata/openapi.json has it.
func TestTheChangelogHasTheProgramsVersion(t *testing.T) {
	text := must(os.ReadFile("../../CHANGELOG.md"))
	if !strings.Contains(string(text), "\n## "+api.Version+"\n") {
		t.Errorf("CHANGELOG.md has no entry of version %s", api.Version)
	}
}

// The test goes over the tree of commands, so it covers new commands too.
func TestHelpOfEveryCommandNamesItsFlagsAndArguments(t *testing.T) {
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		for _, child := range c.Commands() {
			visit(child)
		}
		if c.Short == "" {
			t.Errorf("%s has no description", c.CommandPath())
		}
		args := append(strings.Fields(c.CommandPath())[1:], "--help")
		r := clitest.Line(tree).Run(nil, args...)
		if r.Code != 0 || r.ErrOut != "" {
			t.Errorf("%q: %+v", args, r)
		}
		names := []string{"operator", "operator-token-file", "as", "json"}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" && f.Name != "help" {
				t.Errorf("%s --%s is not explained", c.CommandPath(), f.Name)
			}
			names = append(names, f.Name)
		})
		for _, name := range names {
			if !strings.Contains(r.Out, "--"+name+" ") {
				t.Errorf("%q does not name --%s:\n%s", args, name, r.Out)
			}
		}
		if !c.HasSubCommands() && !strings.Contains(r.Out, c.Use) {
			t.Errorf("%q does not show %q:\n%s", args, c.Use, r.Out)
		}
		if c.HasParent() {
			wantsItsArguments(t, c)
		}
	}
	visit(tree(&cli.Program{}))
	serve, help := clitest.Line(tree).Run(nil, "serve", "--help").Out, clitest.Line(tree).Run(nil,
		"config", "--help").Out
	for _, o := range config.Options {
		if strings.Contains(serve, "--"+o.FlagName()+" ") != o.Flag {
			t.Errorf("%s: in the help of serve: %v", o.Key, !o.Flag)
		}
		if !strings.Contains(help, "\n"+o.Key) {
			t.Errorf("config --help leaves out %s", o.Key)
		}
	}
}

// wantsItsArguments gives a command too few arguments and too many, unless their number varies.
func wantsItsArguments(t *testing.T, c *cobra.Command) {
	t.Helper()
	name := strings.TrimPrefix(c.CommandPath(), "exchange ")
	args := strings.Fields(name)
	use, _, _ := strings.Cut(c.Use, " --")
	fixed, optional, _ := strings.Cut(use, " [")
	if args[0] == "loadtest" || strings.Contains(use, "...") ||
		regexp.MustCompile(`^[A-Z]`).MatchString(optional) {
		return // there --json names a file
	}
	if c.HasSubCommands() {
		for _, child := range c.Commands() {
			wantUsageError(t, nil, args, child.Name())
		}
		wantUsageError(t, nil, args, name+" needs a command: ")
		wantUsageError(t, nil, append(args, "x"), name+` has no command "x", only `)
		return
	}
	for _, missing := range strings.Fields(fixed)[1:] {
		wantUsageError(t, nil, args, name+" needs "+missing)
		args = append(args, "x")
	}
	wantUsageError(t, nil, append(args, "y"), `"y" is one argument too many for `+name)
}

func wantUsageError(t *testing.T, environ, args []string, want string) {
	t.Helper()
	r := clitest.Line(tree).Run(environ, args...)
	r.WantError(t, cli.ExitUsage, want)
	if !strings.Contains(r.ErrOut, "--help` for help.\n") {
		t.Errorf("%q does not say how to get help: %s", args, r.ErrOut)
	}
	clitest.Line(tree).Run(environ, append([]string{"--json"}, args...)...).WantJSONError(t,
		cli.ExitUsage, want)
}

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

// A fullDisk takes no byte.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestOutputThatCannotBeWrittenExitsWith75(t *testing.T) {
	for _, line := range []string{"version", "version --json", "config example",
		"config check --demo", "serve --help", "--help"} {
		var errOut strings.Builder
		p := &cli.Program{Stdout: fullDisk{}, Stderr: &errOut}
		if code := p.Execute(t.Context(), tree,
			strings.Fields(line)); code != cli.ExitUnavailable ||
			strings.Count(errOut.String(), "no space left on device") != 1 {
			t.Errorf("%s: %d %s", line, code, errOut.String())
		}
	}
}
