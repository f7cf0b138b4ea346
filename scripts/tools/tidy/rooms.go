package main

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// unnamed finds the files of each package that its doc.go does not name. A name may be a pattern,
// such as socket_*.go. A package of one file, or of doc.go and one more, names none; test files
// need not be named.
func unnamed(root string, files []string) (list []finding, err error) {
	byFolder := map[string][]string{}
	for _, f := range files {
		if strings.HasSuffix(f, ".go") && !strings.HasSuffix(f, "_test.go") {
			byFolder[path.Dir(f)] = append(byFolder[path.Dir(f)], path.Base(f))
		}
	}
	for folder, names := range byFolder {
		if len(names) < 3 && !slices.Contains(names, "testing.go") {
			continue
		}
		doc := path.Join(folder, "doc.go")
		text, err := os.ReadFile(filepath.Join(root, doc))
		if os.IsNotExist(err) {
			list = append(list, finding{folder + "/", 1,
				fmt.Sprintf("the package has %d files and no doc.go that names them", len(names))})
			continue
		} else if err != nil {
			return nil, err
		}
		words := strings.FieldsFunc(string(text),
			func(r rune) bool { return strings.ContainsRune(" \t\n,;:()", r) })
		for _, n := range names {
			if n != "doc.go" && !slices.ContainsFunc(words, func(word string) bool {
				same, _ := path.Match(strings.TrimSuffix(word, "."), n)
				return same && strings.Contains(word, ".go")
			}) {
				list = append(list, finding{doc, 1, "it does not name " + n})
			}
		}
	}
	return list, nil
}

// An arrow list says for each package which others of the module it may import. In the file a line
// has a package, "->", and those; "#" begins a comment. Imported packages stand above their
// importers.
type arrowList map[string]map[string]bool

const arrowsFile = "scripts/tools/tidy/arrows.txt"

func parseArrows(text string) (arrowList, error) {
	list := arrowList{}
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		if strings.TrimSpace(line) == "" {
			continue
		}
		from, to, ok := strings.Cut(line, "->")
		from = strings.TrimSpace(from)
		if !ok || from == "" || list[from] != nil {
			return nil,
				fmt.Errorf("arrows.txt:%d: want one line \"package -> package ...\" a package",
					i+1)
		}
		to1 := map[string]bool{}
		for _, t := range strings.Fields(to) {
			if list[t] == nil {
				return nil,
					fmt.Errorf("arrows.txt:%d: %s has no line above that of %s, which imports it",
						i+1, t, from)
			}
			to1[t] = true
		}
		list[from] = to1
	}
	return list, nil
}

// An importCheck finds imports that are not in the list, and lines of the list that no package
// needs. Tests may import all packages. Other code may import from prove/ only if it is a package
// that tests alone use: no program, and imported by none.
type importCheck struct {
	root       string
	list       arrowList
	unused     map[string]bool // "package -> package" that no build has needed
	violations map[finding]bool
	proves     map[string]finding // packages outside of prove/ that import it
	inCode     map[string]bool    // which program code imports, outside of prove/
}

func newImportCheck(root string, list arrowList) *importCheck {
	c := &importCheck{root: root, list: list, unused: map[string]bool{},
		violations: map[finding]bool{}, proves: map[string]finding{}, inCode: map[string]bool{}}
	for from, to := range list {
		for t := range to {
			c.unused[from+" -> "+t] = true
		}
	}
	return c
}

// add checks the packages of one build.
func (c *importCheck) add(loaded []*packages.Package) {
	for _, p := range loaded {
		if p.Module == nil {
			continue
		}
		from := strings.TrimPrefix(ownPath(p), p.Module.Path+"/")
		for _, f := range p.Syntax {
			name := fileOf(p.Fset, f.Pos())
			if strings.HasSuffix(name, "_test.go") || !strings.HasSuffix(name, ".go") {
				continue
			}
			for _, i := range f.Imports {
				to, own := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), p.Module.Path+"/")
				if !own {
					continue
				}
				delete(c.unused, from+" -> "+to)
				at := finding{relative(c.root, name), p.Fset.Position(i.Pos()).Line,
					fmt.Sprintf("%s may not import %s: see %s", from, to, arrowsFile)}
				if !c.list[from][to] {
					c.violations[at] = true
				}
				if strings.HasPrefix(from, "prove/") {
					continue
				}
				c.inCode[to], c.inCode[from] = true, c.inCode[from] || p.Name == "main"
				if strings.HasPrefix(to, "prove/") {
					at.text = fmt.Sprintf("%s imports %s, and is not for tests alone", from, to)
					c.proves[from] = at
				}
			}
		}
	}
}

func (c *importCheck) findings() []finding {
	list := slices.Collect(maps.Keys(c.violations))
	for from, at := range c.proves {
		if c.inCode[from] {
			list = append(list, at)
		}
	}
	for arrow := range c.unused {
		list = append(list, finding{arrowsFile, 1, "no package needs " + arrow + " any more"})
	}
	return list
}

func relative(root, name string) string {
	if r, err := filepath.Rel(root, name); err == nil {
		return filepath.ToSlash(r)
	}
	return name
}
