package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// Without this check a renamed test would leave the smoke ring unnoticed until it runs.
func TestEachTestOfTheListsIsThere(t *testing.T) {
	for _, line := range lines(smokeText) {
		pkg, name, _ := strings.Cut(line, " ")
		defined := regexp.MustCompile(`(?m)^func ` + regexp.QuoteMeta(name) + `\(`)
		files, err := os.ReadDir("../../" + pkg)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, f := range files {
			text, err := os.ReadFile("../../" + pkg + "/" + f.Name())
			found = found || err == nil && defined.Match(text)
		}
		if !found {
			t.Errorf("smoke.txt: %s has no %s", pkg, name)
		}
	}
	for _, pkg := range lines(raceText) {
		if _, err := os.ReadDir("../../" + pkg); err != nil {
			t.Errorf("race.txt: %v", err)
		}
	}
}

// Only a test whose set-up failed is run again.
func TestOnlyAFailedSetUpIsUnlucky(t *testing.T) {
	for _, x := range []struct {
		said    string
		unlucky int
	}{
		{"    server.go:7: listen tcp 127.0.0.1:80: bind: address already in use", 1},
		{"    a_test.go:7: an acknowledged order is missing", 0},
	} {
		r := newReporter(&strings.Builder{})
		if err := r.read(strings.NewReader(`{"Action":"output","Package":"p","Test":"TestA/x",` +
			`"Output":"` + x.said + `\n"}
{"Action":"fail","Package":"p","Test":"TestA/x"}
{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"fail","Package":"p"}
`)); err != nil {
			t.Fatal(err)
		}
		if len(r.unlucky) != x.unlucky {
			t.Errorf("%s: %d unlucky", x.said, len(r.unlucky))
		}
		if r.forget(test{"p", "TestA"}); len(r.failed) != 0 {
			t.Errorf("%q are still failed", r.failed)
		}
	}
}
