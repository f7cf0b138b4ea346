package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A part is a unit of make prove. WHAT=name,name chooses parts. SINCE=commit runs only the parts,
// and the steps of "race" and "faults", that a changed file concerns.
type part struct {
	name, about string
	concerns    []string // folders; nil: all
	steps       func(p *proof) ([]step, error)
}

// A step is one command. Its result is stored with its commit, so an interrupted run resumes after
// the last step that passed.
type step struct {
	name    string
	command []string
	env     []string
}

var engine = []string{"core/", "actors/", "persistence/", "config/", "gateway/", "cmd/exchange/",
	"go.mod"}

var parts = []part{
	{"race", "each package's tests, the slow ones too, under the race detector", nil,
		(*proof).races},
	{"recorded", "promised bytes, OpenAPI, goldens", engine, goTests("prove/recorded")},
	{"clients", "clients of other makers", append([]string{"docs/", "prove/clients"}, engine...),
		goTests("prove/clients")},
	{"pages", "the pages in Chromium", append([]string{"web/", "prove/pages"}, engine...),
		(*proof).pages},
	{"processes", "the program: kills, clusters, operators, histories checked for linearizability",
		append([]string{"prove/processes", "loadtest/"}, engine...), (*proof).processes},
	{"histories", "concurrent clients of the engine, checked for linearizability", engine,
		one([]string{"EXCHANGE_LINEAR_HISTORIES=500"}, "go", "test", "-json", "-vet=off",
			"-tags=prove", "-count=1", "-timeout=2h",
			"-run=^TestConcurrentClientsSeeOneExchange$", "./actors")},
	{"sim", "the simulation, by seeds", engine, (*proof).simulation},
	{"nodes", "three nodes, by seeds", engine, one(nil, "go", "test", "-json", "-vet=off",
		"-count=1", "-timeout=4h", "-run=^TestThreeNodesAreOneExchange$",
		"./persistence/replicated", "-exchanges=3000")},
	{"faults", "planted faults, each found by its test", nil, (*proof).faults},
	{"fuzz", "each fuzz target, for FUZZTIME", nil, one(nil, "scripts/fuzz")},
	{"chaos", "faults of a running exchange, its Redis and its network", engine,
		(*proof).chaos},
	{"siege", "faults of a cluster under load", engine, one([]string{"EXCHANGE_CHAOS=full"}, "go",
		"test", "-json", "-vet=off", "-tags=prove", "-count=1", "-timeout=0",
		"-run=^("+strings.Join(ofSiege, "|")+")$", "./prove/processes")},
	{"soak", "ten minutes of load on each store", engine, (*proof).soak},
	{"coverage", "statements that tests reach, by package", nil, one(nil, "go", "test", "-json",
		"-vet=off", "-tags=prove", "-cover", "-timeout=1h", "./core/...", "./actors/...",
		"./gateway/...", "./persistence/...", "./config/...", "./mail/...", "./loadtest/...",
		"./cmd/exchange/...")},
}

// The files written by make prove: the newest result of each step, and the page made of them.
const (
	resultsFile = "prove/ring/results.json"
	pageFile    = "docs/reliability.md"
)

// A proof is a run of make prove on one commit.
type proof struct {
	commit  string   // the last that changed anything else than the files that make prove writes
	folder  string   // bin/prove/COMMIT: outputs of steps
	since   string   // a commit; "": everything is run
	changed []string // files since then
	results map[string]result
}

// A result is the outcome of a step.
type result struct {
	OK                      bool
	Passed, Failed, Skipped int
	Seconds                 float64
	Commit                  string
	Coverage                map[string]string `json:",omitempty"` // by package
	Rounds                  string            `json:",omitempty"` // of chaos, as a table
}

// prove runs the parts that what names, all if it is "", and writes docs/reliability.md.
func prove(what, since string) (ok bool, err error) {
	p, err := newProof(since)
	if err != nil {
		return false, err
	}
	chosen := strings.FieldsFunc(what, func(r rune) bool { return r == ',' })
	for _, name := range chosen {
		if !slices.ContainsFunc(parts, func(x part) bool { return x.name == name }) {
			return false, fmt.Errorf("WHAT: there is no part %q", name)
		}
	}
	ok = true
	for _, x := range parts {
		if len(chosen) > 0 && !slices.Contains(chosen, x.name) || !p.concerned(x.concerns) {
			continue
		}
		steps, err := x.steps(p)
		if err != nil {
			return false, err
		}
		p.forget(x.name, steps)
		for _, s := range steps {
			good, err := p.run(x.name+"/"+s.name, s)
			if err != nil {
				return false, err
			}
			ok = ok && good
		}
	}
	return ok, p.writePage(pageFile)
}

// forget drops the results of a part's former steps.
func (p *proof) forget(part string, steps []step) {
	maps.DeleteFunc(p.results, func(name string, _ result) bool {
		rest, its := strings.CutPrefix(name, part+"/")
		return its && p.since == "" &&
			!slices.ContainsFunc(steps, func(s step) bool { return s.name == rest })
	})
}

func newProof(since string) (*proof, error) {
	p := &proof{since: since, results: map[string]result{}}
	commit, err := output("git", "log", "-1", "--format=%h", "--", ".", ":!"+resultsFile,
		":!"+pageFile)
	if err != nil {
		return nil, err
	}
	dirty, err := output("git", "status", "--porcelain", "--", ".", ":!"+resultsFile, ":!"+pageFile)
	if err != nil {
		return nil, err
	}
	if p.commit = strings.TrimSpace(commit); dirty != "" {
		p.commit += "-with-changes"
	}
	if since != "" {
		names, err := output("git", "diff", "--name-only", since)
		if err != nil {
			return nil, err
		}
		p.changed = strings.Fields(names)
	}
	p.folder = filepath.Join("bin", "prove", p.commit)
	if err := os.MkdirAll(p.folder, 0o755); err != nil {
		return nil, err
	}
	kept, err := os.ReadFile(resultsFile)
	if errors.Is(err, os.ErrNotExist) {
		return p, nil
	} else if err != nil {
		return nil, err
	}
	return p, json.Unmarshal(kept, &p.results)
}

func (p *proof) file(name string) string { return filepath.Join(p.folder, name) }

func output(command ...string) (string, error) {
	out, err := exec.Command(command[0], command[1:]...).Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", strings.Join(command, " "), err)
	}
	return string(out), nil
}

// concerned reports whether a changed file is in one of the folders.
func (p *proof) concerned(folders []string) bool {
	if p.since == "" || folders == nil {
		return true
	}
	for _, f := range p.changed {
		for _, in := range folders {
			if strings.HasPrefix(f, in) {
				return true
			}
		}
	}
	return false
}

// run runs a step, unless it has already passed on this commit, and stores its result.
func (p *proof) run(name string, s step) (ok bool, err error) {
	if r := p.results[name]; r.OK && r.Commit == p.commit {
		return true, nil
	}
	fmt.Printf("== %s: %s\n", name, strings.Join(s.command, " "))
	log, err := os.Create(p.file(strings.NewReplacer("/", "_", " ", "_").Replace(name) + ".log"))
	if err != nil {
		return false, err
	}
	defer log.Close()
	begun, c := time.Now(), exec.Command(s.command[0], s.command[1:]...)
	c.Env = slices.Concat(os.Environ(), []string{"GORACE=atexit_sleep_ms=0"}, s.env)
	var out bytes.Buffer
	c.Stdout, c.Stderr = io.MultiWriter(log, &out), log
	failed := c.Run()
	x := result{OK: failed == nil, Seconds: time.Since(begun).Seconds(), Commit: p.commit,
		Coverage: map[string]string{}}
	x.count(&out, slices.Contains(s.command, "-json"))
	if strings.HasPrefix(name, "chaos/") && x.OK {
		rounds, err := os.ReadFile(p.file("chaos.md"))
		if err != nil {
			return false, err
		}
		x.Rounds = string(rounds)
	}
	if !x.OK {
		fmt.Printf("FAILED %s: %v; see %s\n", name, failed, log.Name())
	}
	p.results[name] = x
	b, err := json.MarshalIndent(p.results, "", " ")
	if err != nil {
		return false, err
	}
	return x.OK, os.WriteFile(resultsFile, append(b, '\n'), 0o644)
}

// count counts tests, by the events of go test or by the lines of other commands, and collects the
// coverage.
func (x *result) count(out *bytes.Buffer, events bool) {
	if !events {
		for line := range strings.Lines(out.String()) {
			x.countLine(strings.Fields(line))
		}
		return
	}
	r := newReporter(os.Stdout)
	r.covered = x.Coverage
	if err := r.read(out); err != nil {
		fmt.Println(err)
	}
	x.OK = x.OK && r.end()
	x.Passed, x.Failed, x.Skipped = len(r.passes), len(r.failed), len(r.skipped)
}

// countLine counts by a line of node's runner, of the faults or of a script.
func (x *result) countLine(words []string) {
	if len(words) < 2 {
		return
	}
	count := func(word string, into *int) {
		n := 0
		if _, err := fmt.Sscan(word, &n); err == nil {
			*into += n
		}
	}
	switch last := words[len(words)-1]; {
	case words[1] == "pass" && len(words) == 3:
		count(last, &x.Passed)
	case words[1] == "fail" && len(words) == 3:
		count(last, &x.Failed)
	case words[1] == "faults" || words[1] == "targets":
		count(words[0], &x.Passed)
	case words[0] == "---" && words[1] == "PASS:":
		x.Passed++
	}
}

// one is a part of one command.
func one(env []string, command ...string) func(*proof) ([]step, error) {
	return func(*proof) ([]step, error) { return []step{{"all", command, env}}, nil }
}

func goTests(folder string) func(*proof) ([]step, error) {
	return one(nil, "go", "test", "-json", "-vet=off", "-tags=prove", "-count=1", "-timeout=1h",
		"./"+folder)
}

// races are the packages under the race detector that a change concerns, each a step.
func (p *proof) races() (list []step, err error) {
	out, err := output("go", "list", "-tags=prove", "-f",
		"{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}", "./...")
	if err != nil {
		return nil, err
	}
	for _, pkg := range strings.Fields(out) {
		short := strings.TrimPrefix(pkg, "exchange/")
		if slices.Contains([]string{"prove/processes", "prove/clients", "prove/recorded"}, short) {
			continue
		}
		if p.since != "" {
			used, err := output("go", "list", "-tags=prove", "-deps", "-test", pkg)
			if err != nil {
				return nil, err
			}
			if !p.uses(strings.Fields(used)) {
				continue
			}
		}
		list = append(list, step{short, []string{"go", "test", "-json", "-vet=off", "-race",
			"-tags=prove", "-timeout=2h", "-p=1", pkg}, []string{"CGO_ENABLED=1",
			"EXCHANGE_SOAK_SECONDS=60"}})
	}
	return list, nil
}

// uses reports whether a file of one of the packages has changed.
func (p *proof) uses(packages []string) bool {
	return slices.ContainsFunc(p.changed, func(f string) bool {
		return slices.Contains(packages, "exchange/"+filepath.ToSlash(filepath.Dir(f)))
	})
}

// ofSiege are the tests of a cluster that EXCHANGE_CHAOS makes long.
var ofSiege = []string{"TestClusterCampaign", "TestAFillThatANodeShowsIsSoldThroughAnother"}

// processes are the tests of the program, each a step; the campaigns are parts of their own.
func (p *proof) processes() (list []step, err error) {
	out, err := output("go", "test", "-tags=prove", "-vet=off", "-list", "^Test",
		"./prove/processes")
	if err != nil {
		return nil, err
	}
	for _, name := range strings.Fields(out) {
		if strings.HasPrefix(name, "Test") && name != "TestChaos" &&
			!slices.Contains(ofSiege, name) {
			list = append(list, step{name, []string{"go", "test", "-json", "-vet=off",
				"-tags=prove", "-count=1", "-timeout=1h", "-run", "^" + name + "$",
				"./prove/processes"}, nil})
		}
	}
	return list, nil
}

func (p *proof) pages() (list []step, err error) {
	files, err := filepath.Glob("prove/pages/*.test.mjs")
	for _, f := range files {
		list = append(list, step{filepath.Base(f), []string{"node", "--test", f}, nil})
	}
	return list, err
}

// simulation plays SEEDS seeds, by default 10,000, in steps of 1,000.
func (p *proof) simulation() (list []step, err error) {
	seeds, each := 0, 1000
	if _, err := fmt.Sscan(cmp.Or(os.Getenv("SEEDS"), "10000"), &seeds); err != nil || seeds < 1 {
		return nil, fmt.Errorf("SEEDS is %q: write a number", os.Getenv("SEEDS"))
	}
	for first := 1; first <= seeds; first += each {
		list = append(list, step{fmt.Sprint("from ", first), []string{"go", "test", "-json",
			"-vet=off", "-timeout=0", "-run=^TestSimulation$", "./actors",
			fmt.Sprint("-sim.first=", first),
			fmt.Sprint("-sim.seeds=", min(each, seeds-first+1))}, nil})
	}
	return list, nil
}

// faults plants the faults of changed files, and those whose test is in a changed folder.
func (p *proof) faults() ([]step, error) {
	command := []string{"go", "run", "./prove/faults", "-plant", "-log", p.file("faults.txt")}
	if p.since != "" {
		command = append(command, "-changed", strings.Join(p.changed, ","))
	}
	return []step{{"all", command, nil}}, nil
}

func (p *proof) soak() ([]step, error) {
	return []step{{"pebble", []string{"scripts/soak"}, nil},
		{"redis", []string{"scripts/soak"}, []string{"STORE=redis"}}}, nil
}

func (p *proof) chaos() ([]step, error) {
	page, err := filepath.Abs(p.file("chaos.md"))
	return []step{{"all", []string{"scripts/chaos"},
		[]string{"EXCHANGE_CHAOS_REPORT=" + page}}}, err
}
