package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// setUp matches the output of a test whose set-up failed: a port that another process took
// meanwhile, or a redis-server that did not start.
var setUp = regexp.MustCompile(`address already in use|no free port was found|` +
	`redis-server ended at start|redis-server did not answer`)

func topLevel(name string) string {
	name, _, _ = strings.Cut(name, "/")
	return name
}

// smoke runs the tests of a list, each line a package and the name of a test. A test whose set-up
// failed is run once more; a missing test fails.
func (r *reporter) smoke(list []string) error {
	var packages, names []string
	wanted := map[test]bool{}
	for _, line := range list {
		pkg, name, _ := strings.Cut(line, " ")
		wanted[test{"exchange/" + pkg, name}] = true
		names = append(names, name)
		if path := "./" + pkg; !slices.Contains(packages, path) {
			packages = append(packages, path)
		}
	}
	if err := r.named(names, packages...); err != nil {
		return err
	}
	for _, t := range slices.Compact(r.unlucky) {
		r.forget(t)
		fmt.Fprintf(r.out, "UNLUCKY %s %s\n", t.pkg, t.name)
		if err := r.named([]string{t.name}, t.pkg); err != nil {
			return err
		}
	}
	for t := range wanted {
		if !r.passes[t] && !slices.Contains(r.failed, t.pkg+" "+t.name) {
			r.failed = append(r.failed, fmt.Sprintf("%s has no %s", t.pkg, t.name))
		}
	}
	return nil
}

func (r *reporter) named(names []string, packages ...string) error {
	return r.goTest(nil, append([]string{"-tags=prove", "-count=1", "-p=2", "-timeout=10m", "-run",
		"^(" + strings.Join(names, "|") + ")$"}, packages...)...)
}

// forget removes a test from the failed ones, and its package if no other test of it failed.
func (r *reporter) forget(t test) {
	r.failed = slices.DeleteFunc(r.failed, func(f string) bool {
		return f == t.pkg || f == t.pkg+" "+t.name || strings.HasPrefix(f, t.pkg+" "+t.name+"/")
	})
}
