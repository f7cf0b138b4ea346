// Package clients uses the running exchange with clients of other makers.
package clients

import (
	"os"
	"os/exec"
	"testing"

	"exchange/cmd/exchange/exchangetest"
	"exchange/persistence/redistest"
)

func TestMain(m *testing.M) { os.Exit(exchangetest.Main(m)) }

// ccxt's class btcalpha works unmodified, on both stores. scripts/test installs its package.
func TestCCXTTradesOnTheDemo(t *testing.T) {
	if _, err := os.Stat("node_modules/ccxt"); err != nil {
		t.Fatal(
			"ccxt is not installed: run `npm ci --ignore-scripts` in cmd/exchange/clients, or " +
				"all tests by `make test`, which does it")
	}
	for name, store := range map[string]string{"pebble": "pebble:" + t.TempDir(),
		"redis": redistest.Start(t).URL()} {
		t.Run(name, func(t *testing.T) {
			s := exchangetest.New(t, store)
			s.Demo()
			s.Start()
			out, err := exec.Command("node", "ccxt.mjs", "http://"+s.Listen).CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			t.Logf("%s", out)
		})
	}
}
