//go:build prove

package clients

import (
	"encoding/json"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"exchange/prove/exchangetest"
)

func TestThePageOfTheAPISignsRequests(t *testing.T) {
	pageSigns(t, demo(t, "pebble:"+t.TempDir()))
}

// The page at /docs signs its private requests, and does not reveal key or secret.
func pageSigns(t *testing.T, s *exchangetest.Server) {
	t.Helper()
	if out, err := exec.Command("node", "docs.mjs", "http://"+s.Listen).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func TestTheStreamExampleOfThePageTrades(t *testing.T) {
	pageTrades(t, demo(t, "pebble:"+t.TempDir()))
}

// The program in the page's chapter about the stream, as a reader copies it, places an order of the
// demo's account alice, and receives its event.
func pageTrades(t *testing.T, s *exchangetest.Server) {
	t.Helper()
	lines := runInNode(t, asking(t, s, streamExample(t, "http://"+s.Listen)))
	wanted := map[string]bool{"BTC_USDT ": true, `own {"snapshot":true,`: true, "placed {": true,
		`"cause":"placed"`: true}
	for len(wanted) > 0 {
		if !lines.Scan() {
			t.Fatalf("node ended before it printed %v: %v", wanted, lines.Err())
		}
		for text := range wanted {
			if strings.Contains(lines.Text(), text) {
				delete(wanted, text)
			}
		}
	}
}

// streamExample returns the program in the page's chapter about the stream.
func streamExample(t *testing.T, address string) string {
	t.Helper()
	response, err := http.Get(address + "/api/openapi.json")
	succeeds(t, err)
	defer response.Body.Close()
	var document struct{ Info struct{ Description string } }
	succeeds(t, json.NewDecoder(response.Body).Decode(&document))
	m := regexp.MustCompile("(?s)\n## The stream\n.*?```js\n(.*?)```").FindStringSubmatch(
		document.Info.Description)
	if m == nil {
		t.Fatal("the chapter about the stream has no program")
	}
	return m[1]
}
