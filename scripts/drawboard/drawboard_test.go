package main

import (
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

// A Prometheus of the test has two samples of each series.
func testPrometheus(t *testing.T) *prometheus {
	t.Helper()
	from := time.Unix(1_790_000_000, 0).UTC()
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if q := r.FormValue("query"); strings.Contains(q, "$") {
			fmt.Fprintf(w, `{"status":"error","error":"a variable is left in %s"}`, q)
			return
		}
		fmt.Fprintf(w, `{"data":{"result":[
			{"metric":{"route":"b & c"},"values":[[%d,"NaN"],[%[1]d.0,"3"]]},
			{"metric":{"route":"a"},"values":[[%[1]d,"1"],[%d,"0.5"]]}]}}`, from.Unix(), from.Unix()+1)
	})
	return &prometheus{server: "http://fake", from: from, to: from.Add(2 * time.Second),
		scrape: time.Second, client: http.Client{Transport: answering{answer}}}
}

// answering asks a handler in place of a server.
type answering struct{ http.Handler }

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	a.ServeHTTP(w, r)
	return w.Result(), nil
}

// The whole board of the repository can be drawn, and is well-formed.
func TestBoard(t *testing.T) {
	b, err := readBoard("../../docs/grafana-dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, p := range b.Panels {
		if p.Type == "row" {
			rows = append(rows, p.Title)
		}
	}
	svg, err := draw(b, testPrometheus(t), rows)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		part, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if s, ok := part.(xml.CharData); ok {
			texts = append(texts, strings.TrimSpace(string(s)))
		}
	}
	for _, p := range b.Panels {
		if p.Type != "stat" && !slices.Contains(texts, p.Title) {
			t.Errorf("%q is not in the picture", p.Title)
		}
	}
	if !slices.Contains(texts, "b & c") {
		t.Error("a label is not in the legend")
	}
	if _, err := draw(b, testPrometheus(t), []string{"Not there"}); err == nil {
		t.Error("a row that is not there is drawn")
	}
}

// A closed row is drawn without its panels, and what follows moves up.
func TestClosedRows(t *testing.T) {
	b := &board{Panels: make([]panel, 4)}
	for i, p := range []struct {
		title, kind string
		y, h        int
	}{{"one", "row", 0, 1}, {"in one", "stat", 1, 8}, {"two", "row", 9, 1},
		{"in two", "stat", 10, 4}} {
		b.Panels[i].Title, b.Panels[i].Type = p.title, p.kind
		b.Panels[i].GridPos.Y, b.Panels[i].GridPos.H = p.y, p.h
	}
	all, height, err := b.layout([]string{"two"})
	if err != nil || height != 6 || len(all) != 3 {
		t.Fatal(all, height, err)
	}
	if all[0].hidden != 1 || all[1].y != 1 || all[1].hidden != 0 || all[2].y != 2 {
		t.Error(all)
	}
}

func TestUnits(t *testing.T) {
	for _, c := range []struct {
		v    float64
		unit string
		want string
	}{{0, "s", "0 s"}, {0.0000123, "s", "12.3 µs"}, {1, "s", "1 s"}, {90, "s", "1.5 min"},
		{1536, "bytes", "1.5 KiB"}, {2e6, "Bps", "2 MB/s"}, {0, "ops", "0 ops/s"},
		{1200, "reqps", "1.2K req/s"}, {0.5, "percentunit", "50%"}, {200, "none", "200"}} {
		if got := show(c.v, c.unit, 3); got != c.want {
			t.Errorf("%g in %s: %q, want %q", c.v, c.unit, got, c.want)
		}
	}
}

func TestAxes(t *testing.T) {
	lines := []line{{values: []float64{math.NaN(), 0, 3, 170}}}
	a := newAxis(lines, &field{}, 100, 0)
	if got := a.ticks(); !slices.Equal(got, []float64{0, 50, 100, 150, 200}) {
		t.Error(got)
	}
	if a.place(0) != 100 || a.place(200) != 0 {
		t.Error(a)
	}
	f := &field{}
	f.Custom.Scale.Type = "log"
	a = newAxis(lines, f, 100, 0)
	if got := a.ticks(); !slices.Equal(got, []float64{1, 10, 100, 1000}) || a.has(0) {
		t.Error(got)
	}
	a = newAxis([]line{{values: []float64{3000}}}, &field{Unit: "bytes"}, 100, 0)
	if got := a.ticks(); !slices.Equal(got, []float64{0, 1024, 2048, 3072}) {
		t.Error(got)
	}
}
