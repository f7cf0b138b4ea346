package main

import (
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// A surface holds the exported names of a module's packages, and their use by other packages, over
// all builds. The place of its declaration identifies a name.
type surface struct {
	root     string
	names    map[string]*exported
	keep     map[string]map[int]bool // lines of each file with kept names
	unsaid   map[finding]bool        // names for tests whose comment does not say so
	byMethod map[string][]*types.Interface
}

// exported is a name that a package exports.
type exported struct {
	file     string
	line     int
	name     string
	forTests bool     // declared in testing.go
	used     bool     // in another package
	kept     bool     // by a line with a reason
	inCode   string   // non-test code of another package that uses it; "": none
	mentions []string // types that it shows to its users, and its owner
}

func newSurface(root string) *surface {
	return &surface{root: root, names: map[string]*exported{}, keep: map[string]map[int]bool{},
		unsaid: map[finding]bool{}}
}

// add records the exports and uses of one build's packages.
func (s *surface) add(loaded []*packages.Package) {
	s.interfaces(loaded)
	for _, p := range loaded {
		if p.Module != nil {
			s.comments(p)
			s.declared(p)
		}
	}
	for _, p := range loaded {
		s.uses(p)
	}
}

// interfaces records all interfaces with methods that anything loaded declares or mentions, by the
// names of their methods: a method required by one of them is used through it.
func (s *surface) interfaces(loaded []*packages.Package) {
	s.byMethod = map[string][]*types.Interface{}
	seen := map[*types.Interface]bool{}
	note := func(t types.Type) {
		i, ok := t.Underlying().(*types.Interface)
		if !ok || seen[i] {
			return
		}
		seen[i] = true
		for m := range i.Methods() {
			s.byMethod[m.Name()] = append(s.byMethod[m.Name()], i)
		}
	}
	note(types.Universe.Lookup("error").Type())
	packages.Visit(loaded, nil, func(p *packages.Package) {
		if p.Types == nil {
			return
		}
		for _, n := range p.Types.Scope().Names() {
			if o, ok := p.Types.Scope().Lookup(n).(*types.TypeName); ok {
				note(o.Type())
			}
		}
		if p.TypesInfo != nil {
			for _, t := range p.TypesInfo.Types {
				if t.IsType() {
					note(t.Type)
				}
			}
		}
	})
}

// comments records the names that comments keep, and those of testing.go whose comment does not
// name the tests.
func (s *surface) comments(p *packages.Package) {
	for _, f := range p.Syntax {
		name := fileOf(p.Fset, f.Pos())
		if s.keep[name] != nil {
			continue
		}
		kept := map[int]bool{}
		s.keep[name] = kept
		line := func(p1 token.Pos) int { return p.Fset.Position(p1).Line }
		for _, g := range f.Comments {
			for _, c := range g.List {
				why, ok := strings.CutPrefix(c.Text, "//tidy:keep ")
				if ok && strings.TrimSpace(why) != "" {
					kept[line(c.Pos())], kept[line(g.End())+1] = true, true
				}
			}
		}
		for _, d := range f.Decls { // above a declaration it keeps all names of that
			for n := line(d.Pos()); kept[line(d.Pos())] && n <= line(d.End()); n++ {
				kept[n] = true
			}
		}
		if filepath.Base(name) == "testing.go" {
			s.forTests(p, name, f)
		}
	}
}

// forTests checks the comments of testing.go.
func (s *surface) forTests(p *packages.Package, name string, f *ast.File) {
	check := func(n *ast.Ident, docs ...*ast.CommentGroup) {
		if n.IsExported() && !slices.ContainsFunc(docs, func(g *ast.CommentGroup) bool {
			text := strings.Join(strings.Fields(g.Text()), " ")
			return strings.Contains(strings.ToLower(text), "for tests of ")
		}) {
			s.unsaid[finding{relative(s.root, name), p.Fset.Position(n.Pos()).Line,
				n.Name + `'s comment does not say "for tests of ..."`}] = true
		}
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			check(d.Name, d.Doc)
		case *ast.GenDecl:
			for _, x := range d.Specs {
				switch x := x.(type) {
				case *ast.TypeSpec:
					check(x.Name, d.Doc, x.Doc, x.Comment)
				case *ast.ValueSpec:
					for _, n := range x.Names {
						check(n, d.Doc, x.Doc, x.Comment)
					}
				}
			}
		}
	}
}

// declared records the exported names of a package: those at its top, and the methods and fields of
// its exported types.
func (s *surface) declared(p *packages.Package) {
	for _, o := range p.TypesInfo.Defs {
		if o == nil || !o.Exported() || o.Pkg() == nil || o.Parent() != o.Pkg().Scope() {
			continue
		}
		s.note(p, o, nil, false)
		t, ok := o.(*types.TypeName)
		if !ok || t.IsAlias() {
			continue
		}
		if n, ok := t.Type().(*types.Named); ok {
			for m := range n.Methods() {
				if m.Exported() {
					s.note(p, m, o, s.asked(n, m))
				}
			}
		}
		switch u := t.Type().Underlying().(type) {
		case *types.Struct:
			for i := range u.NumFields() {
				if f := u.Field(i); f.Exported() && !f.Embedded() {
					s.note(p, f, o, reflect.StructTag(u.Tag(i)) != "")
				}
			}
		case *types.Interface: // its methods are judged where types implement it
			for m := range u.ExplicitMethods() {
				if m.Exported() {
					s.note(p, m, o, true)
				}
			}
		}
	}
}

// note records a name, and the type that it belongs to. Names of tests and of commands are not for
// others.
func (s *surface) note(p *packages.Package, o, owner types.Object, used bool) {
	where := p.Fset.Position(o.Pos())
	if strings.HasSuffix(where.Filename, "_test.go") || p.Name == "main" {
		return
	}
	key := where.String()
	e := s.names[key]
	if e == nil {
		e = &exported{file: relative(s.root, where.Filename), line: where.Line, name: o.Name(),
			forTests: filepath.Base(where.Filename) == "testing.go"}
		s.names[key] = e
	}
	e.used = e.used || used
	e.kept = s.keep[where.Filename][where.Line]
	mention := func(n *types.TypeName) {
		if at := p.Fset.Position(n.Pos()).String(); !slices.Contains(e.mentions, at) {
			e.mentions = append(e.mentions, at)
		}
	}
	shown := o.Type()
	if _, isType := o.(*types.TypeName); isType {
		if _, isStruct := shown.Underlying().(*types.Struct); isStruct {
			return // its fields are names of their own
		}
		shown = shown.Underlying()
	}
	visitNamed(shown, mention, map[types.Type]bool{})
	if owner != nil && !used {
		mention(owner.(*types.TypeName))
	}
}

// visitNamed visits the named types within a type.
func visitNamed(t types.Type, visit func(*types.TypeName), seen map[types.Type]bool) {
	if seen[t] {
		return
	}
	seen[t] = true
	again := func(t types.Type) { visitNamed(t, visit, seen) }
	switch t := t.(type) {
	case *types.Named:
		visit(t.Obj())
		for a := range t.TypeArgs().Types() {
			again(a)
		}
	case *types.Alias:
		visit(t.Obj())
	case interface{ Elem() types.Type }: // pointer, slice, array, channel, map
		again(t.Elem())
		if m, ok := t.(*types.Map); ok {
			again(m.Key())
		}
	case *types.Signature:
		again(t.Params())
		again(t.Results())
	case *types.Tuple:
		for v := range t.Variables() {
			again(v.Type())
		}
	case *types.Struct:
		for f := range t.Fields() {
			again(f.Type())
		}
	case *types.Interface:
		for m := range t.ExplicitMethods() {
			again(m.Type())
		}
	}
}

// asked reports whether an interface requires a method of a type.
func (s *surface) asked(n *types.Named, m *types.Func) bool {
	return slices.ContainsFunc(s.byMethod[m.Name()], func(i *types.Interface) bool {
		return n.TypeParams().Len() > 0 || types.Implements(n, i) ||
			types.Implements(types.NewPointer(n), i)
	})
}

// uses records the names that a package uses of others.
func (s *surface) uses(p *packages.Package) {
	own := strings.TrimSuffix(ownPath(p), "_test")
	_, testing := p.Imports["testing"] // as the packages that only tests import
	for id, o := range p.TypesInfo.Uses {
		if o.Pkg() == nil || !o.Exported() || own == strings.TrimSuffix(o.Pkg().Path(), "_test") {
			continue
		}
		e := s.names[p.Fset.Position(origin(o).Pos()).String()]
		if e == nil {
			continue
		}
		e.used = true
		user := fileOf(p.Fset, id.Pos())
		if !strings.HasSuffix(user, "_test.go") && filepath.Base(user) != "testing.go" &&
			!(testing && importsTesting(p)) {
			e.inCode = relative(s.root, user)
		}
	}
}

// importsTesting reports whether a non-test file of a package imports testing, like the packages
// that only tests import.
func importsTesting(p *packages.Package) bool {
	return slices.ContainsFunc(p.Syntax, func(f *ast.File) bool {
		name := fileOf(p.Fset, f.Pos())
		return !strings.HasSuffix(name, "_test.go") && filepath.Base(name) != "testing.go" &&
			slices.ContainsFunc(f.Imports, func(i *ast.ImportSpec) bool {
				return i.Path.Value == `"testing"`
			})
	})
}

// origin is the generic object of an instance.
func origin(o types.Object) types.Object {
	switch o := o.(type) {
	case *types.Func:
		return o.Origin()
	case *types.Var:
		return o.Origin()
	}
	return o
}

// findings are the names without a use outside, and those for tests that code uses. A type is used
// where a name is that shows it, or that belongs to it.
func (s *surface) findings() (list []finding) {
	var reach func(e *exported)
	reached := map[*exported]bool{}
	reach = func(e *exported) {
		if reached[e] {
			return
		}
		reached[e] = true
		for _, m := range e.mentions {
			if t := s.names[m]; t != nil {
				t.used = true
				reach(t)
			}
		}
	}
	for _, e := range s.names {
		if e.used || e.kept {
			reach(e)
		}
	}
	for _, e := range s.names {
		switch {
		case e.forTests && e.inCode != "":
			list = append(list, finding{e.file, e.line,
				e.name + " is for tests, and " + e.inCode + " uses it"})
		case !e.used && !e.kept:
			list = append(list, finding{e.file, e.line,
				e.name + " is exported, and no other package uses it"})
		}
	}
	for f := range s.unsaid {
		list = append(list, f)
	}
	return list
}
