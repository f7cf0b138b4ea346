package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// An event is one of those that `go doc test2json` describes.
type event struct {
	Action     string
	Package    string
	ImportPath string // in place of Package in the output of a build
	Test       string
	Output     string
	Elapsed    float64 // seconds
	Key, Value string  // of an attribute
}

var coverage = regexp.MustCompile(`^ok .*coverage: ([0-9.]+%) of statements`)

type test struct{ pkg, name string }

// slowListed is the number of slowest tests in a report, without subtests.
const slowListed = 10

type slowTest struct {
	test
	seconds float64
}

type reporter struct {
	out     io.Writer
	said    map[test][]string // output of tests that have not ended
	skipped []string
	failed  []string
	slow    []slowTest
	passes  map[test]bool
	unlucky []test                   // that failed before they began, see setUp
	on      map[string]map[test]bool // tests by an attribute that they have
	ended   map[string]bool          // packages; one that never ends has crashed
	covered map[string]string        // percents by package
}

// read reads the events of one run of go test.
func (r *reporter) read(in io.Reader) error {
	for lines := bufio.NewReader(in); ; {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil {
				fmt.Fprint(r.out, string(line)) // from the go command itself
			} else {
				r.take(e)
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *reporter) take(e event) {
	if e.Package != "" && !r.ended[e.Package] {
		r.ended[e.Package] = false
	}
	t := test{e.Package, e.Test}
	if e.Elapsed > 0 && e.Test != "" && !strings.Contains(e.Test, "/") {
		r.slow = append(r.slow, slowTest{t, e.Elapsed})
	}
	switch {
	case e.Action == "build-output":
		fmt.Fprint(r.out, e.Output)
	case e.Action == "build-fail":
		r.failed = append(r.failed, "build of "+e.ImportPath)
	case e.Test == "" && e.Action == "output":
		if m := coverage.FindStringSubmatch(e.Output); m != nil && r.covered != nil {
			r.covered[strings.TrimPrefix(e.Package, "exchange/")] = m[1]
		}
		if e.Output != "PASS\n" {
			fmt.Fprint(r.out, e.Output)
		}
	case e.Test == "" && (e.Action == "pass" || e.Action == "skip" || e.Action == "fail"):
		r.endPackage(e)
	case e.Action == "attr":
		attribute := e.Key + " " + e.Value
		if r.on[attribute] == nil {
			r.on[attribute] = map[test]bool{}
		}
		r.on[attribute][t] = true
	case e.Action == "output":
		r.said[t] = append(r.said[t], e.Output)
	case e.Action == "pass":
		r.passes[t] = true
		delete(r.said, t)
	case e.Action == "skip":
		r.skipped = append(r.skipped, e.Package+" "+e.Test+": "+reason(r.said[t]))
		delete(r.said, t)
	case e.Action == "fail":
		r.failed = append(r.failed, e.Package+" "+e.Test)
		if setUp.MatchString(strings.Join(r.said[t], "")) {
			r.unlucky = append(r.unlucky, test{t.pkg, topLevel(t.name)})
		}
		r.tell(t)
	}
}

// endPackage prints the pending output of tests that a crash or a time limit has interrupted.
func (r *reporter) endPackage(e event) {
	r.ended[e.Package] = true
	if e.Action != "fail" {
		return
	}
	if !slices.ContainsFunc(r.failed, func(s string) bool {
		return strings.HasPrefix(s, e.Package+" ")
	}) {
		r.failed = append(r.failed, e.Package)
	}
	var open []test
	for t := range r.said {
		if t.pkg == e.Package {
			open = append(open, t)
		}
	}
	slices.SortFunc(open, func(a, b test) int { return strings.Compare(a.name, b.name) })
	for _, t := range open {
		r.tell(t)
	}
}

func (r *reporter) tell(t test) {
	for _, s := range r.said[t] {
		if !strings.HasPrefix(s, "=== ") {
			fmt.Fprint(r.out, s)
		}
	}
	delete(r.said, t)
}

// reason returns a skipped test's reason, without its code position.
func reason(said []string) string {
	var words []string
	for _, s := range said {
		if s = strings.TrimSpace(s); s != "" && !strings.HasPrefix(s, "=== ") &&
			!strings.HasPrefix(s, "--- ") {
			words = append(words, s)
		}
	}
	if len(words) == 0 {
		return "no reason given"
	}
	return strings.Join(words, " ")
}

// end prints the totals of all runs. It is false if anything failed, or if no test ran.
func (r *reporter) end() bool {
	for pkg, ended := range r.ended {
		if !ended {
			r.failed = append(r.failed, pkg+" did not end")
		}
	}
	slices.Sort(r.failed)
	for _, s := range r.skipped {
		fmt.Fprintln(r.out, "skipped:", s)
	}
	for _, s := range r.failed {
		fmt.Fprintln(r.out, "failed:", s)
	}
	for _, attribute := range slices.Sorted(maps.Keys(r.on)) {
		fmt.Fprintf(r.out, "%d tests with %s\n", len(r.on[attribute]), attribute)
	}
	fmt.Fprintf(r.out, "%d passed, %d failed, %d skipped\n", len(r.passes), len(r.failed),
		len(r.skipped))
	slices.SortStableFunc(r.slow,
		func(a, b slowTest) int { return cmp.Compare(b.seconds, a.seconds) })
	for _, s := range r.slow[:min(len(r.slow), slowListed)] {
		fmt.Fprintf(r.out, "slowest: %.1f s %s %s\n", s.seconds, s.pkg, s.name)
	}
	return len(r.failed) == 0 && len(r.ended) > 0
}
