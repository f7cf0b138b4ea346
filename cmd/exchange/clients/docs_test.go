package clients

import (
	"os/exec"
	"testing"

	"exchange/cmd/exchange/exchangetest"
)

// The page at /docs signs the private requests that it sends, and keeps key and secret to itself.
func TestThePageOfTheAPISignsRequests(t *testing.T) {
	s := exchangetest.New(t, "pebble:"+t.TempDir())
	s.Demo()
	s.Start()
	if out, err := exec.Command("node", "docs.mjs", "http://"+s.Listen).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
