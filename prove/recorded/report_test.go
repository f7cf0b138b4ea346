//go:build prove

package recorded

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"exchange/prove/exchangetest"
)

func TestTheReportOfALoadTestHasTheMembersRecorded(t *testing.T) {
	s := exchangetest.New(t, "pebble:"+t.TempDir())
	s.Start()
	file := filepath.Join(t.TempDir(), "report.json")
	out, errOut, code := s.Command("loadtest", "--address", s.Listen, "--accounts", "2",
		"--connections", "2", "--stages", "600ms@..500,400ms@500", "--mix", "50,30,20",
		"--subscribers", "diff=1,trades=1", "--json", file)
	if code != 0 {
		t.Fatalf("%d\n%s\n%s", code, out, errOut)
	}
	text, err := os.ReadFile(file)
	succeeds(t, err)
	var report any
	succeeds(t, json.Unmarshal(text, &report))
	compare(t, "report.txt", shapeOf(report, true)+"\n")
}
