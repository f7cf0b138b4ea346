package metrics_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"exchange/prove/harness"
)

// An alertRule is an alert of docs/alerts.yaml.
type alertRule struct {
	Alert       string
	Expr        string
	For         string
	Labels      map[string]string
	Annotations map[string]string
}

// readAlerts reads docs/alerts.yaml like Prometheus: an unknown field is an error.
func readAlerts(t *testing.T) (rules []alertRule) {
	t.Helper()
	text := harness.Must(os.ReadFile("../../docs/alerts.yaml"))
	var file struct {
		Groups []struct {
			Name  string
			Rules []alertRule
		}
	}
	harness.Worked(t, yaml.UnmarshalWithOptions(text, &file, yaml.DisallowUnknownField()))
	for _, g := range file.Groups {
		rules = append(rules, g.Rules...)
	}
	if len(rules) < 20 {
		t.Fatalf("docs/alerts.yaml has %d alerts: is it read rightly?", len(rules))
	}
	return rules
}

// The dashboard, the alerts and docs/runbook.md name the same program.
func TestAlertsNameMetricsThatThereAre(t *testing.T) {
	scrape := harness.Scraping(t, harness.New(t, nil).Gateway)
	scrape() // so that the scrape contains a request
	s := scrape().WithAll(t)
	for _, rule := range readAlerts(t) {
		// About a scrape, not in it.
		expr := strings.ReplaceAll(rule.Expr, `up{job="exchange"}`, "")
		if used := s.UsedBy(t, rule.Alert, expr); len(used) == 0 && expr == rule.Expr {
			t.Errorf("%s uses no metric", rule.Alert)
		}
		if !strings.HasPrefix(rule.Alert, "Exchange") || rule.Annotations["summary"] == "" ||
			!slices.Contains([]string{"page", "ticket"}, rule.Labels["severity"]) {
			t.Errorf("%s lacks something: %+v", rule.Alert, rule)
		}
	}
}

var runbookChapter = regexp.MustCompile(`(?m)^### (Exchange[A-Za-z]+)$`)

// Each alert has a chapter of its own, and each chapter an alert.
func TestEachAlertHasAChapterInTheRunbook(t *testing.T) {
	text := harness.Must(os.ReadFile("../../docs/runbook.md"))
	chapters := map[string]bool{}
	for _, m := range runbookChapter.FindAllStringSubmatch(string(text), -1) {
		chapters[m[1]] = true
	}
	for _, rule := range readAlerts(t) {
		if !chapters[rule.Alert] {
			t.Errorf("docs/runbook.md has no chapter %s", rule.Alert)
		}
		delete(chapters, rule.Alert)
		want := "runbook.md#" + strings.ToLower(rule.Alert)
		if got := rule.Annotations["runbook"]; got != want {
			t.Errorf("%s leads to %s, want %s", rule.Alert, got, want)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(chapters)) {
		t.Errorf("docs/runbook.md has a chapter %s, and there is no such alert", name)
	}
}
