package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
)

func main() {
	boardFile := flag.String("board", "docs/grafana-dashboard.json", "the board's `file`")
	report := flag.String("report", "", "the load tester's JSON `file`; its time is drawn")
	server := flag.String("prometheus", "http://127.0.0.1:9090", "the `address` of Prometheus")
	scrape := flag.Duration("scrape", time.Second, "the `time` from one sample to the next")
	open := flag.String("open", "", "`titles` of the rows that are drawn open, with commas between")
	flag.Parse()
	if err := run(*boardFile, *report, *server, *scrape, strings.Split(*open, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "drawboard:", err)
		os.Exit(1)
	}
}

func run(boardFile, report, server string, scrape time.Duration, open []string) error {
	b, err := readBoard(boardFile)
	if err != nil {
		return err
	}
	from, to, err := loadTime(report)
	if err != nil {
		return err
	}
	svg, err := draw(b, &prometheus{server: server, from: from, to: to, scrape: scrape}, open)
	if err != nil {
		return err
	}
	_, err = os.Stdout.WriteString(svg)
	return err
}

// loadTime returns when the load of a report began and ended.
func loadTime(file string) (from, to time.Time, err error) {
	var r struct {
		Started time.Time `json:"started"`
		Seconds float64   `json:"seconds"`
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return from, to, err
	}
	if err = json.Unmarshal(text, &r); err != nil {
		return from, to, fmt.Errorf("%s: %w", file, err)
	}
	from = r.Started.UTC().Truncate(time.Second)
	return from, from.Add(time.Duration(r.Seconds) * time.Second), nil
}
