package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Each line of docs/security.md marked as proved names at least one existing test, in the package
// that the line names.
func TestTheSecurityPageNamesTestsThatThereAre(t *testing.T) {
	text := must(os.ReadFile("../../docs/security.md"))
	page, defined := string(text), testsByName(t)
	test := regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9]+)`")
	named := test.FindAllStringSubmatch(page, -1)
	if len(named) < 90 {
		t.Errorf("%d tests are named: is the page read rightly?", len(named))
	}
	for _, m := range named {
		if defined[m[1]] == nil {
			t.Errorf("there is no %s", m[1])
		}
	}

	// A line names tests, followed by their package: (gateway), (prove/processes: how). Those of
	// prove/pages have sentences as names.
	part := regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9]+)`|\\(([a-z/]+)[:)]|`([^`]+)`")
	browser := testsOfPages(t)
	lines := 0
	_, attacks, _ := strings.Cut(page, "\n## Attackers")
	attacks, _, _ = strings.Cut(attacks, "\n## What is not defended")
	for line := range strings.Lines(attacks) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| attack |") ||
			strings.HasPrefix(line, "| certificate |") {
			continue
		}
		lines++
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		var waiting, sentences []string
		tests := 0
		for _, m := range part.FindAllStringSubmatch(cells[len(cells)-1], -1) {
			switch {
			case m[1] != "":
				tests++
				waiting = append(waiting, m[1])
				continue
			case m[3] != "":
				sentences = append(sentences, m[3])
				continue
			case m[2] == "prove/pages":
				for _, name := range sentences {
					if tests++; !strings.Contains(browser, strconv.Quote(name)) {
						t.Errorf("prove/pages has no test %q", name)
					}
				}
			}
			sentences = nil
			for _, name := range waiting {
				if !slices.ContainsFunc(defined[name], func(folder string) bool {
					return folder == m[2] || strings.HasSuffix(folder, "/"+m[2])
				}) {
					t.Errorf("%s is in %q, not in %s", name, defined[name], m[2])
				}
			}
			waiting = nil
		}
		if tests == 0 || len(waiting) > 0 {
			t.Errorf("%d tests, %q without their package: %s", tests, waiting, line)
		}
	}
	if lines < 40 {
		t.Errorf("%d lines were found", lines)
	}
}

// testsOfPages returns the text of the tests of the pages.
func testsOfPages(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob("../../prove/pages/*.test.mjs")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files of prove/pages, %v", len(files), err)
	}
	var all strings.Builder
	for _, name := range files {
		text := must(os.ReadFile(name))
		all.Write(text)
	}
	return all.String()
}

// testsByName returns the folders that have a test or a fuzz target, by its name.
func testsByName(t *testing.T) map[string][]string {
	t.Helper()
	defined := map[string][]string{}
	definition := regexp.MustCompile(
		`(?m)^func ((?:Test|Fuzz)[A-Za-z0-9]+)\([tf] \*testing\.[TF]\)`)
	err := filepath.WalkDir("../..", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".git") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(name, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(name)
		for _, m := range definition.FindAllStringSubmatch(string(text), -1) {
			folder := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(name)), "../../")
			defined[m[1]] = append(defined[m[1]], folder)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return defined
}

// The part of protoactor that exchanges messages with other processes is not linked into the
// program.
func TestNoActorIsReachedFromOutside(t *testing.T) {
	imports := regexp.MustCompile(`"github\.com/asynkron/protoactor-go/([^"]+)"`)
	found := 0
	err := filepath.WalkDir("../..", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".git") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		text, err := os.ReadFile(name)
		for _, m := range imports.FindAllStringSubmatch(string(text), -1) {
			if found++; m[1] != "actor" {
				t.Errorf("%s imports %s", name, m[0])
			}
		}
		return err
	})
	if err != nil || found == 0 {
		t.Fatal(found, err)
	}
}
