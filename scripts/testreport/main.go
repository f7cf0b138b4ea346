// Command testreport reads the events of `go test -json` and prints what a person wants to see: the
// line of each package, everything a failed test said, and at the end which version of a server how
// many tests ran on, as far as they told by testing.T.Attr, the tests that took longest, and those
// that were skipped with their reasons. It exits with 1 if anything failed, and does not rely on
// the exit code of `go test`, which a pipe would hide.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

func main() {
	ok, err := report(os.Stdin, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(1)
	}
	if !ok {
		os.Exit(1)
	}
}

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

type test struct{ pkg, name string }

// Of the tests that take slowSeconds and more the report names up to slowListed, without subtests.
const slowSeconds, slowListed = 20, 30

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
	passed  int
	on      map[string]map[test]bool // tests by an attribute that they have
	ended   map[string]bool          // packages; one that never ends has crashed
}

// report is false if anything failed, or if there was nothing at all.
func report(in io.Reader, out io.Writer) (bool, error) {
	r := reporter{out: out, said: map[test][]string{}, ended: map[string]bool{},
		on: map[string]map[test]bool{}}
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil {
				fmt.Fprint(out, string(line)) // from the go command itself
			} else {
				r.take(e)
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return false, err
		}
	}
	return r.end(), nil
}

func (r *reporter) take(e event) {
	if e.Package != "" && !r.ended[e.Package] {
		r.ended[e.Package] = false
	}
	t := test{e.Package, e.Test}
	if e.Elapsed >= slowSeconds && e.Test != "" && !strings.Contains(e.Test, "/") {
		r.slow = append(r.slow, slowTest{t, e.Elapsed})
	}
	switch {
	case e.Action == "build-output":
		fmt.Fprint(r.out, e.Output)
	case e.Action == "build-fail":
		r.failed = append(r.failed, "build of "+e.ImportPath)
	case e.Test == "" && e.Action == "output":
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
		r.passed++
		delete(r.said, t)
	case e.Action == "skip":
		r.skipped = append(r.skipped, e.Package+" "+e.Test+": "+reason(r.said[t]))
		delete(r.said, t)
	case e.Action == "fail":
		r.failed = append(r.failed, e.Package+" "+e.Test)
		r.tell(t)
	}
}

// endPackage says what is left of tests that were cut off by a crash or a time limit.
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

// reason is what a skipped test gave as its reason, without the place in the code.
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

func (r *reporter) end() bool {
	for pkg, ended := range r.ended {
		if !ended {
			r.failed = append(r.failed, pkg+" did not end")
		}
	}
	slices.Sort(r.failed)
	fmt.Fprintf(r.out, "\n%d tests passed, %d failed, %d skipped.\n", r.passed, len(r.failed),
		len(r.skipped))
	for _, attribute := range slices.Sorted(maps.Keys(r.on)) {
		fmt.Fprintf(r.out, "%d of them with %s\n", len(r.on[attribute]), attribute)
	}
	slices.SortStableFunc(r.slow,
		func(a, b slowTest) int { return cmp.Compare(b.seconds, a.seconds) })
	for _, s := range r.slow[:min(len(r.slow), slowListed)] {
		fmt.Fprintf(r.out, "slow: %s %s %.0f s\n", s.pkg, s.name, s.seconds)
	}
	for _, s := range r.failed {
		fmt.Fprintln(r.out, "failed:", s)
	}
	for _, s := range r.skipped {
		fmt.Fprintln(r.out, "skipped:", s)
	}
	return len(r.failed) == 0 && len(r.ended) > 0
}
