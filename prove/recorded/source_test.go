//go:build prove

package recorded

import (
	"crypto/sha256"
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// A source holds the parts of the repository's Go files that the tests search, without tests and
// tools.
type source struct {
	texts []string            // each constant text, concatenations joined
	logs  map[string][]string // the attributes of each log call, by its constant message
}

func readSource(t *testing.T) *source {
	t.Helper()
	s := &source{logs: map[string][]string{}}
	visitFiles(t, func(path string) {
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		succeeds(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			if e, ok := n.(ast.Expr); ok {
				if text, ok := constantText(e); ok {
					s.texts = append(s.texts, text)
					return false
				}
			}
			if c, ok := n.(*ast.CallExpr); ok {
				s.addLog(c)
			}
			return true
		})
	})
	return s
}

// visitFiles visits the files of the repository, without the scripts' tools and third-party
// packages.
func visitFiles(t *testing.T, visit func(path string)) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := e.Name()
		if e.IsDir() && (name == "node_modules" || name == ".git" || path == root+"/scripts") {
			return filepath.SkipDir
		}
		if !e.IsDir() {
			visit(path)
		}
		return nil
	})
	succeeds(t, err)
}

// addLog adds a log call with a constant message.
func (s *source) addLog(c *ast.CallExpr) {
	f, ok := c.Fun.(*ast.SelectorExpr)
	if !ok || len(c.Args) == 0 ||
		!slices.Contains([]string{"Debug", "Info", "Warn", "Error"}, f.Sel.Name) {
		return
	}
	message, ok := constantText(c.Args[0])
	if !ok {
		return
	}
	names := []string{strings.ToUpper(f.Sel.Name)}
	for i := 1; i < len(c.Args); i += 2 {
		if name, ok := constantText(c.Args[i]); ok {
			names = append(names, name)
		}
	}
	s.logs[message] = names
}

// constantText returns the value of a constant text, in one piece or concatenated.
func constantText(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			return constant.StringVal(constant.MakeFromLiteral(e.Value, e.Kind, 0)), true
		}
	case *ast.ParenExpr:
		return constantText(e.X)
	case *ast.BinaryExpr:
		x, ok := constantText(e.X)
		y, also := constantText(e.Y)
		return x + y, e.Op == token.ADD && ok && also
	}
	return "", false
}

// Each line of source.txt is a text as Go quotes it, which some text of the source must contain.
// The line of a log message continues with the call's level and attributes.
func TestTextsThatOthersLookForAreInTheSource(t *testing.T) {
	s := readSource(t)
	b, err := os.ReadFile(filepath.Join("testdata", "source.txt"))
	succeeds(t, err)
	var list strings.Builder
	n := 0
	for line := range strings.Lines(string(b)) {
		if strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" {
			list.WriteString(line)
			continue
		}
		n++
		text, _, _ := strings.Cut(line, "\t")
		unquoted := constant.StringVal(constant.MakeFromLiteral(strings.TrimSpace(text),
			token.STRING, 0))
		list.WriteString(s.line(unquoted))
	}
	if n < 50 || len(s.logs) < 50 || len(s.texts) < 3000 {
		t.Errorf("%d texts are searched among %d texts and %d logs", n, len(s.texts), len(s.logs))
	}
	compare(t, "source.txt", list.String())
}

// line returns the line of a text in source.txt.
func (s *source) line(text string) string {
	if !slices.ContainsFunc(s.texts, func(t string) bool { return strings.Contains(t, text) }) {
		return fmt.Sprintf("%q is in no text of the source\n", text)
	}
	var messages []string
	for m := range s.logs {
		if strings.Contains(m, text) {
			messages = append(messages, m)
		}
	}
	slices.Sort(messages)
	var line strings.Builder
	fmt.Fprintf(&line, "%q", text)
	for _, m := range messages {
		fmt.Fprintf(&line, "\t%s", strings.Join(s.logs[m], " "))
	}
	return line.String() + "\n"
}

func TestScriptsOfRedisAreThoseRecorded(t *testing.T) {
	var list []string
	visitFiles(t, func(path string) {
		if filepath.Ext(path) != ".lua" {
			return
		}
		b, err := os.ReadFile(path)
		succeeds(t, err)
		list = append(list, fmt.Sprintf("%s %x", filepath.Base(path), sha256.Sum256(b)))
	})
	slices.Sort(list)
	compare(t, "scripts.txt", strings.Join(list, "\n")+"\n")
}
