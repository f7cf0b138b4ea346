package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"exchange/cmd/exchange/cli"
	"exchange/cmd/exchange/demomarket"
	"exchange/config"
)

// codesNotToRestart are the exit codes after which a supervisor leaves `serve` alone.
var codesNotToRestart = []int{cli.ExitUsage, cli.ExitBroken}

// pages returns the pages of the documentation, by their place.
func pages(t *testing.T) map[string]string {
	t.Helper()
	var files []string
	for folder, most := range map[string]int{"": 8, "operations": 7, "decisions": 10} {
		found, err := filepath.Glob(filepath.Join("../../docs", folder, "*.md"))
		if err != nil || len(found) < most {
			t.Fatalf("%s: %q, %v", folder, found, err)
		}
		files = append(files, found...)
	}
	all := map[string]string{}
	for _, file := range append(files, "../../README.md", "../../docs/compose.yaml",
		"../../Dockerfile") {
		text := must(os.ReadFile(file))
		all[file] = string(text)
	}
	return all
}

// parsesAs fails the test unless the words are a command of the program with its own flags.
func parsesAs(t *testing.T, where string, words []string, command string) {
	t.Helper()
	p := &cli.Program{Stdout: io.Discard, Stderr: io.Discard}
	c, rest, err := tree(p).Find(words)
	if err != nil || !c.Runnable() {
		t.Errorf("%s: `exchange %s` is no command: %v", where, strings.Join(words, " "), err)
		return
	}
	if command != "" && c.Name() != command {
		t.Errorf("%s: `exchange %s` is the command %s", where, strings.Join(words, " "), c.Name())
	}
	if err := c.ParseFlags(rest); err != nil {
		t.Errorf("%s: `exchange %s`: %v", where, strings.Join(words, " "), err)
		return
	}
	if err := c.ValidateArgs(c.Flags().Args()); err != nil {
		t.Errorf("%s: `exchange %s`: %v", where, strings.Join(words, " "), err)
	}
}

// shellWords splits a line as a shell does, up to a comment, a pipe, an output or the next command.
func shellWords(line string) []string {
	var all []string
	for _, m := range regexp.MustCompile(`'([^']*)'|"([^"]*)"|([^\s'"]+)`).FindAllStringSubmatch(
		line, -1) {
		if m[3] != "" && (strings.HasPrefix(m[3], "#") || strings.ContainsAny(m[3][:1], "|>&;")) {
			break
		}
		all = append(all, m[1]+m[2]+m[3])
	}
	return all
}

// Every documented command is one of the program, with accepted flags and arguments.
func TestCommandsOfTheDocumentationAreTakenByTheProgram(t *testing.T) {
	block := regexp.MustCompile("(?s)```sh\n(.*?)```")
	commandLine := regexp.MustCompile(
		`(?m)^#?\s*(?:docker .* /exchange|sudo .* exchange|(?:bin/)?exchange) (.*)$`)
	n := 0
	for where, text := range pages(t) {
		var parts []string
		for _, m := range block.FindAllStringSubmatch(text, -1) {
			parts = append(parts, strings.ReplaceAll(m[1], "\\\n", " "))
		}
		if !strings.HasSuffix(where, ".md") {
			parts = append(parts, text)
		}
		for _, part := range parts {
			for _, m := range commandLine.FindAllStringSubmatch(part, -1) {
				n++
				parsesAs(t, where, cli.AmountLast(shellWords(m[1])), "")
			}
		}
	}
	if n < 25 {
		t.Errorf("%d commands were found: are the pages read rightly?", n)
	}
}

// The table of exit codes is that of exit.go, and is right about a restart for each.
func TestExitCodesAreExplained(t *testing.T) {
	codes := []int{cli.ExitDone, cli.ExitUsage, cli.ExitBroken, cli.ExitUnavailable, cli.ExitFenced}
	row := regexp.MustCompile(`(?m)^\| (\d+) \| (.*?) \|(?: (.*?) \|)?$`)
	const where = "../../docs/operations/run.md"
	var listed []int
	for _, m := range row.FindAllStringSubmatch(pages(t)[where], -1) {
		var code int
		fmt.Sscan(m[1], &code)
		listed = append(listed, code)
		no := strings.HasPrefix(m[3], "no: ") || strings.HasPrefix(m[3], "not ")
		if no != slices.Contains(codesNotToRestart, code) {
			t.Errorf("%s: after %d: %q", where, code, m[3])
		}
	}
	if !slices.Equal(listed, codes) {
		t.Errorf("%s explains %d, want %d", where, listed, codes)
	}
	for _, code := range codes {
		if !strings.Contains(rootHelp, fmt.Sprintf("\n%4d  ", code)) {
			t.Errorf("the help does not explain %d", code)
		}
	}
}

// goVersion returns the least version of Go that builds the module, as 1.26.
func goVersion() string {
	file := string(must(os.ReadFile("../../go.mod")))
	return regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(file)[1]
}

// The README is right about the demo, Go and its links, and the traders' page about limits.
func TestTheReadmeIsTrue(t *testing.T) {
	text := pages(t)["../../README.md"]
	cfg := config.Demo()
	worked(t, cfg.Finish())
	l := cfg.Limits
	traders := strings.Join(strings.Fields(pages(t)["../../docs/trading.md"]), " ")
	for _, statement := range []string{
		fmt.Sprintf(
			"In a second a key may make %d private reads, an account %d orders and %d cancels,"+
				" and a client address %d public requests; %d of each may come at once.",
			l.ReadRate, l.CommandRate, l.CancelRate, l.PublicRate, l.PublicBurst),
		fmt.Sprintf("Their keys are `%s` and `%s`, and for parallel use `%s` and `%s`; the secret "+
			"of each is its name and `-secret`, as `%s`.", demomarket.Key("alice"),
			demomarket.Key("bob"),
			demomarket.ParallelKey("alice"), demomarket.ParallelKey("bob"),
			demomarket.Secret(demomarket.Key("alice"))),
		"on http://" + cfg.Listen + ",",
		"Both need Go " + goVersion() + " alone.",
	} {
		if !strings.Contains(strings.Join(strings.Fields(text), " ")+traders, statement) {
			t.Errorf("it does not say %q", statement)
		}
	}
	if bursts := []int{l.ReadBurst, l.CommandBurst, l.CancelBurst}; !slices.Equal(bursts,
		[]int{l.PublicBurst, l.PublicBurst, l.PublicBurst}) {
		t.Errorf("at once may come %d", bursts)
	}
	for _, address := range regexp.MustCompile(`http://[0-9a-z.]+:[0-9]+`).FindAllString(text, -1) {
		if address != "http://"+cfg.Listen {
			t.Errorf("its examples ask %s, the demo listens at %s", address, cfg.Listen)
		}
	}
}

// Every link of the documentation to a file of the repository leads to one, and to a heading of it.
func TestLinksOfTheDocumentationLeadToFiles(t *testing.T) {
	n, link := 0, regexp.MustCompile(`\]\(([^)#]*)(?:#([^)]+))?\)`)
	for where, text := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			n++
			file := where
			if m[1] != "" {
				file = filepath.Join(filepath.Dir(where), m[1])
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: %v", where, err)
			} else if m[2] != "" && strings.HasSuffix(file, ".md") &&
				!slices.Contains(anchors(string(must(os.ReadFile(file)))), m[2]) {
				t.Errorf("%s: %s has no heading #%s", where, file, m[2])
			}
		}
	}
	if n < 100 {
		t.Errorf("%d links were found", n)
	}
}

// anchors returns the names by which links reach the headings of a page.
func anchors(page string) (all []string) {
	page = regexp.MustCompile("(?ms)^```.*?^```").ReplaceAllString(page, "")
	left := regexp.MustCompile(`[^a-z0-9 _-]`)
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(page, -1) {
		name := left.ReplaceAllString(strings.ToLower(m[1]), "")
		all = append(all, strings.ReplaceAll(name, " ", "-"))
	}
	return all
}

// Packages of others run no code of theirs when they are installed.
func TestPackagesAreInstalledWithoutTheirScripts(t *testing.T) {
	files := must(filepath.Glob("../../scripts/*"))
	files = append(files, "../../Makefile", "../../Dockerfile", "../../README.md")
	n := 0
	for _, file := range files {
		if info, err := os.Stat(file); err != nil || info.IsDir() {
			continue
		}
		text := must(os.ReadFile(file))
		good, bad := installs(string(text))
		if n += good; len(bad) > 0 {
			t.Errorf("%s: %q", file, bad)
		}
	}
	if n == 0 {
		t.Error("scripts/test installs no packages")
	}
}

// installs counts the lines of a script that install packages without running their scripts. bad
// names the lines that may run them.
func installs(script string) (good int, bad []string) {
	for line := range strings.SplitSeq(script, "\n") {
		plain := quoted.ReplaceAllString(line, "") // text for people is no command
		switch command := installing.FindStringIndex(plain); {
		case command == nil:
		case withoutScripts.MatchString(plain[command[0]:]):
			good++
		default:
			bad = append(bad, line)
		}
	}
	return good, bad
}

var (
	quoted         = regexp.MustCompile(`"[^"]*"`)
	withoutScripts = regexp.MustCompile(`^npm (ci|install) --ignore-scripts `)
	installing     = regexp.MustCompile(`\bnpm +(ci|install|i|add)\b|\bnpx\b`)
)

// The walks of the design name files, each with what it declares: a file without a folder is beside
// the one before.
func TestWalksOfTheDesignNameWhatThereIs(t *testing.T) {
	_, walks, _ := strings.Cut(string(must(os.ReadFile("../../docs/design.md"))), "\n## Walks\n")
	walks, _, _ = strings.Cut(walks, "\n## ")
	quoted, comments := regexp.MustCompile("`([\\w./]+)`"), regexp.MustCompile(`(?m)//.*$`)
	word, folder, named := regexp.MustCompile(`^[A-Za-z]\w*$`), "", 0
	for _, stop := range regexp.MustCompile(`\n(\d+\.|\n)`).Split(walks, -1) {
		source := ""
		for _, m := range quoted.FindAllStringSubmatch(stop, -1) {
			switch name := m[1]; {
			case strings.HasSuffix(name, ".go"):
				if strings.Contains(name, "/") {
					folder = filepath.Dir(name)
				}
				file := filepath.Join("../..", folder, filepath.Base(name))
				source = comments.ReplaceAllString(string(must(os.ReadFile(file))), "")
			case source != "" && word.MatchString(name):
				if named++; !regexp.MustCompile(`\b` + name + `\b`).MatchString(source) {
					t.Errorf("a walk of the design names %s in %s, which lacks it", name, folder)
				}
			}
		}
	}
	if named < 40 {
		t.Errorf("the walks name %d things: are they read rightly?", named)
	}
}
