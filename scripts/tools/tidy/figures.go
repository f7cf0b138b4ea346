package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// figuresText is the agreed table; the command writes one with -figures.
//
//go:embed figures.txt
var figuresText string

// kinds are the purposes of lines, the columns of the table. Each line counts in one.
//
//   - product: Go that cmd/exchange links, but for loadtest
//   - tools: Go and shell of loadtest, scripts, docs, and of commands beside cmd/exchange
//   - proof: Go that only tests use, and tests
//   - other: code in other languages, of pages and their tests most of all
//   - prose: Markdown
//   - data: all other text, of other makers too
var kinds = []string{"product", "tools", "proof", "other", "prose", "data"}

// A room that grows by more than a twentieth, and by more than slackLines, is reported.
const (
	slackShare = 20
	slackLines = 50
)

// counts are the lines of each kind in one folder, or in a folder of that.
type counts map[string]int

func (r counts) lines() (sum int) {
	for _, n := range r {
		sum += n
	}
	return sum
}

// measure counts the lines of all text files by rooms: the first two folders of their names.
func measure(root string) (map[string]counts, error) {
	linked, err := linkedFolders(root)
	if err != nil {
		return nil, err
	}
	files, err := listed(root)
	if err != nil {
		return nil, err
	}
	rooms := map[string]counts{}
	for _, name := range files {
		if name == figuresFile { // it would change itself
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue
		} else if err != nil {
			return nil, err
		}
		if bytes.IndexByte(text, 0) >= 0 { // no text
			continue
		}
		folders := strings.Split(path.Dir(name), "/")
		in := strings.Join(folders[:min(2, len(folders))], "/")
		if rooms[in] == nil {
			rooms[in] = counts{}
		}
		rooms[in][kindOf(name, linked)] += bytes.Count(text, []byte{'\n'})
	}
	return rooms, nil
}

const figuresFile = "scripts/tools/tidy/figures.txt"

// linkedFolders returns the folders of the packages that cmd/exchange links.
func linkedFolders(root string) (map[string]bool, error) {
	c := exec.Command("go", "list", "-deps", "-f",
		"{{if .Module}}{{if .Module.Main}}{{.Dir}}{{end}}{{end}}", "./cmd/exchange")
	c.Dir = root
	c.Env = append(os.Environ(), "GOOS=linux", "CGO_ENABLED=0")
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	linked := map[string]bool{}
	for _, dir := range strings.Fields(string(out)) {
		in, err := filepath.Rel(root, dir)
		if err != nil {
			return nil, err
		}
		linked[filepath.ToSlash(in)] = true
	}
	return linked, nil
}

func kindOf(name string, linked map[string]bool) string {
	top, _, _ := strings.Cut(name, "/")
	isTool := slices.Contains([]string{"loadtest", "scripts", "docs"}, top) ||
		top == "cmd" && !strings.HasPrefix(name, "cmd/exchange/")
	switch ext := path.Ext(name); {
	case strings.Contains(name, "/testdata/") || strings.Contains(name, "/vendor/"):
		return "data"
	case ext == ".md":
		return "prose"
	case slices.Contains([]string{".js", ".mjs", ".css", ".html", ".lua", ".py"}, ext):
		return "other"
	case strings.HasSuffix(name, "_test.go"):
		return "proof"
	case isTool && (ext == ".go" || ext == ".sh" || ext == "" && top == "scripts"):
		return "tools"
	case ext != ".go":
		return "data"
	case linked[path.Dir(name)]:
		return "product"
	}
	return "proof"
}

// printFigures writes the table.
func printFigures(rooms map[string]counts) string {
	var b strings.Builder
	line := func(name string, r counts) {
		fmt.Fprintf(&b, "%-24s", name)
		for _, k := range kinds {
			fmt.Fprintf(&b, " %8d", r[k])
		}
		fmt.Fprintf(&b, " %8d\n", r.lines())
	}
	fmt.Fprintf(&b, "%-24s", "room")
	for _, k := range append(slices.Clone(kinds), "all") {
		fmt.Fprintf(&b, " %8s", k)
	}
	b.WriteByte('\n')
	all := counts{}
	for _, name := range slices.Sorted(maps.Keys(rooms)) {
		line(name, rooms[name])
		for k, n := range rooms[name] {
			all[k] += n
		}
	}
	line("all", all)
	return b.String()
}

// grown finds the rooms that have more lines of a kind than the table allows.
func grown(rooms map[string]counts, table string) (list []finding, err error) {
	agreed := map[string]counts{}
	for i, line := range strings.Split(strings.TrimSpace(table), "\n") {
		f := strings.Fields(line)
		if i == 0 || len(f) != len(kinds)+2 {
			continue
		}
		agreed[f[0]] = counts{}
		for k, kind := range kinds {
			n := 0
			if _, err := fmt.Sscan(f[k+1], &n); err != nil {
				return nil, fmt.Errorf("%s:%d: %w", figuresFile, i+1, err)
			}
			agreed[f[0]][kind] = n
		}
	}
	for name, r := range rooms {
		for _, kind := range kinds[:4] {
			was := agreed[name][kind]
			if r[kind] > was+max(was/slackShare, slackLines) {
				list = append(list, finding{figuresFile, 1, fmt.Sprintf("%s has %d lines of %s, "+
					"and %d were agreed on: take lines away, or write the table again "+
					"(scripts/tidy --figures) in the commit that says why", name, r[kind], kind,
					was)})
			}
		}
	}
	return list, nil
}
