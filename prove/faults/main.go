package main

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
)

func main() {
	plant := flag.Bool("plant", false, "plant the faults, and run their tests")
	only := flag.String("only", "", "those whose name, file or package contains this `text`")
	changed := flag.String("changed", "", "those in these `files`, or tested in their folders")
	short := flag.Bool("smoke", false, "ten of them, one a room")
	kept := flag.String("log", "", "a `file` of faults that were found, to go on with")
	root := flag.String("C", ".", "the `folder` of the module")
	flag.Parse()
	list := chosen(slices.Concat(faults, withoutEffect), *only, *changed, *short)
	if !*plant {
		for _, f := range list {
			fmt.Printf("%s\n\t%s, %s of %s\n", f.Name, f.File, f.Test, f.In)
			if reason := why[f.Name]; reason != "" {
				fmt.Printf("\twithout effect: %s\n", reason)
			}
		}
		fmt.Printf("%d faults\n", len(list))
		return
	}
	missed, err := plantAll(*root, list, *kept)
	if err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		os.Exit(1)
	}
	fmt.Printf("%d faults planted, %d not found as they should be\n", len(list), missed)
	if missed > 0 || len(list) == 0 && *changed == "" {
		os.Exit(1)
	}
}

// chosen returns the faults chosen by the flags.
func chosen(all []Fault, only, changed string, short bool) (list []Fault) {
	var files, folders []string
	for _, f := range strings.FieldsFunc(changed, func(r rune) bool { return r == ',' }) {
		files, folders = append(files, f), append(folders, path.Dir(f))
	}
	for _, f := range all {
		named := strings.Contains(f.Name, only) || strings.Contains(f.File, only) ||
			strings.Contains(f.In, only)
		if named && (!short || slices.Contains(smoke, f.Name)) && (changed == "" ||
			slices.Contains(files, f.File) || slices.Contains(folders, f.In)) {
			list = append(list, f)
		}
	}
	return list
}

// A planting holds the tests of all needed packages, each built once with all its faults.
type planting struct {
	root, binaries string
	log            *os.File
	mu             sync.Mutex
	missed         int
	passes         map[string]func() error // by package and test: that it passes without a fault
}

// plantAll plants each fault of a list and runs its test, concurrently on all processors. It
// returns the number of faults that were not found as expected. It skips faults that the file lists
// as found, and adds newly found ones.
func plantAll(root string, list []Fault, kept string) (missed int, err error) {
	p := &planting{passes: map[string]func() error{}}
	if p.root, err = filepath.Abs(root); err != nil {
		return 0, err
	}
	before, err := p.openLog(kept)
	if err != nil {
		return 0, err
	}
	if p.binaries, err = os.MkdirTemp("", "exchange-faults-"); err != nil {
		return 0, err
	}
	defer os.RemoveAll(p.binaries)
	list = slices.DeleteFunc(slices.Clone(list), func(f Fault) bool { return before[f.Name] })
	if err := p.build(list); err != nil {
		return 0, err
	}
	work := make(chan *Fault)
	var workers sync.WaitGroup
	for range runtime.NumCPU() {
		workers.Go(func() {
			for f := range work {
				p.try(f)
			}
		})
	}
	for i := range list {
		work <- &list[i]
	}
	close(work)
	workers.Wait()
	return p.missed, nil
}

// openLog opens the file of found faults, and returns their names.
func (p *planting) openLog(name string) (map[string]bool, error) {
	before := map[string]bool{}
	if name == "" {
		return before, nil
	}
	var err error
	if p.log, err = os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(p.log)
	for lines.Scan() {
		fault, _, _ := strings.Cut(lines.Text(), "\t")
		before[fault] = true
	}
	return before, lines.Err()
}

// build builds the tests that a list needs. All faults there are must compile: make smoke, which
// plants ten, finds those that a renaming broke.
func (p *planting) build(list []Fault) error {
	over, err := overlay(p.root, p.binaries, slices.Concat(faults, withoutEffect))
	if err != nil {
		return err
	}
	for _, f := range list {
		binary := p.binary(&f)
		if _, err := os.Stat(binary); err == nil {
			continue
		}
		if err := build(p.root, over, f.In, binary); err != nil {
			return err
		}
	}
	for _, f := range list {
		p.passes[f.In+f.Test] = sync.OnceValue(func() error {
			out, failed, err := f.run(p.root, p.binary(&f), false)
			if failed {
				err = fmt.Errorf("%s fails without a planted fault:\n%s", f.Test, out)
			}
			return err
		})
	}
	return nil
}

func (p *planting) binary(f *Fault) string {
	return filepath.Join(p.binaries, strings.ReplaceAll(f.In, "/", "_")+".test")
}

// try plants one fault, and prints the outcome.
func (p *planting) try(f *Fault) {
	err := p.passes[f.In+f.Test]()
	var out []byte
	found, failed := "", false
	if err == nil {
		out, failed, err = f.run(p.root, p.binary(f), true)
	}
	if reason := why[f.Name]; err == nil && reason != "" {
		found = "changes nothing: " + reason
		if failed {
			err = fmt.Errorf("it is said to change nothing, and %s finds it:\n%s", f.Test, out)
		}
	} else if err == nil && !failed {
		err = fmt.Errorf("%s has not noticed", f.Test)
	} else if err == nil {
		if found, err = finding(out, f.Test); err != nil {
			err = fmt.Errorf("it was not %s that has found it: %w\n%s", f.Test, err, out)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.missed++
		fmt.Printf("NOT FOUND %s: %v\n", f.Name, err)
		return
	}
	fmt.Printf("%s: %.160s\n", f.Name, found)
	if p.log != nil {
		fmt.Fprintf(p.log, "%s\t%s\n", f.Name, found)
	}
}
