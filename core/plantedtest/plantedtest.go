// Package plantedtest builds tests of the exchange with mistakes planted in its code, to show that
// the tests can fail.
//
// A mistake is planted in a copy of a file (go build -overlay), so the exchange itself has no
// switches for it. All mistakes of a list are in one build, each asleep until the environment
// names it.
package plantedtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A Fault is a possible mistake in a file, named from the module's root. The old text becomes the
// new one, in which FAULT is true while this fault is planted. The old text is there exactly once.
// A script of Redis is such a file, too.
type Fault struct{ Name, File, Old, New string }

// scripts makes the scripts of Redis from their files.
const scripts = "persistence/redis/scripts.go"

// Overlay writes the files with all faults into dir, and returns the overlay for builds.
func Overlay(t *testing.T, root, dir string, faults []Fault) string {
	t.Helper()
	replace := map[string]string{}
	write := func(file, text string) {
		path := filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[filepath.Join(root, file)] = path
	}
	files := planted(t, root, faults)
	clause := regexp.MustCompile(`(?m)^package \w+$`)
	for file, text := range files {
		if strings.HasSuffix(file, ".go") {
			text = clause.ReplaceAllString(text, "$0\n\nimport \"exchange/core/planted\"\n")
		}
		write(file, text)
	}
	write("core/planted/planted.go", `package planted

import (
	"fmt"
	"os"
)

var fault = os.Getenv("PLANTED_FAULT")

func On(name string) bool { return name == fault }

// Lua begins each script of Redis.
func Lua() string { return fmt.Sprintf("local planted = %q\n", fault) }
`)
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return overlay
}

// planted returns the files with all faults.
func planted(t *testing.T, root string, faults []Fault) map[string]string {
	t.Helper()
	files := map[string]string{}
	read := func(file string) string {
		text, there := files[file]
		if !there {
			b, err := os.ReadFile(filepath.Join(root, file))
			if err != nil {
				t.Fatal(err)
			}
			text = string(b)
		}
		return text
	}
	lua := false
	for _, f := range faults {
		text, on := read(f.File), fmt.Sprintf("planted.On(%q)", f.Name)
		if strings.HasSuffix(f.File, ".lua") {
			lua, on = true, fmt.Sprintf("(planted == %q)", f.Name)
		}
		found := anySpace(f.Old).FindAllStringIndex(text, -1)
		if len(found) != 1 {
			t.Errorf(
				"%s: %s has its old text %d times: change the text in the list of planted faults",
				f.Name, f.File, len(found))
			continue
		}
		begin, end := found[0][0], found[0][1]
		wrong := strings.TrimSpace(strings.ReplaceAll(f.New, "FAULT", on))
		files[f.File] = text[:begin] + wrong + text[end:]
	}
	if t.Failed() {
		t.FailNow()
	}
	if lua {
		files[scripts] = strings.ReplaceAll(read(scripts),
			"redis.NewScript(", "redis.NewScript(planted.Lua() + ")
	}
	return files
}

// anySpace matches a text with any other spaces and line breaks between its words.
func anySpace(text string) *regexp.Regexp {
	var pattern strings.Builder
	for i, word := range strings.Fields(text) {
		if i > 0 {
			pattern.WriteString(`\s+`)
		}
		pattern.WriteString(regexp.QuoteMeta(word))
	}
	return regexp.MustCompile(pattern.String())
}

// Build builds the tests of a package with an overlay.
func Build(t *testing.T, root, overlay, pkg, binary string) {
	t.Helper()
	build := exec.Command("go", "test", "-c", "-vet=off", "-pgo=off", "-overlay", overlay,
		"-o", binary, pkg)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building %s with planted faults: %v\n%s", pkg, err, out)
	}
}

// These outputs are no findings of a test.
var (
	hung = []byte("panic: test timed out after")
	// setUp matches the output of a test whose Redis or machine failed, and not the code.
	setUp = regexp.MustCompile(`redis-server is not installed|redis-server ended at start|` +
		`redis-server did not answer|redis-server --version|no free port was found|` +
		`too many open files|cannot allocate memory`)
	failure = regexp.MustCompile(`(?m)^ +\w+\.go:\d+: .*|^panic: .*|^fatal error: .*`)
)

// Finding returns a test's first complaint about the code, from the output of a run of that test
// alone with -test.v. The error gives the reason why this run has found nothing: it hung, or its
// set-up failed.
func Finding(out []byte, test string) (string, error) {
	if bytes.Contains(out, hung) {
		return "", errors.New("it hung, or was too slow")
	}
	name := regexp.QuoteMeta(strings.ReplaceAll(test, " ", "_"))
	if !regexp.MustCompile(`(?m)^=== RUN   ` + name + `$`).Match(out) {
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
	if setUp.MatchString(found) {
		return "", fmt.Errorf("its set-up failed: %s", found)
	}
	// A panic or a race of the run-time ends the process before the test's own line.
	died := regexp.MustCompile(`(?m)^(panic|fatal error): `).Match(out)
	if !died && !regexp.MustCompile(`(?m)^ *--- FAIL: `+name+` \(`).Match(out) {
		return "", fmt.Errorf("%s itself has not failed", test)
	}
	if found == "" {
		return "", errors.New("it says nothing against the code")
	}
	return found, nil
}

// Run runs tests with one fault planted, none if fault is "", in a package's folder. It reports
// whether they fail.
func Run(t *testing.T, binary, folder, fault string, args ...string) (out []byte, failed bool) {
	t.Helper()
	run := exec.Command(binary, args...)
	run.Dir = folder
	run.Env = append(slices.Clone(os.Environ()), "PLANTED_FAULT="+fault, "GOGC=400")
	out, err := run.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out, err != nil
}
