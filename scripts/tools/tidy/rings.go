package main

import (
	_ "embed"
	"fmt"
	"go/ast"
	"go/types"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// listeners.txt names the packages whose tests may listen in the gate, each with its reason.
//
//go:embed listeners.txt
var listenersText string

// real are the functions by which a test sleeps, waits for the real clock, starts a process,
// listens or connects, by package, or by a type of one. They are found where code names them: a
// call through a method of an interface, of the standard library or of a package's own, is out of
// reach, and so is a loop that polls the time.
var real = map[string][]string{
	"time":           {"Sleep", "After", "NewTimer", "NewTicker", "Tick", "AfterFunc"},
	"context":        {"WithTimeout", "WithTimeoutCause", "WithDeadline", "WithDeadlineCause"},
	"os":             {"StartProcess"},
	"syscall":        {"ForkExec", "StartProcess", "Exec"},
	"os/exec":        {"Command", "CommandContext"},
	"(*os/exec.Cmd)": {"Run", "Start", "Output", "CombinedOutput"},
	"net": {"Listen", "ListenTCP", "ListenUDP", "ListenUnix", "ListenUnixgram", "ListenIP",
		"ListenMulticastUDP", "ListenPacket", "FileListener", "FilePacketConn", "Dial",
		"DialTimeout", "DialTCP", "DialUDP", "DialUnix", "DialIP"},
	"(*net.ListenConfig)":  {"Listen", "ListenPacket"},
	"(*net.Dialer)":        {"Dial", "DialContext", "DialTCP", "DialUDP", "DialUnix", "DialIP"},
	"crypto/tls":           {"Listen", "Dial", "DialWithDialer"},
	"(*crypto/tls.Dialer)": {"Dial", "DialContext"},
	"net/http":             {"ListenAndServe", "ListenAndServeTLS"},
	"(*net/http.Server)":   {"ListenAndServe", "ListenAndServeTLS"},
	"net/http/httptest":    {"NewServer", "NewTLSServer", "NewUnstartedServer"},
}

// A ringCheck follows the tests of the gate through the code that only tests use, and finds those
// that reach a function of real. Code in a bubble of testing/synctest has no real clock: functions
// that are passed to synctest.Test, or to a helper that passes its own there, may use time and
// context. Tests of make prove alone have the build tag prove, and are not here.
type ringCheck struct {
	root      string
	listeners map[string]bool
	calls     map[string][]call // by the calling function
	bubbles   map[string]bool   // functions whose function arguments run in a bubble
	tests     map[string]finding
}

// A call is a use of a function by another one.
type call struct {
	to     string
	bubble bool // it runs in a bubble
}

func newRingCheck(root, listeners string) (*ringCheck, error) {
	c := &ringCheck{root: root, listeners: map[string]bool{}, calls: map[string][]call{},
		bubbles: map[string]bool{"testing/synctest.Test": true}, tests: map[string]finding{}}
	for i, line := range strings.Split(strings.TrimSpace(listeners), "\n") {
		pkg, reason, _ := strings.Cut(line, ": ")
		if line != "" && reason == "" {
			return nil, fmt.Errorf("listeners.txt:%d: want \"package: reason\"", i+1)
		}
		c.listeners[pkg] = true
	}
	return c, nil
}

// add records the calls of the tests, and of packages that only tests use, in one build.
func (c *ringCheck) add(loaded []*packages.Package) {
	for len(c.bubbles) > 0 { // until no more helpers are found
		n := len(c.bubbles)
		c.calls = map[string][]call{}
		for _, p := range loaded {
			if p.Module != nil {
				c.addPackage(p)
			}
		}
		if len(c.bubbles) == n {
			return
		}
	}
}

func (c *ringCheck) addPackage(p *packages.Package) {
	helper := importsTesting(p)
	for _, f := range p.Syntax {
		name := fileOf(p.Fset, f.Pos())
		test := strings.HasSuffix(name, "_test.go")
		if !test && !helper && filepath.Base(name) != "testing.go" {
			continue
		}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				o, ok := p.TypesInfo.Defs[d.Name].(*types.Func)
				if !ok || d.Body == nil {
					continue
				}
				if test && d.Recv == nil && isTest(d.Name.Name) {
					c.tests[o.FullName()] = finding{relative(c.root, name),
						p.Fset.Position(d.Pos()).Line, ownPath(p)}
				}
				c.body(p, o.FullName(), d.Body, false)
			case *ast.GenDecl:
				c.variables(p, d)
			}
		}
	}
}

func isTest(name string) bool {
	return strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Fuzz") ||
		strings.HasPrefix(name, "Example")
}

// variables records calls in the values of variables: users of the variable may call them.
func (c *ringCheck) variables(p *packages.Package, d *ast.GenDecl) {
	for _, s := range d.Specs {
		if v, ok := s.(*ast.ValueSpec); ok {
			for _, n := range v.Names {
				for _, x := range v.Values {
					if o := p.TypesInfo.Defs[n]; o != nil && o.Pkg() != nil {
						c.body(p, o.Pkg().Path()+"."+o.Name(), x, false)
					}
				}
			}
		}
	}
}

// body records the functions and variables that a piece of code uses.
func (c *ringCheck) body(p *packages.Package, from string, code ast.Node, bubble bool) {
	ast.Inspect(code, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			to := c.used(p, funcIdent(n.Fun))
			if !c.bubbles[to] || bubble {
				return true
			}
			c.body(p, from, n.Fun, false)
			for _, a := range n.Args {
				_, function := p.TypesInfo.TypeOf(a).Underlying().(*types.Signature)
				if function && c.passesOn(p, a) {
					c.bubbles[from] = true
				}
				c.body(p, from, a, function)
			}
			return false
		case *ast.Ident:
			if to := c.used(p, n); to != "" && to != from {
				c.calls[from] = append(c.calls[from], call{to, bubble})
			}
		}
		return true
	})
}

// passesOn reports whether the function that goes into a bubble is, or calls, a function parameter
// of its own function: a variable of a function's type.
func (c *ringCheck) passesOn(p *packages.Package, arg ast.Expr) (passes bool) {
	ast.Inspect(arg, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			if v, ok := p.TypesInfo.Uses[id].(*types.Var); ok && !v.IsField() &&
				v.Parent() != p.Types.Scope() && !within(arg, v) {
				if _, ok := v.Type().Underlying().(*types.Signature); ok {
					passes = true
				}
			}
		}
		return true
	})
	return passes
}

func within(n ast.Node, o types.Object) bool { return n.Pos() <= o.Pos() && o.Pos() < n.End() }

func funcIdent(x ast.Expr) *ast.Ident {
	switch x := x.(type) {
	case *ast.Ident:
		return x
	case *ast.SelectorExpr:
		return x.Sel
	case *ast.IndexExpr:
		return funcIdent(x.X)
	case *ast.IndexListExpr:
		return funcIdent(x.X)
	}
	return nil
}

// used is the name of the function, or of the package variable, of an identifier.
func (c *ringCheck) used(p *packages.Package, id *ast.Ident) string {
	if id == nil {
		return ""
	}
	switch o := p.TypesInfo.Uses[id].(type) {
	case *types.Func:
		return o.Origin().FullName()
	case *types.Var:
		if o.Pkg() != nil && o.Parent() == o.Pkg().Scope() {
			return o.Pkg().Path() + "." + o.Name()
		}
	}
	return ""
}

// findings are the tests of the gate that reach a real clock, a process or a listener, with the
// path to it.
func (c *ringCheck) findings() (list []finding) {
	for test, at := range c.tests {
		module, folder, _ := strings.Cut(at.text, "/")
		way := c.reach(test, c.listeners[folder])
		if way != nil {
			for i := range way {
				way[i] = strings.TrimPrefix(way[i][strings.LastIndex(way[i], "/")+1:], module)
			}
			at.text = strings.Join(way, " -> ") + ": a test of the gate has no real clock, " +
				"process or listener"
			list = append(list, at)
		}
	}
	return list
}

// reach returns the shortest path from a test to a function of real.
func (c *ringCheck) reach(test string, listens bool) []string {
	type node struct {
		name   string
		bubble bool
	}
	came := map[node]node{}
	start := node{test, false}
	for queue := []node{start}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		for _, next := range c.calls[at.name] {
			to := node{next.to, at.bubble || next.bubble}
			if _, seen := came[to]; seen || to == start {
				continue
			}
			came[to] = at
			if isReal(to.name, to.bubble, listens) {
				way := []string{to.name}
				for at := at; ; at = came[at] {
					way = append(way, at.name)
					if at == start {
						slices.Reverse(way)
						return way
					}
				}
			}
			queue = append(queue, to)
		}
	}
	return nil
}

func isReal(name string, bubble, listens bool) bool {
	at := strings.LastIndex(name, ".")
	pkg := name[:max(at, 0)]
	switch {
	case !slices.Contains(real[pkg], name[at+1:]):
		return false
	case bubble && (pkg == "time" || pkg == "context"):
		return false
	default:
		return !listens || !strings.Contains(pkg, "net") && !strings.Contains(pkg, "crypto/tls")
	}
}
