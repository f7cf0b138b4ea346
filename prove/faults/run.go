package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// The maximum of seeds played until a planted fault is found. A seed of
// TestThreeNodesAreOneExchange finds about one in four mistakes, and the rarest one in about sixty.
const (
	simulatedSeeds = 2500
	exchangeSeeds  = 1500
)

// arguments are those of a run of a fault's test, with the fault planted or without.
func (f *Fault) arguments(planted bool) []string {
	list := []string{"-test.run", asked(f.Test), "-test.v", "-test.timeout", "20m"}
	switch {
	case f.Test == simulation:
		list = append(list, "-sim.shrink", "0")
		if planted {
			list = append(list, "-sim.seeds", fmt.Sprint(simulatedSeeds))
		}
	case f.Test == threeNodes && planted:
		list = append(list, "-exchanges", fmt.Sprint(exchangeSeeds))
	case strings.HasPrefix(f.In, "core/") && f.In != "core/matching":
		// the rarest fault shows once in about 30 checks: rapid's default of 100 may miss it
		list = append(list, "-rapid.nofailfile", "-rapid.checks=2000", "-rapid.shrinktime=100ms")
	}
	return list
}

// asked returns a pattern for one test, and one part of it.
func asked(test string) string {
	parts := strings.Split(strings.ReplaceAll(test, " ", "_"), "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return strings.Join(parts, "/")
}

// run runs a fault's test in its package's folder, with the fault planted or without. It reports
// whether the test fails.
func (f *Fault) run(root, binary string, planted bool) (out []byte, failed bool, err error) {
	c := exec.Command(binary, f.arguments(planted)...)
	c.Dir = filepath.Join(root, f.In)
	c.Env = append(slices.Clone(os.Environ()), "GOGC=400")
	if planted {
		c.Env = append(c.Env, "PLANTED_FAULT="+f.Name)
	}
	out, err = c.CombinedOutput()
	var exit *exec.ExitError
	failed = errors.As(err, &exit)
	if failed {
		err = nil
	}
	if err == nil && !began(f.Test, out) {
		err = fmt.Errorf("%s has no %s, or ended before it:\n%s", f.In, f.Test, out)
	}
	return out, failed, err
}

// began reports whether a test has begun.
func began(test string, out []byte) bool {
	name := regexp.QuoteMeta(strings.ReplaceAll(test, " ", "_"))
	return regexp.MustCompile(`(?m)^=== RUN   ` + name + `$`).Match(out)
}

// These outputs are not findings of a test.
var (
	hung = []byte("panic: test timed out after")
	// setUp matches the output of a test whose Redis or machine failed, not the code.
	setUp = regexp.MustCompile(`redis-server is not installed|redis-server ended at start|` +
		`redis-server did not answer|redis-server --version|no free port was found|` +
		`too many open files|cannot allocate memory|BUG of the simulation: `)
	failure = regexp.MustCompile(`(?m)^ +\w+\.go:\d+: .*|^panic: .*|^fatal error: .*`)
	// died matches a panic or a race of the run-time, which ends the process before the test's line
	died = regexp.MustCompile(`(?m)^(panic|fatal error): `)
	// seed matches what the simulation complains of
	seed = regexp.MustCompile(`seed \d+ fails after \d+ steps: .*`)
)

// finding returns a test's first complaint about the code, from the output of a run of that test
// alone with -test.v. The error gives the reason why this run has found nothing: it hung, or its
// set-up failed.
func finding(out []byte, test string) (string, error) {
	if bytes.Contains(out, hung) {
		return "", errors.New("it hung, or was too slow")
	}
	if !began(test, out) {
		return "", fmt.Errorf("%s has not run", test)
	}
	found := ""
	for _, line := range failure.FindAll(out, -1) {
		text := strings.TrimSpace(string(line))
		if !strings.Contains(text, "CONFORMANCE_SEED") && !strings.Contains(text, "seed is") {
			found = text
			break
		}
	}
	if test == simulation {
		found = string(seed.Find(out))
	}
	if bad := setUp.Find(out); test == simulation && bad != nil || setUp.MatchString(found) {
		return "", fmt.Errorf("its set-up failed: %s %s", bad, found)
	}
	name := regexp.QuoteMeta(strings.ReplaceAll(test, " ", "_"))
	if !died.Match(out) && !regexp.MustCompile(`(?m)^ *--- FAIL: `+name+` \(`).Match(out) {
		return "", fmt.Errorf("%s itself has not failed", test)
	}
	if found == "" {
		return "", errors.New("it says nothing against the code")
	}
	return found, nil
}
