package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"exchange/loadtest"
)

// A tester is `exchange loadtest` beside the bare generator of this program. Both send the same mix
// from as many connections and accounts, in turns on one exchange.
type tester struct {
	server
	dir          string // with the program, and for reports
	bare, tested *row
}

func newTester(o options) *tester {
	t := &tester{server: server{title: "load tester", options: o}}
	t.bare = &row{subject: "CPU: the generator", unit: "us/request", group: groupProcess}
	t.tested = &row{subject: "CPU: the load tester", unit: "us/request", group: groupProcess,
		yardstick: t.bare, aim: aim{mostRatio: 1.5}}
	return t
}

func (t *tester) rows() []*row { return []*row{t.bare, t.tested} }

func (t *tester) begin(_ context.Context, dir string) error {
	t.dir = dir
	if err := startExchange(&t.server, dir, nil); err != nil {
		return err
	}
	_, err := t.clients.run(t.options.length)
	return err
}

// measure takes the generator before and after the load tester, half each, so a change meanwhile
// changes both.
func (t *tester) measure(ctx context.Context) error {
	requests, used := 0, 0.0
	bare := func() error {
		before := ownCPU()
		r, err := t.clients.run(t.options.length / 2)
		requests += r.requests
		used += (ownCPU() - before).Seconds() * 1e6
		return err
	}
	if err := bare(); err != nil {
		return err
	}
	n := strconv.Itoa(t.options.connections)
	report, err := t.loadtest(ctx, t.dir, "--accounts", n, "--connections", n)
	if err != nil {
		return err
	}
	if err := bare(); err != nil {
		return err
	}
	t.bare.values = append(t.bare.values, used/float64(requests))
	t.tested.values = append(t.tested.values, report.CPU.Process)
	return nil
}

// loadtest runs the load tester on the server, with the stream and the verification left out. The
// folder has the program.
func (s *server) loadtest(ctx context.Context, dir string,
	args ...string) (report loadtest.Report, err error) {
	file := filepath.Join(dir, "loadtest.json")
	cmd := exec.CommandContext(ctx, filepath.Join(dir, "exchange"), append([]string{"loadtest",
		"--address", s.address, "--operator", s.operator, "--pairs", "1", "--duration",
		s.options.length.String(), "--mix", "60,40,0", "--subscribers", "none", "--no-verify",
		"--json", file}, args...)...)
	cmd.Env = append(os.Environ(), "EXCHANGE_OPERATOR_TOKEN="+token)
	if out, err := cmd.CombinedOutput(); err != nil {
		return report, fmt.Errorf("%w\n%s", err, out)
	}
	text, err := os.ReadFile(file)
	return report, errors.Join(err, json.Unmarshal(text, &report))
}
