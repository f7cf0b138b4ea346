package main

import (
	"cmp"
	_ "embed"
	"fmt"
	"go/ast"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

//go:embed words.txt
var wordsText string

// A dialect is the list of words that are not the field's.
type dialect []struct {
	pattern *regexp.Regexp
	write   string
}

var dialectWords = parseDialect(wordsText)

func parseDialect(text string) (d dialect) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		pattern, write, _ := strings.Cut(line, " = ")
		d = append(d, struct {
			pattern *regexp.Regexp
			write   string
		}{regexp.MustCompile("(?i)" + pattern), write})
	}
	return d
}

// find finds the lines of a file that have one of the words.
func (d dialect) find(name, text string) (list []finding) {
	for i, line := range strings.Split(text, "\n") {
		for _, x := range d {
			if m := x.pattern.FindString(line); m != "" {
				list = append(list, finding{name, i + 1,
					fmt.Sprintf("%q is not a word of the field; write: %s", m, x.write)})
			}
		}
	}
	return list
}

// mostFamilies bounds the families of names in all packages together.
const mostFamilies = 80

// tooAlike finds the families of names, if they are more than there may be.
func tooAlike(loaded []*packages.Package) (list []finding) {
	for _, p := range loaded {
		if p.ID == p.PkgPath && !strings.HasSuffix(p.ID, ".test") {
			for _, names := range families(p) {
				list = append(list, finding{strings.TrimPrefix(p.PkgPath, "exchange/"), 1,
					"names that differ only by an ending: " + names})
			}
		}
	}
	if len(list) <= mostFamilies {
		return nil
	}
	return append(list, finding{"all", 1, fmt.Sprintf("%d families of names; %d are the most",
		len(list), mostFamilies)})
}

// families are the names of one word in a package that differ only by an ending, three or more:
// take, taken, takes. A reader confuses them.
func families(p *packages.Package) (list []string) {
	of := map[string][]string{}
	add := func(names ...*ast.Ident) {
		for _, n := range names {
			if word := strings.ToLower(n.Name); word == n.Name || word[1:] == n.Name[1:] {
				of[stem(word)] = append(of[stem(word)], word)
			}
		}
	}
	for _, file := range p.Syntax {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				add(n.Name)
				return false
			case *ast.TypeSpec:
				add(n.Name)
			case *ast.ValueSpec:
				add(n.Names...)
			case *ast.StructType:
				for _, f := range n.Fields.List {
					add(f.Names...)
				}
			}
			return true
		})
	}
	for _, names := range of {
		slices.Sort(names)
		if names = slices.Compact(names); len(names) > 2 {
			list = append(list, strings.Join(names, " "))
		}
	}
	return list
}

// irregular are forms that no ending shows.
var irregular = map[string]string{"took": "take", "taken": "take", "told": "tell", "held": "hold",
	"kept": "keep", "sent": "send", "made": "make", "said": "say", "began": "begin",
	"begun": "begin", "left": "leave", "lost": "lose", "written": "write", "wrote": "write",
	"seen": "see", "saw": "see", "found": "find", "ran": "run", "known": "know", "shown": "show"}

// endings are those by which names of a family differ, the longer ones first.
var endings = []string{"ings", "ing", "ers", "er", "ies", "ied", "ed", "es", "s", "en", "e", "y",
	"i"}

// stem returns what forms of a word have in common.
func stem(word string) string {
	word = cmp.Or(irregular[word], word)
	for _, e := range endings {
		if rest, cut := strings.CutSuffix(word, e); cut && len(rest) > 2 {
			word = rest
			break
		}
	}
	if n := len(word); n > 3 && word[n-1] == word[n-2] {
		word = word[:n-1]
	}
	return strings.TrimRight(word, "ey")
}
