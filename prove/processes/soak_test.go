//go:build prove

package processes

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exchange/loadtest"
	"exchange/prove/exchangetest"
)

// A short soak of the real program. scripts/soak runs the same for longer. Its bound is so wide
// that no machine exceeds it; that of the last run is one that each machine exceeds. Growth is not
// checked: it is not steady with so few orders.
func TestASoakReportsTheServersActivity(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "store")
	s := exchangetest.New(t, "pebble:"+folder)
	s.Env = append(s.Env, patientWithDisks, "EXCHANGE_TIMING_SNAPSHOT_MIN_MS=1000",
		"EXCHANGE_SNAPSHOT_MIN_RECORDS=50")
	s.Start()
	dir := t.TempDir()
	file, plot := filepath.Join(dir, "report.json"), filepath.Join(dir, "soak.svg")
	common := []string{"loadtest", "--address", s.Listen, "--accounts", "8", "--connections", "4",
		"--rate", "200", "--mix", "60,30,10", "--open-orders", "80"}
	out, errOut, code := s.Command(append(common, "--duration", "8s", "--row", "1s",
		"--deposits", "20", "--subscribers", "diff=2,trades=2", "--disk", folder, "--stall", "1h",
		"--json", file, "--plot", plot)...)
	if code != 0 || !strings.Contains(out, "No difference was found.") ||
		!strings.Contains(out, "the audit is clean") || !strings.Contains(out, "longest stage") {
		t.Fatalf("exit code %d:\n%s\n%s", code, out, errOut)
	}
	text := must[[]byte](t)(os.ReadFile(file))
	var r loadtest.Report
	succeeds(t, json.Unmarshal(text, &r))
	if len(r.Minutes) < 3 || len(r.Samples) < 3 || r.Banker == nil || r.Banker.Deposits == 0 ||
		r.Banker.Failed > 0 || r.Pace.Sent != r.Requests || len(r.Broken) > 0 {
		t.Errorf("%d rows, %d samples, %+v, %+v, %q", len(r.Minutes), len(r.Samples), r.Banker,
			r.Pace, r.Broken)
	}
	last := r.Samples[len(r.Samples)-1]
	if last.RSS == 0 || last.Heap == 0 || last.Disk == 0 || last.CPU == 0 || last.Placed == 0 ||
		last.Open < 1 || last.Open > 80 {
		t.Errorf("%+v", last)
	}
	snapshots := 0
	for _, m := range r.Marks {
		if m.Kind == "snapshot" && m.Stages["image"] > 0 && m.To >= m.From {
			snapshots++
		}
	}
	svg, err := os.ReadFile(plot)
	if drawn := string(svg); snapshots == 0 || err != nil ||
		!strings.Contains(drawn, `class="snapshot"`) || !strings.HasPrefix(drawn, "<svg ") {
		t.Errorf("%+v: %v %.300s", r.Marks, err, svg)
	}
	nothingStays(t, s)
	out, errOut, code = s.Command(append(common, "--duration", "1s", "--stall", "1us")...)
	if code != 1 || !strings.Contains(out, "BROKEN stall: ") ||
		!strings.Contains(errOut, "have a request of more than 0.001 ms") {
		t.Errorf("exit code %d:\n%s\n%s", code, out, errOut)
	}
}
