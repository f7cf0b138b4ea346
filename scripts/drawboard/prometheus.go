package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A prometheus evaluates expressions of a board over the time that is drawn.
type prometheus struct {
	server   string // http://host:port
	from, to time.Time
	scrape   time.Duration // from one sample to the next
	client   http.Client
}

// A line is one series of a panel: a value for each step, NaN where there is none.
type line struct {
	name   string
	values []float64
}

// last returns the last value; NaN if there is none.
func (l line) last() float64 {
	for _, v := range slices.Backward(l.values) {
		if !math.IsNaN(v) {
			return v
		}
	}
	return math.NaN()
}

// isZero reports whether all values that there are are 0.
func (l line) isZero() bool {
	return !slices.ContainsFunc(l.values, func(v float64) bool { return v != 0 && !math.IsNaN(v) })
}

// steps is how many values a line has.
func (p *prometheus) steps() int { return int(p.to.Sub(p.from)/p.scrape) + 1 }

// lines returns all series of a panel, in the order of its targets.
func (p *prometheus) lines(of *panel) (all []line, err error) {
	for _, t := range of.Targets {
		found, err := p.query(t)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", of.Title, err)
		}
		all = append(all, found...)
	}
	return all, nil
}

// query evaluates an expression at each step. The variables become what Grafana puts in for them:
// all instances, and a rate's interval of four samples.
func (p *prometheus) query(t target) ([]line, error) {
	expr := strings.NewReplacer("$instance", ".*",
		"$__rate_interval", fmt.Sprintf("%dms", (4*p.scrape).Milliseconds())).Replace(t.Expr)
	answer, err := p.client.PostForm(p.server+"/api/v1/query_range", url.Values{
		"query": {expr},
		"start": {p.from.Format(time.RFC3339)}, "end": {p.to.Format(time.RFC3339)},
		"step": {p.scrape.String()},
	})
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	var body struct {
		Error string
		Data  struct {
			Result []struct {
				Metric map[string]string
				Values [][2]any // seconds, and the value as text
			}
		}
	}
	if err := json.NewDecoder(answer.Body).Decode(&body); err != nil {
		return nil, err
	}
	if body.Error != "" {
		return nil, fmt.Errorf("%s: %s", expr, body.Error)
	}
	var all []line
	for _, r := range body.Data.Result {
		l := line{name: nameOf(t.Legend, r.Metric), values: make([]float64, p.steps())}
		for i := range l.values {
			l.values[i] = math.NaN()
		}
		for _, v := range r.Values {
			seconds, _ := v[0].(float64)
			text, _ := v[1].(string)
			at := int(math.Round((seconds - float64(p.from.Unix())) / p.scrape.Seconds()))
			if value, err := strconv.ParseFloat(text,
				64); err == nil && at >= 0 && at < len(l.values) {
				l.values[at] = value
			}
		}
		all = append(all, l)
	}
	slices.SortStableFunc(all, func(a, b line) int { return strings.Compare(a.name, b.name) })
	return all, nil
}

// nameOf puts a series' labels into the format of its legend.
func nameOf(format string, labels map[string]string) string {
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		format = strings.ReplaceAll(format, "{{"+name+"}}", labels[name])
	}
	return format
}
