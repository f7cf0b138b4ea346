package clients

import (
	"encoding/json"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
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

// The program in the page's chapter about the stream, as a reader copies it, places an order of the
// demo's account alice, and hears of it.
func TestTheStreamExampleOfThePageTrades(t *testing.T) {
	s := exchangetest.New(t, "pebble:"+t.TempDir())
	s.Demo()
	s.Start()
	heard := runInNode(t, strings.ReplaceAll(streamExample(t, "http://"+s.Listen),
		"http://127.0.0.1:8080", "http://"+s.Listen))
	wanted := map[string]bool{"BTC_USDT ": true, `own {"snapshot":true,`: true, "placed {": true,
		`"cause":"placed"`: true}
	for len(wanted) > 0 {
		if !heard.Scan() {
			t.Fatalf("node ended before it printed %v: %v", wanted, heard.Err())
		}
		for text := range wanted {
			if strings.Contains(heard.Text(), text) {
				delete(wanted, text)
			}
		}
	}
}

// streamExample returns the program in the page's chapter about the stream.
func streamExample(t *testing.T, address string) string {
	t.Helper()
	response, err := http.Get(address + "/api/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var document struct{ Info struct{ Description string } }
	if err := json.NewDecoder(response.Body).Decode(&document); err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("(?s)\n## The stream\n.*?```js\n(.*?)```").FindStringSubmatch(
		document.Info.Description)
	if m == nil {
		t.Fatal("the chapter about the stream has no program")
	}
	return m[1]
}
