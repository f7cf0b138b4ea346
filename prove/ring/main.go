package main

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

func main() {
	ok, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "ring:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

func run(args []string) (ok bool, err error) {
	if len(args) == 0 {
		return false, errors.New("usage: ring test [PACKAGE ...] | race | smoke | prove")
	}
	r := newReporter(os.Stdout)
	switch packages := args[1:]; args[0] {
	case "test":
		if len(packages) == 0 {
			packages = []string{"./..."}
		}
		err = r.goTest(nil, packages...)
	case "race":
		err = r.goTest([]string{"CGO_ENABLED=1", "GORACE=atexit_sleep_ms=0"},
			append([]string{"-race", "-timeout=40m", "-skip", oneAtATime}, lines(raceText)...)...)
	case "smoke":
		err = r.smoke(lines(smokeText))
	case "prove":
		return prove(os.Getenv("WHAT"), os.Getenv("SINCE"))
	default:
		return run(nil)
	}
	return err == nil && r.end(), err
}

// The packages for the race detector, each with its reason, and the tests of the smoke ring.
var (
	//go:embed race.txt
	raceText string
	//go:embed smoke.txt
	smokeText string
)

// oneAtATime are long tests without concurrent goroutines of ours. They are skipped here; make
// prove runs them under the race detector, too.
var oneAtATime = "^(" + strings.Join([]string{"TestConformance", "TestThreeNodesAreOneExchange",
	"TestThreeNodesAreOneJournal", "TestCrashInCutKeepsRecordsBelow",
	"TestACrashInASurvivalLeavesTheOldOrTheNewMembership",
	"TestCrashLosesUnsyncedTailOfEachLog", "TestCrashLosesNothingAcknowledged",
	"TestFolderWithTruncatedTableListIsRefusedOrWhole",
	"TestFolderWithOlderFileIsRefusedOrWhole", "TestFolderWithTruncatedFilesIsRefusedOrWhole",
	"TestFolderWithMissingFileIsRefusedOrWhole",
	"TestATrialAnswersAsPlacingTheOrderDoes"}, "|") + ")$"

// lines returns the lines of a list without comments.
func lines(text string) (list []string) {
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line != "" {
			list = append(list, line)
		}
	}
	return list
}

// goTest runs go test with additional environment variables, and reports its events.
func (r *reporter) goTest(env []string, args ...string) error {
	c := exec.Command("go", slices.Concat([]string{"test", "-json", "-vet=off"}, args)...)
	c.Env, c.Stderr = slices.Concat(os.Environ(), env), os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	if err := r.read(out); err != nil {
		return err
	}
	var exit *exec.ExitError
	if err := c.Wait(); err != nil && !errors.As(err, &exit) {
		return err
	} else if err != nil && len(r.failed) == 0 {
		return fmt.Errorf("%v: %w", c, err)
	}
	return nil
}

// newReporter makes a reporter that writes to out.
func newReporter(out io.Writer) *reporter {
	return &reporter{out: out, said: map[test][]string{}, ended: map[string]bool{},
		on: map[string]map[test]bool{}, passes: map[test]bool{}}
}
