package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
)

// mostLines is the length of a function, its first and last line included.
const mostLines = 70

// tooLong finds the functions of a file that are too long. In a test the longest table, a literal
// of a slice, an array or a map, does not count.
func tooLong(name string, text []byte) (list []finding, err error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
	if err != nil || isGenerated(text) {
		return nil, err
	}
	line := func(p token.Pos) int { return fset.Position(p).Line }
	check := func(called string, from token.Pos, body *ast.BlockStmt) {
		n := line(body.End()) - line(from) + 1
		if strings.HasSuffix(name, "_test.go") {
			n -= longestTable(body, line)
		}
		if n > mostLines {
			list = append(list, finding{name, line(from),
				fmt.Sprintf("%s is %d lines long; 70 are the most", called, n)})
		}
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Body != nil {
				check(d.Name.Name, d.Type.Func, d.Body)
			}
		case *ast.GenDecl:
			ast.Inspect(d, func(n ast.Node) bool {
				f, ok := n.(*ast.FuncLit)
				if ok {
					check("a function", f.Pos(), f.Body)
				}
				return !ok
			})
		}
	}
	return list, nil
}

func longestTable(body ast.Node, line func(token.Pos) int) (most int) {
	ast.Inspect(body, func(n ast.Node) bool {
		if l, ok := n.(*ast.CompositeLit); ok {
			switch l.Type.(type) {
			case *ast.ArrayType, *ast.MapType:
				most = max(most, line(l.End())-line(l.Pos()))
			}
		}
		return true
	})
	return most
}
