//go:build prove

package recorded

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"exchange/prove/exchangetest"
)

var record = flag.Bool("record", false, "record the lists in testdata again")

func TestMain(m *testing.M) { os.Exit(exchangetest.Main(m)) }

// compare compares a list with the one of its name in testdata, line by line.
func compare(t *testing.T, name, got string) {
	t.Helper()
	if *record {
		write(t, name, got)
		return
	}
	same(t, name, got)
}

// comparePermanent is compare for a list that no flag records again, because it is promised to
// users.
func comparePermanent(t *testing.T, name, got string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join("testdata", name)); *record && os.IsNotExist(err) {
		write(t, name, got)
	}
	same(t, name, got)
}

func write(t *testing.T, name, got string) {
	t.Helper()
	succeeds(t, os.WriteFile(filepath.Join("testdata", name), []byte(got), 0o644))
}

func same(t *testing.T, name, got string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	succeeds(t, err)
	want := string(b)
	if got == want {
		return
	}
	t.Errorf("%s has changed:\n%s", name, difference(want, got))
}

// difference shows the lines between the equal beginnings and the equal ends of two texts.
func difference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	from := 0
	for from < min(len(w), len(g)) && w[from] == g[from] {
		from++
	}
	for len(w) > from && len(g) > from && w[len(w)-1] == g[len(g)-1] {
		w, g = w[:len(w)-1], g[:len(g)-1]
	}
	const most = 40
	w, g = w[from:min(len(w), from+most)], g[from:min(len(g), from+most)]
	return fmt.Sprintf("from line %d, recorded\n%s\n\nand now\n%s", from+1,
		strings.Join(w, "\n"), strings.Join(g, "\n"))
}

func TestADifferenceIsShownWithItsLine(t *testing.T) {
	const want = "from line 2, recorded\nb\n\nand now\nx\ny"
	if got := difference("a\nb\nc", "a\nx\ny\nc"); got != want {
		t.Error(got)
	}
}

var (
	commandLine = regexp.MustCompile(`(?m)^  ([a-z-]+) +`)
	flagLine    = regexp.MustCompile(`(?m)^ +(?:-[a-z], )?(--[a-z0-9-]+)( [a-z]+)? {2,}`)
	defaultText = regexp.MustCompile(`\(default (.*)\)`)
	exitCode    = regexp.MustCompile(`(?m)^ +([0-9]+)  `)
)

func TestCommandsAndTheirFlagsAreThoseRecorded(t *testing.T) {
	s := exchangetest.New(t, "pebble:"+t.TempDir())
	var list strings.Builder
	var visit func(path ...string)
	visit = func(path ...string) {
		help, errOut, code := s.Command(append(slices.Clone(path), "--help")...)
		if code != 0 {
			t.Fatalf("%q: %d %s", path, code, errOut)
		}
		about, rest, _ := strings.Cut(help, "\nUsage:\n")
		for _, m := range exitCode.FindAllStringSubmatch(about, -1) {
			fmt.Fprintf(&list, "exit code %s\n", m[1])
		}
		commands, flags, found := strings.Cut(rest, "\nFlags:\n")
		if !found {
			t.Fatalf("%q: this is no help: %s", path, help)
		}
		usage, commands, _ := strings.Cut(commands, "\nAvailable Commands:\n")
		for line := range strings.Lines(usage) {
			fmt.Fprintf(&list, "%s\n", strings.TrimSpace(line))
		}
		if len(path) > 0 {
			flags, _, _ = strings.Cut(flags, "\nGlobal Flags:\n")
		}
		for _, line := range flagLines(flags) {
			fmt.Fprintf(&list, "    %s\n", line)
		}
		for _, m := range commandLine.FindAllStringSubmatch(commands, -1) {
			if m[1] != "help" {
				visit(append(slices.Clone(path), m[1])...)
			}
		}
	}
	visit()
	compare(t, "commands.txt", list.String())
}

// flagLines returns the flags of a help text: name, type and default.
func flagLines(text string) (list []string) {
	at := flagLine.FindAllStringSubmatchIndex(text, -1)
	for i, m := range at {
		end := len(text)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		line := text[m[2]:m[3]]
		if m[4] >= 0 {
			line += text[m[4]:m[5]]
		}
		if d := defaultText.FindString(text[m[1]:end]); d != "" {
			line += " " + d
		}
		list = append(list, line)
	}
	return list
}

var (
	optionLine = regexp.MustCompile(`^ *#?[a-z_]+:`)
	variable   = regexp.MustCompile(`EXCHANGE_[A-Z_]+`)
)

func TestOptionsAndVariablesAreThoseRecorded(t *testing.T) {
	s := exchangetest.New(t, "pebble:"+t.TempDir())
	text, errOut, code := s.Command("config", "example")
	if code != 0 {
		t.Fatal(code, errOut)
	}
	var list strings.Builder
	for line := range strings.Lines(text) {
		if optionLine.MatchString(line) {
			list.WriteString(line)
		}
	}
	help, _, _ := s.Command("config", "--help")
	names := variable.FindAllString(text+help, -1)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		fmt.Fprintln(&list, name)
	}
	compare(t, "configuration.txt", list.String())
}

// ofPebble matches the files that Pebble itself creates: they differ each time.
var ofPebble = regexp.MustCompile(`^(MANIFEST-|OPTIONS-|marker\.)|\.(sst|log)$`)

// files lists a folder with all below it, by names in which each run of digits is N.
func files(t *testing.T, folder string) string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if ofPebble.MatchString(name) {
			return err
		}
		if e.IsDir() {
			name += "/"
		}
		names = append(names, digits.ReplaceAllString(name, "N"))
		return err
	})
	succeeds(t, err)
	slices.Sort(names)
	return strings.Join(slices.Compact(names), "\n") + "\n"
}

var digits = regexp.MustCompile(`[0-9]+`)

// indented returns a JSON document with one value a line.
func indented(t *testing.T, text []byte) string {
	t.Helper()
	var v any
	succeeds(t, json.Unmarshal(text, &v))
	b, err := json.MarshalIndent(v, "", " ")
	succeeds(t, err)
	return string(b) + "\n"
}

// succeeds requires that there are no errors.
func succeeds(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
