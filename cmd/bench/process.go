package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// A process is an exchange on Pebble whose own process is measured: allocations of a request, the
// cost of collecting, and the journal's bytes.
type process struct {
	server
	journal, allocs, gc *row
}

func newProcess(o options) *process {
	p := &process{server: server{title: "process of an exchange", options: o}}
	p.journal = &row{subject: "journal of a request: Pebble", unit: "bytes", group: groupProcess}
	p.allocs = &row{subject: "allocations of a request: Pebble", unit: "allocs",
		group: groupProcess, aim: aim{most: 2}}
	p.gc = &row{subject: "GC's share of the CPU: Pebble", unit: "%", group: groupProcess,
		aim: aim{most: 5}}
	return p
}

func (p *process) rows() []*row { return []*row{p.journal, p.allocs, p.gc} }

func (p *process) begin(_ context.Context, dir string) error {
	if err := startExchange(&p.server, dir, nil); err != nil {
		return err
	}
	_, err := p.clients.run(p.options.length)
	return err
}

// measure loads until the collector has run, because a collection's cost is known only at the end
// of a cycle.
func (p *process) measure(context.Context) error {
	empty, err := scrape(&p.server)
	if err != nil {
		return err
	}
	before, err := scrape(&p.server)
	if err != nil {
		return err
	}
	ofScrape := before[metricAllocs] - empty[metricAllocs]
	const most = 20
	var requests float64
	for range most {
		r, err := p.clients.run(p.options.length)
		if err != nil {
			return err
		}
		requests += float64(r.requests)
		after, err := scrape(&p.server)
		if err != nil {
			return err
		}
		before[metricAllocs] += ofScrape
		grown := func(name string) float64 { return after[name] - before[name] }
		if grown(metricCycles) == 0 {
			continue
		}
		p.journal.values = append(p.journal.values, grown(metricJournal)/requests)
		p.allocs.values = append(p.allocs.values, grown(metricAllocs)/requests)
		p.gc.values = append(p.gc.values, 100*grown(metricGC)/(grown(metricGC)+grown(metricUser)))
		return nil
	}
	return fmt.Errorf("the collector did not run in %d loads of %v", most, p.options.length)
}

// The numbers that are read from an exchange's monitoring.
const (
	metricAllocs    = "go_memstats_mallocs_total"
	metricCycles    = "go_gc_duration_seconds_count"
	metricGC        = "go_cpu_classes_gc_total_cpu_seconds_total" // both as of the end of a cycle
	metricUser      = "go_cpu_classes_user_cpu_seconds_total"
	metricJournal   = "exchange_journal_batch_bytes_sum"
	metricSnapshots = "exchange_store_snapshot_duration_seconds_count"
	metricApplies   = "exchange_store_apply_duration_seconds_count"
	metricLag       = "exchange_projection_lag_rows"
	metricTriggered = "exchange_orders_triggered_total"
)

// scrape reads all numbers of an exchange's monitoring that have no labels.
func scrape(s *server) (map[string]float64, error) {
	text, err := s.get("/metrics")
	if err != nil {
		return nil, err
	}
	values := map[string]float64{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if v, err := strconv.ParseFloat(value, 64); err == nil && !strings.Contains(name, "{") {
			values[name] = v
		}
	}
	for _, name := range []string{metricAllocs, metricCycles, metricGC, metricUser, metricJournal,
		metricSnapshots, metricApplies, metricLag, metricTriggered} {
		if _, ok := values[name]; !ok {
			return nil, fmt.Errorf("no %s among the metrics", name)
		}
	}
	return values, nil
}
