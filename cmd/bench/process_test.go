package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

// monitored returns a server whose monitoring says that text.
func monitored(t *testing.T, text func() string) server {
	t.Helper()
	l := network.Listen("")
	h := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, text())
	})}
	go h.Serve(l) //nolint:errcheck // it ends with the test
	t.Cleanup(func() { h.Close() })
	return server{operator: l.Addr().String()}
}

// scraped returns the text of a monitoring whose counters all have that value.
func scraped(value float64) string {
	var b strings.Builder
	b.WriteString(
		"# HELP go_memstats_mallocs_total of " +
			"objects\nexchange_http_requests_total{code=\"200\"} 7\n")
	for _, name := range []string{metricAllocs, metricCycles, metricGC, metricUser, metricJournal,
		metricSnapshots, metricApplies, metricLag, metricTriggered} {
		fmt.Fprintf(&b, "%s %g\n", name, value)
	}
	return b.String()
}

func TestAScrapeHasWhatItIsAskedForOrFails(t *testing.T) {
	text := scraped(1.5e6)
	s := monitored(t, func() string { return text })
	got, err := scrape(&s)
	if err != nil || got[metricAllocs] != 1.5e6 || got[metricLag] != 1.5e6 || len(got) != 9 {
		t.Errorf("%v, %v", got, err)
	}
	text = strings.Replace(text, metricUser, "go_cpu", 1)
	if _, err := scrape(&s); err == nil || !strings.Contains(err.Error(), metricUser) {
		t.Error(err)
	}
}

// Each scrape allocates ten, and each request three; the collector's share is one of four seconds.
func TestAllocationsOfAScrapeAreNotThoseOfRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(options{length: 1})
		p.clients = served(t, 1, 1, func(w http.ResponseWriter, _ *http.Request) { rests(w, 1) })
		scrapes, requests := 0, 1.0 // a load as short as that is one request
		p.operator = monitored(t, func() string {
			scrapes++
			loads := float64(max(0, scrapes-2))
			return fmt.Sprintf("%s %g\n%s %g\n%s %g\n%s %g\n%s %g\n%s 0\n%s 0\n%s 0\n%s 0\n",
				metricAllocs, float64(10*scrapes)+3*loads*requests,
				metricCycles, float64(int(loads)/2), metricGC, loads, metricUser, 3*loads,
				metricJournal, 50*loads*requests, metricSnapshots, metricApplies, metricLag,
				metricTriggered)
		}).operator
		if err := p.measure(t.Context()); err != nil {
			t.Fatal(err)
		}
		if scrapes != 4 {
			t.Errorf("%d scrapes: it loads until there was a cycle", scrapes)
		}
		for r, want := range map[*row]float64{p.journal: 50, p.allocs: 3, p.gc: 25} {
			if !slices.Equal(r.values, []float64{want}) {
				t.Errorf("%s: %v", r.subject, r.values)
			}
		}
	})
}
