package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"

	"golang.org/x/tools/go/packages"
)

// A build is one build target of the code. The files of all builds together are all files.
type build struct {
	system string
	tags   string
}

// builds are those of the project. Errors of types count in the first alone: some tests and tools
// are for Linux only.
var builds = []build{
	{"linux", ""}, {"linux", "prove,race,clockjump"}, {"darwin", ""}, {"freebsd", ""},
	{"windows", ""},
}

// load returns the packages of the module in a folder, tests included, with syntax and types.
func load(dir string, b build, patterns ...string) ([]*packages.Package, error) {
	list, err := packages.Load(&packages.Config{
		Mode:       packages.LoadAllSyntax | packages.NeedModule,
		Dir:        dir,
		Tests:      true,
		BuildFlags: []string{"-tags=" + b.tags},
		Env:        append(os.Environ(), "GOOS="+b.system, "CGO_ENABLED=0"),
		ParseFile: func(fset *token.FileSet, name string, text []byte) (*ast.File, error) {
			made := !strings.HasSuffix(name, ".go") // by go test: the main of a package's tests
			return parse(fset, name, text,
				made || strings.HasPrefix(name, dir+string(os.PathSeparator)))
		},
	}, patterns...)
	if err != nil {
		return nil, err
	}
	if b == builds[0] {
		for _, p := range list {
			for _, e := range p.Errors {
				err = errors.Join(err, e)
			}
		}
	}
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("%s has no packages", dir)
	}
	return list, err
}

// parse reads a file. Of a file outside the module it keeps the declarations alone, because reading
// the bodies of all imported functions takes most of the time.
func parse(fset *token.FileSet, name string, text []byte, own bool) (*ast.File, error) {
	mode := parser.AllErrors | parser.SkipObjectResolution
	if own {
		return parser.ParseFile(fset, name, text, mode|parser.ParseComments)
	}
	file, err := parser.ParseFile(fset, name, text, mode)
	if file != nil {
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				f.Body = nil
			}
		}
	}
	return file, err
}

// ownPath is the path of a package as other packages import it: in a list the tests of a package
// have a path of their own, which begins with it.
func ownPath(p *packages.Package) string {
	path, _, _ := strings.Cut(p.PkgPath, " ")
	return strings.TrimSuffix(path, ".test")
}
