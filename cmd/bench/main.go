package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
	"time"
)

type options struct {
	rounds      int
	length      time.Duration // of one measurement over HTTP
	openLength  time.Duration // of one in an open loop
	connections int
	only        *regexp.Regexp // of the rows' subjects
	json        string         // a file, or nothing
	svg         string         // the same
}

func main() {
	o := options{only: regexp.MustCompile("")}
	flag.IntVar(&o.rounds, "rounds", 7, "rounds; each measures everything once")
	seconds := flag.Float64("seconds", 2, "length of one measurement over HTTP")
	flag.IntVar(&o.connections, "connections", 64, "connections, each with an account of its own")
	flag.Func("only", "measure the rows whose subject matches this `REGEXP`, and their yardsticks",
		func(s string) (err error) {
			o.only, err = regexp.Compile(s)
			return err
		})
	flag.StringVar(&o.json, "json", "",
		"write the table to this `FILE` too, with the values of all rounds")
	flag.StringVar(&o.svg, "svg", "",
		"draw how far the rows are from their aims into this `FILE`, too")
	open := flag.Float64("open-seconds", 0,
		"length of one measurement in an open loop (default 60 with -only, else 5)")
	noop := flag.String("noop", "",
		"serve the yardstick on this address (the program does that to itself)")
	length := flag.Int("length", 0, "of the yardstick's answers, in bytes; 0: an order's")
	commit := flag.String("commit", "",
		"a `FILE` in which the yardstick makes each request durable before it answers")
	helping := flag.String("helper", "",
		"be a helper of the stream's measurements (the program does that to itself)")
	dir := flag.String("dir", "", "of the helper's store")
	flag.Parse()
	if *noop != "" {
		fmt.Fprintln(os.Stderr, "yardstick:", serveNothing(*noop, *length, *commit))
		os.Exit(1)
	}
	switch *helping {
	case helperSubscribers:
		serveSubscribers()
		return
	case helperSource:
		serveSource(*dir)
		return
	}
	if *open == 0 {
		*open = 5
		if o.only.String() != "" {
			*open = 60
		}
	}
	o.length, o.openLength = time.Duration(*seconds*float64(time.Second)),
		time.Duration(*open*float64(time.Second))
	if err := bench(o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func (o *options) validate() error {
	switch {
	case flag.NArg() > 0:
		return fmt.Errorf("%q: there are only flags", flag.Args())
	case o.rounds < 1 || o.connections < 1 || o.length <= 0 || o.openLength <= 0:
		return errors.New("rounds, seconds and connections are more than nothing")
	}
	return nil
}

var errInterrupted = errors.New("interrupted")

// bench measures the chosen rows and prints them. A row that could not be measured is missing in
// the table, and the error names it.
func bench(o options) error {
	if err := o.validate(); err != nil {
		return err
	}
	parts, servers := allParts(), allServers(o)
	if !choose(rowsOf(parts, servers), o.only) {
		return fmt.Errorf("no row matches %q", o.only)
	}
	out, err := jsonFile(o.json) // now, so that an impossible name is not found out minutes later
	if err != nil {
		return err
	}
	defer out.close()
	dir, err := os.MkdirTemp("", "exchange-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	parts, servers = slices.DeleteFunc(parts, unwanted), slices.DeleteFunc(servers, unwanted)
	if err := build(ctx, dir, parts, servers); err != nil {
		return err
	}
	// The servers start when the parts are done: even without requests, a store has work to do.
	failed := errors.Join(inTurns(ctx, dir, parts, o.rounds), inTurns(ctx, dir, servers, o.rounds))
	if ctx.Err() != nil {
		return errInterrupted
	}
	rows := slices.DeleteFunc(rowsOf(parts, servers), func(r *row) bool { return !r.wanted })
	printTable(os.Stdout, machine(), o, rows)
	printNotes(os.Stdout, servers)
	return errors.Join(failed, out.write(machine(), o, rows),
		drawPicture(o.svg, machine(), o, rows))
}

// A subject is measured once in each round.
type subject interface {
	name() string
	rows() []*row
	begin(ctx context.Context, dir string) error
	measure(ctx context.Context) error // adds a value to each row, or fails
	end()                              // also after begin has failed
}

func rowsOf(parts, servers []subject) (rows []*row) {
	for _, s := range slices.Concat(parts, servers) {
		rows = append(rows, s.rows()...)
	}
	// Requests, CPU and refusals of the servers stand together, not the rows of each server.
	slices.SortStableFunc(rows, func(a, b *row) int { return a.group - b.group })
	return rows
}

// choose marks the rows that match, their yardsticks, and the yardsticks of these.
func choose(rows []*row, only *regexp.Regexp) (some bool) {
	for _, r := range rows {
		if !only.MatchString(r.subject) {
			continue
		}
		some = true
		for ; r != nil; r = r.yardstick {
			r.wanted = true
		}
	}
	return some
}

func unwanted(s subject) bool {
	return !slices.ContainsFunc(s.rows(), func(r *row) bool { return r.wanted })
}

// build makes the programs before anything is measured: a compiler takes all of a machine.
func build(ctx context.Context, dir string, parts, servers []subject) error {
	tell("building")
	defer tell("")
	if len(servers) > 0 {
		if err := command(ctx, "go", "build", "-buildvcs=false", "-o",
			filepath.Join(dir, "exchange"), "exchange/cmd/exchange"); err != nil {
			return fmt.Errorf("building the exchange: %w", err)
		}
	}
	if len(parts) > 0 {
		args := append([]string{"test", "-c", "-o", dir + string(filepath.Separator)},
			packages(parts)...)
		if err := command(ctx, "go", args...); err != nil {
			return fmt.Errorf("building the benchmarks: %w", err)
		}
	}
	return nil
}

func command(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	err := cmd.Run()
	if ctx.Err() != nil {
		return errInterrupted
	}
	return err
}

// inTurns measures each subject once in each round. A subject that fails is left out from then on,
// and has no values.
func inTurns(ctx context.Context, dir string, subjects []subject, rounds int) (failed error) {
	defer func() {
		for _, s := range subjects {
			s.end()
		}
	}()
	defer tell("")
	working := slices.Clone(subjects)
	try := func(what string, do func(subject) error) {
		working = slices.DeleteFunc(working, func(s subject) bool {
			if ctx.Err() != nil {
				return true
			}
			tell("%s: %s", what, s.name())
			err := do(s)
			if err != nil {
				failed = errors.Join(failed, fmt.Errorf("%s: %w", s.name(), err))
				for _, r := range s.rows() {
					r.values, r.allocs = nil, nil
				}
			}
			return err != nil
		})
	}
	try("starting", func(s subject) error { return s.begin(ctx, dir) })
	for i := range rounds {
		try(fmt.Sprintf("round %d of %d", i+1, rounds), func(s subject) error {
			return s.measure(ctx)
		})
	}
	return failed
}

// tell shows progress on a terminal, in a line that the next call replaces.
func tell(format string, args ...any) {
	if info, err := os.Stderr.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
		fmt.Fprintf(os.Stderr, "\r\x1b[K"+format, args...)
	}
}
