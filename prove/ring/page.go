package main

import (
	"cmp"
	_ "embed"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// The page's text before and after the tables.
var (
	//go:embed reliability_head.md
	pageHead string
	//go:embed reliability_tail.md
	pageTail string
)

// writePage writes docs/reliability.md: the parts that were run, on which commit, and those that
// were not, the rounds of chaos, and the limits of the promises.
func (p *proof) writePage(name string) error {
	var b strings.Builder
	b.WriteString(pageHead)
	fmt.Fprintf(&b, "%s, %d cores (%s/%s).\n\n", time.Now().UTC().Format("2006-01-02"),
		runtime.NumCPU(), runtime.GOOS, runtime.GOARCH)
	b.WriteString("| part | what | commit | passed | failed | skipped | minutes |\n" +
		"|---|---|---|---|---|---|---|\n")
	var missing []string
	covered := map[string]string{}
	for _, x := range parts {
		sum, commits := result{}, []string(nil)
		for name, r := range p.results {
			if !strings.HasPrefix(name, x.name+"/") {
				continue
			}
			commits = append(commits, r.Commit)
			sum.Passed, sum.Failed, sum.Skipped = sum.Passed+r.Passed, sum.Failed+r.Failed,
				sum.Skipped+r.Skipped
			sum.Seconds += r.Seconds
			if !r.OK {
				sum.Failed = max(sum.Failed, 1)
			}
			for pkg, percent := range r.Coverage {
				covered[pkg] = percent
			}
		}
		if len(commits) == 0 {
			missing = append(missing, x.name)
			continue
		}
		slices.Sort(commits)
		fmt.Fprintf(&b, "| %s | %s | %s | %d | %d | %d | %.0f |\n", x.name, x.about,
			strings.Join(slices.Compact(commits), ", "), sum.Passed, sum.Failed, sum.Skipped,
			sum.Seconds/60)
	}
	if len(missing) > 0 {
		fmt.Fprintf(&b, "\nNot run: %s.\n", strings.Join(missing, ", "))
	}
	if p.since != "" {
		fmt.Fprintf(&b, "\nOnly what files changed since %s concern was run.\n", p.since)
	}
	if len(covered) > 0 {
		b.WriteString("\nStatements that the package's own tests reach: ")
		var list []string
		for pkg, percent := range covered {
			list = append(list, fmt.Sprintf("`%s` %s", pkg, percent))
		}
		slices.Sort(list)
		b.WriteString(strings.Join(list, ", ") + ".\n")
	}
	rounds := cmp.Or(strings.TrimSpace(p.results["chaos/all"].Rounds), "The campaign was not run.")
	b.WriteString(strings.Replace(pageTail, "{{rounds}}", rounds, 1))
	return os.WriteFile(name, []byte(b.String()), 0o644)
}
