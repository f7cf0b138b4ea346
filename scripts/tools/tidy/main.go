package main

import (
	"cmp"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

//go:embed arrows.txt
var arrowsText string

func main() {
	arrows := flag.Bool("arrows", false, "print how the files of packages use each other")
	figures := flag.Bool("figures", false, "print how many lines each room has of each kind")
	dir := flag.String("C", ".", "the `folder` of the module")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: tidy [-C folder] [-figures]\n"+
			"       tidy [-C folder] -arrows [package ...]")
		flag.PrintDefaults()
	}
	flag.Parse()
	root, err := filepath.Abs(*dir)
	if err == nil {
		root, err = filepath.EvalSymlinks(root)
	}
	if err != nil {
		fail(err)
	}
	if *arrows {
		printArrows(root, flag.Args())
		return
	}
	rooms, err := measure(root)
	if err != nil {
		fail(err)
	}
	if *figures {
		fmt.Print(printFigures(rooms))
		return
	}
	found := map[string][]finding{}
	found[rules[6]], err = grown(rooms, figuresText)
	err = errors.Join(err, checkFiles(root, found), checkTypes(root, arrowsText, found))
	if err != nil {
		fail(err)
	}
	if n := print(os.Stdout, found); n > 0 {
		fmt.Fprintf(os.Stderr, "tidy: %d places\n", n)
		os.Exit(1)
	}
}

// print writes the findings, and returns their number.
func print(w io.Writer, found map[string][]finding) (n int) {
	for _, rule := range rules {
		slices.SortFunc(found[rule], func(a, b finding) int {
			return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.line, b.line),
				cmp.Compare(a.text, b.text))
		})
		for _, f := range found[rule] {
			fmt.Fprintf(w, "%s:%d: %s\n", f.file, f.line, f.text)
			n++
		}
	}
	return n
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "tidy:", err)
	os.Exit(1)
}

// rules are the names of the checks, in the order of output.
var rules = []string{"wide lines", "long functions", "files that doc.go does not name",
	"imports off the list", "exported names without a use",
	"tests of the gate with a real clock, process or listener", "rooms that have grown",
	"words that are not the field's", "names that differ only by an ending"}

// checkFiles applies the rules about one file, or about the names in a folder.
func checkFiles(root string, found map[string][]finding) error {
	files, err := listed(root)
	if err != nil {
		return err
	}
	for _, name := range files {
		if err := checkFile(root, name, found); err != nil {
			return err
		}
	}
	found[rules[2]], err = unnamed(root, files)
	return err
}

// checkTypes applies the rules about the use of names between packages.
func checkTypes(root, arrows string, found map[string][]finding) error {
	list, err := parseArrows(arrows)
	if err != nil {
		return err
	}
	s, imports := newSurface(root), newImportCheck(root, list)
	rings, err := newRingCheck(root, listenersText)
	if err != nil {
		return err
	}
	var named []*packages.Package
	for _, b := range builds {
		loaded, err := load(root, b, "./...")
		if err != nil {
			return err
		}
		imports.add(loaded)
		s.add(loaded)
		if b == builds[0] {
			rings.add(loaded)
			named = loaded
		}
	}
	found[rules[3]], found[rules[4]] = imports.findings(), s.findings()
	found[rules[5]], found[rules[8]] = rings.findings(), tooAlike(named)
	return nil
}

func checkFile(root, name string, found map[string][]finding) error {
	if ext := filepath.Ext(name); ext != ".go" && ext != ".md" {
		return nil
	}
	text, err := os.ReadFile(filepath.Join(root, name))
	if os.IsNotExist(err) {
		return nil // removed, and not yet from the index
	} else if err != nil {
		return err
	}
	found[rules[0]] = append(found[rules[0]], tooWide(name, text)...)
	found[rules[7]] = append(found[rules[7]], dialectWords.find(name, string(text))...)
	if strings.HasSuffix(name, ".go") {
		long, err := tooLong(name, text)
		if err != nil {
			return err
		}
		found[rules[1]] = append(found[rules[1]], long...)
	}
	return nil
}

// listed are the files tracked by git, and new ones that it does not ignore.
func listed(root string) ([]string, error) {
	c := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard", "-z")
	c.Dir = root
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files: %w", err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"), nil
}

func printArrows(root string, patterns []string) {
	if len(patterns) == 0 {
		patterns = []string{"./..."}
	}
	loaded, err := load(root, builds[0], patterns...)
	if err != nil {
		fail(err)
	}
	for _, p := range loaded {
		if p.ID == p.PkgPath && !strings.HasSuffix(p.ID, ".test") { // else its tests are in it
			roomOf(p).print(os.Stdout, p.PkgPath)
		}
	}
}
