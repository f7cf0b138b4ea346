package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A patch that no longer matches the code is found at once, and not after a build.
func TestEveryPlantedFaultHasItsPlace(t *testing.T) {
	all := slices.Concat(faults, withoutEffect)
	if _, err := planted("../..", all); err != nil {
		t.Error(err)
	}
	names := map[string]bool{}
	for _, f := range all {
		if names[f.Name] {
			t.Errorf("two faults are called %q", f.Name)
		}
		names[f.Name] = true
	}
	source := sources(t, "../..")
	for _, f := range all {
		for _, part := range strings.Split(f.Test, "/")[1:] {
			if !strings.Contains(source, strconv.Quote(part)) {
				t.Errorf("fault %q: no test has a part that is called %q", f.Name, part)
			}
		}
	}
	for name := range why {
		if !slices.ContainsFunc(withoutEffect, func(f Fault) bool { return f.Name == name }) {
			t.Errorf("no fault without effect is called %q", name)
		}
	}
	for _, name := range smoke {
		if !names[name] {
			t.Errorf("no fault of the smoke test is called %q", name)
		}
	}
}

// sources returns the module's Go files, all but this package's, which names the parts of tests.
func sources(t *testing.T, root string) string {
	t.Helper()
	var all strings.Builder
	if err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.Name() == "faults" || d.Name() == "node_modules":
			return fs.SkipDir
		case filepath.Ext(path) != ".go":
			return nil
		}
		b, err := os.ReadFile(path)
		all.Write(b)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// A run counts as a finding only with these outputs.
func TestOnlyTheTestsOwnFailureIsAFinding(t *testing.T) {
	const run, fail = "=== RUN   TestA\n=== RUN   TestA/one_part\n", "    --- FAIL: " +
		"TestA/one_part (0.00s)\n"
	const own = "    a_test.go:7: 3 is not 4\n"
	for _, c := range []struct{ name, out, found, wrong string }{
		{"its own failure", run + own + "--- FAIL: TestA (0.00s)\n" + fail,
			"a_test.go:7: 3 is not 4", ""},
		{"after its seed", run + "    a_test.go:5: seed is 4\n" + own + fail,
			"a_test.go:7: 3 is not 4", ""},
		{"a panic", run + "panic: index out of range\n\ngoroutine 7\n", "panic: index out of range",
			""},
		{"the run-time", run + "fatal error: concurrent map writes\n",
			"fatal error: concurrent map writes", ""},
		{"a hang", run + "panic: test timed out after 2m0s\n", "", "it hung"},
		{"a hang after a word", run + own + "panic: test timed out after 2m0s\n", "", "it hung"},
		{"no Redis", run + "    a_test.go:3: redis-server ended at start: x\n" + fail, "",
			"set-up"},
		{"a machine without room", run + "    a_test.go:3: open x: too many open files\n" + fail,
			"", "set-up"},
		{"another part",
			run + own + "--- FAIL: TestA (0.00s)\n    --- FAIL: TestA/one_part_more (0.00s)\n",
			"", "itself has not failed"},
		{"the test above", "=== RUN   TestA\n" + own + "--- FAIL: TestA (0.00s)\n", "",
			"has not run"},
		{"no word", run + fail, "", "says nothing"},
	} {
		found, err := finding([]byte(c.out), "TestA/one part")
		if found != c.found || (err == nil) != (c.wrong == "") ||
			err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%s: %q, %v", c.name, found, err)
		}
	}
}
