package main

import (
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// secretName matches the names of values that must not leak bit by bit through the time of a
// comparison.
var secretName = regexp.MustCompile(
	`(?i)(signature|\bsign\b|\bmac\b|\bsum\b|token|secret|password|bearer|\bcode\b|codes\b|sealed|\bhash\b)`)

// comparers are functions that stop at the first difference.
var comparers = map[string]bool{"bytes.Equal": true, "bytes.Compare": true, "bytes.EqualFold": true,
	"bytes.HasPrefix": true, "strings.EqualFold": true, "strings.Compare": true,
	"strings.HasPrefix": true, "slices.Equal": true, "slices.Compare": true,
	"slices.Contains": true, "slices.Index": true, "reflect.DeepEqual": true, "cmp.Compare": true,
	"maps.Equal": true}

// harmless are comparisons that look like one of a secret and are not.
var harmless = map[string]string{
	"p.Base != first.Code":                                  "a currency's code",
	"p.Quote != second.Code":                                "a currency's code",
	"c.currencies[i].Code == string(code)":                  "a currency's code",
	"sum != c.Withdrawn":                                    "an amount",
	"left[len(left)-1].sum != sum":                          "the checksum of a row",
	"r.sum != sum":                                          "the checksum of a row",
	"sealed[0] != version":                                  "the version of what is sealed",
	"k.SealedBy == sealer.ID()":                             "the id of a key, which is in the log",
	"c.OperatorTokenFile == c.usualFile(OperatorTokenName)": "the name of a file",
	"c.SecretKeyFile == c.usualKeyFile()":                   "the name of a file",
	"filepath.Clean(v.c.OperatorTokenFile) == filepath.Clean(v.c.SecretKeyFile)": "names of files",
	"switch a.SecretKey":                            "whether it is there",
	`(o.Username == "") != (o.Password == "")`:      "whether there is one",
	"(x.passed.Signature != nil) != x.passed.gated": "whether there is one",
	"(nonce == 0) != (login || s.Signature == nil)": "whether there is one",
	"token != r.token": "the operator's own two tokens, which nobody " +
		"else can have compared",
}

// Signatures, tokens, codes and passwords are compared by crypto/subtle or crypto/hmac alone. The
// test covers the packages that handle any of them.
func TestSecretsAreComparedInConstantTime(t *testing.T) {
	files, constant := 0, map[string]bool{}
	for _, folder := range []string{"../../gateway", "../../gateway/sign", "../../gateway/params",
		"../../actors", "../../actors/seal", "../../config", ".", "../../mail"} {
		matches := must(filepath.Glob(filepath.Join(folder, "*.go")))
		for _, name := range matches {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			files++
			set := token.NewFileSet()
			file := must(parser.ParseFile(set, name, nil, 0))
			for _, found := range comparisons(set, file) {
				if harmless[found.text] == "" {
					t.Errorf("%s: %s: compare it by crypto/subtle, or say why it is no secret",
						found.at, found.text)
				}
			}
			for _, call := range calls(file, "subtle.ConstantTimeCompare", "hmac.Equal") {
				constant[call+" in "+filepath.Base(filepath.Dir(name))] = true
			}
		}
	}
	if files < 50 || len(constant) < 3 {
		t.Errorf("%d files were read, and %v found: is the source read rightly?", files, constant)
	}
	// Without these a broken search would find nothing.
	for statement, want := range map[string]int{
		"return token == given": 1, "return bytes.Equal(signature, want)": 1,
		"return string(header) != opts.OperatorToken": 1, "return given == s.code(1, 2)": 1,
		"switch password { case x: return true }; return false": 1,
		"return slices.Contains(tokens, token)":                 1,
		"return subtle.ConstantTimeCompare(token, given) == 1":  0,
		`return token == ""`:                                    0, "return secret == nil": 0, "return a == b": 0,
	} {
		set := token.NewFileSet()
		file := must(parser.ParseFile(set, "x.go",
			"package x\nfunc f() bool { "+statement+" }", 0))
		if found := comparisons(set, file); len(found) != want {
			t.Errorf("%s: found are %v", statement, found)
		}
	}
}

type comparison struct{ at, text string }

func comparisons(set *token.FileSet, file *ast.File) (found []comparison) {
	add := func(n ast.Node, operands ...ast.Expr) {
		for _, o := range operands {
			text := source(set, o)
			switch {
			case text == "nil" || text == `""` || text == "0" || text == "true" ||
				text == "false" || strings.HasPrefix(text, "len(") || isLiteral(o):
				return // whether it is empty, or which of a few
			}
		}
		for _, o := range operands {
			if secretName.MatchString(source(set, o)) {
				found = append(found, comparison{set.Position(n.Pos()).String(), source(set, n)})
				return
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if n.Op == token.EQL || n.Op == token.NEQ {
				add(n, n.X, n.Y)
			}
		case *ast.CallExpr:
			if comparers[source(set, n.Fun)] {
				add(n, n.Args...)
			}
		case *ast.SwitchStmt:
			if n.Tag != nil && secretName.MatchString(source(set, n.Tag)) {
				found = append(found, comparison{set.Position(n.Pos()).String(),
					"switch " + source(set, n.Tag)})
			}
		}
		return true
	})
	return found
}

func isLiteral(e ast.Expr) bool { _, ok := e.(*ast.BasicLit); return ok }

func calls(file *ast.File, names ...string) (found []string) {
	ast.Inspect(file, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if f, ok := call.Fun.(*ast.SelectorExpr); ok {
				for _, name := range names {
					if fmt.Sprint(f.X)+"."+f.Sel.Name == name {
						found = append(found, name)
					}
				}
			}
		}
		return true
	})
	return found
}

func source(set *token.FileSet, n ast.Node) string {
	var b strings.Builder
	if err := format.Node(&b, set, n); err != nil {
		return err.Error()
	}
	return b.String()
}
