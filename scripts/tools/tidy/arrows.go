package main

import (
	"fmt"
	"go/token"
	"go/types"
	"io"
	"math/rand"
	"path/filepath"
	"sort"
	"strings"

	"golang.org/x/tools/go/packages"
)

// A room is the graph of the files of one package: an arrow runs from a file to each other file of
// which it uses a name. Test files are no part of it.
type room struct {
	files []string
	// the names that the file at the first index uses of that at the second
	arrows map[[2]int][]string
}

// roomOf returns the room of a package that was loaded with its syntax and types.
func roomOf(p *packages.Package) *room {
	r := &room{arrows: map[[2]int][]string{}}
	place := map[string]int{}
	for _, f := range p.Syntax {
		name := fileOf(p.Fset, f.Pos())
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		place[name] = len(r.files)
		r.files = append(r.files, filepath.Base(name))
	}
	seen := map[string]bool{}
	for id, o := range p.TypesInfo.Uses {
		if o.Pkg() != p.Types || !isName(o) {
			continue
		}
		from, ok := place[fileOf(p.Fset, id.Pos())]
		to, there := place[fileOf(p.Fset, o.Pos())]
		if !ok || !there || from == to {
			continue
		}
		if key := fmt.Sprint(from, to, id.Name); !seen[key] {
			seen[key] = true
			r.arrows[[2]int{from, to}] = append(r.arrows[[2]int{from, to}], id.Name)
		}
	}
	return r
}

// isName reports whether an object is a name of its package: one at its top, a method or a field.
func isName(o types.Object) bool {
	switch o := o.(type) {
	case *types.Var:
		return o.IsField() || o.Parent() == o.Pkg().Scope()
	case *types.Func:
		return true
	case *types.TypeName, *types.Const:
		return o.Parent() == o.Pkg().Scope()
	}
	return false
}

func fileOf(fset *token.FileSet, p token.Pos) string { return fset.Position(p).Filename }

// order returns the files so that the fewest arrows climb, from a file to one above it, as far as a
// search from many starts finds. The search is the same each time. A rule such as "the least used
// file first" lets up to twice as many arrows climb.
func (r *room) order() (order []int, climb int) {
	n := len(r.files)
	weight := make([][]int, n)
	for i := range weight {
		weight[i] = make([]int, n)
	}
	for a := range r.arrows {
		weight[a[0]][a[1]] = 1
	}
	rnd := rand.New(rand.NewSource(1))
	climb = len(r.arrows) + 1
	for range 200 {
		try := rnd.Perm(n)
		for improved := true; improved; {
			improved = false
			for _, f := range rnd.Perm(n) {
				improved = settle(try, weight, f) || improved
			}
		}
		if c := climbing(try, weight); c < climb {
			order, climb = append([]int(nil), try...), c
		}
	}
	return order, climb
}

// settle moves a file to the index at which the fewest of its arrows climb, and reports whether
// that is fewer than before.
func settle(order []int, weight [][]int, f int) bool {
	at := 0
	for order[at] != f {
		at++
	}
	best, bestAt := 0, at
	change := 0
	for i := at - 1; i >= 0; i-- { // f moves above order[i]
		change += weight[order[i]][f] - weight[f][order[i]]
		if change < best {
			best, bestAt = change, i
		}
	}
	change = 0
	for i := at + 1; i < len(order); i++ { // f moves below order[i]
		change += weight[f][order[i]] - weight[order[i]][f]
		if change < best {
			best, bestAt = change, i
		}
	}
	if best == 0 {
		return false
	}
	for ; at > bestAt; at-- {
		order[at] = order[at-1]
	}
	for ; at < bestAt; at++ {
		order[at] = order[at+1]
	}
	order[bestAt] = f
	return true
}

// climbing counts the arrows to a file before their own.
func climbing(order []int, weight [][]int) (n int) {
	for i, below := range order {
		for _, above := range order[:i] {
			n += weight[below][above]
		}
	}
	return n
}

// circles returns the groups of files that reach each other, largest first.
func (r *room) circles() (groups [][]string) {
	n := len(r.files)
	reach := make([][]bool, n)
	for i := range reach {
		reach[i] = make([]bool, n)
	}
	for a := range r.arrows {
		reach[a[0]][a[1]] = true
	}
	for k := range n {
		for i := range n {
			for j := range n {
				reach[i][j] = reach[i][j] || reach[i][k] && reach[k][j]
			}
		}
	}
	done := make([]bool, n)
	for i := range n {
		var group []string
		for j := range n {
			if !done[j] && reach[i][j] && reach[j][i] {
				group, done[j] = append(group, r.files[j]), true
			}
		}
		if len(group) > 1 {
			groups = append(groups, group)
		}
	}
	sort.SliceStable(groups, func(i, j int) bool { return len(groups[i]) > len(groups[j]) })
	return groups
}

// print writes the files in order, each with the arrows of its own that climb.
func (r *room) print(w io.Writer, name string) {
	order, climb := r.order()
	fmt.Fprintf(w, "%s: %d files, %d arrows, %d climb\n", name, len(r.files), len(r.arrows), climb)
	above := map[int]bool{}
	for _, f := range order {
		fmt.Fprintf(w, "  %s\n", r.files[f])
		for to := range r.files {
			if names := r.arrows[[2]int{f, to}]; above[to] && len(names) > 0 {
				sort.Strings(names)
				fmt.Fprintf(w, "      climbs to %s: %s\n", r.files[to], strings.Join(names, " "))
			}
		}
		above[f] = true
	}
	for _, g := range r.circles() {
		fmt.Fprintf(w, "  %d files reach each other: %s\n", len(g), strings.Join(g, " "))
	}
}
