package crash

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"exchange/cmd/exchange/exchangetest"
	"exchange/persistence/redistest"
)

// Subscribers with an unmodified client keep the book that REST shows, through kills of the
// exchange.
func TestSubscribersKeepTheBookThroughKills(t *testing.T) {
	if _, err := os.Stat("../clients/node_modules/socket.io-client"); err != nil {
		t.Fatal(
			"socket.io-client is not installed: run `npm ci --ignore-scripts` in " +
				"cmd/exchange/clients, or all tests by `make test`, which does it")
	}
	for name, store := range map[string]string{"pebble": "pebble:" + t.TempDir(),
		"redis": redistest.Start(t).URL()} {
		t.Run(name, func(t *testing.T) {
			s := exchangetest.New(t, store)
			w := &world{t: t, s: s}
			s.Start()
			w.open(4, newRandom(t))
			node := exec.Command("node", "../clients/stream.mjs", "http://"+s.Listen, "BTC_USDT")
			var out strings.Builder
			node.Stdout, node.Stderr = &out, &out
			in, err := node.StdinPipe()
			if err == nil {
				err = node.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = node.Process.Kill() }) // it has ended, but after a failure
			for range 3 {
				w.load(400, func() {})
				w.load(100, func() { s.Kill(); s.Start() })
			}
			w.load(400, func() {})
			io.WriteString(in, "\n") //nolint:errcheck // only its end counts
			in.Close()
			err = node.Wait()
			var r struct {
				Compared, Tops, Bests, Depths, Checksums, Trades, Fulls, Candles, Statuses,
				Connects int
			}
			if err != nil || json.Unmarshal([]byte(out.String()), &r) != nil {
				t.Fatalf("%v\n%s", err, out.String())
			}
			if r.Compared < 20 || min(r.Tops, r.Bests, r.Depths, r.Checksums,
				r.Trades, r.Fulls, r.Candles) == 0 || min(r.Connects, r.Statuses) < 2*4 {
				t.Errorf("too little was seen: %+v", r)
			}
			t.Logf("%+v", r)
		})
	}
}
