//go:build prove

// Package clients uses the running exchange with third-party clients.
package clients

import (
	"os"
	"os/exec"
	"testing"

	"exchange/persistence/redistest"
	"exchange/prove/exchangetest"
)

func TestMain(m *testing.M) { os.Exit(exchangetest.Main(m)) }

// versionsOfCCXT are the packages of package.json that are ccxt, as published.
var versionsOfCCXT = []string{"ccxt", "ccxt-2.0.1"}

// ccxt's class btcalpha works unmodified, on both stores. scripts/test installs its packages.
func TestCCXTTradesOnTheDemo(t *testing.T) {
	for name, store := range map[string]string{"pebble": "pebble:" + t.TempDir(),
		"redis": redistest.Start(t).URL()} {
		t.Run(name, func(t *testing.T) { onTheDemo(t, store, "ccxt.mjs", "ccxt") })
	}
	t.Run("2.0.1", func(t *testing.T) {
		onTheDemo(t, "pebble:"+t.TempDir(), "ccxt.mjs", "ccxt-2.0.1")
	})
}

// Each instruction reaches the exchange through ccxt, by its name and by each alias.
func TestCCXTSendsEveryInstruction(t *testing.T) {
	for _, version := range versionsOfCCXT {
		t.Run(version, func(t *testing.T) {
			onTheDemo(t, "pebble:"+t.TempDir(), "instructions.mjs", version)
		})
	}
}

// onTheDemo runs a script with a version of ccxt against a new demo.
func onTheDemo(t *testing.T, store, script, version string) {
	t.Helper()
	inCCXT(t, demo(t, store), script, version)
}

// demo serves a new demo on a store.
func demo(t *testing.T, store string) *exchangetest.Server {
	t.Helper()
	s := exchangetest.New(t, store)
	s.Demo()
	s.Start()
	return s
}

// inCCXT runs a script with a version of ccxt.
func inCCXT(t *testing.T, s *exchangetest.Server, script, version string) {
	t.Helper()
	installed(t, version)
	out, err := exec.Command("node", script, "http://"+s.Listen, version).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// installed requires a package of package.json.
func installed(t *testing.T, name string) {
	t.Helper()
	if _, err := os.Stat("../node_modules/" + name); err != nil {
		t.Fatalf("%s is not installed: run `npm ci --ignore-scripts` in prove, or "+
			"`make smoke`, which does it", name)
	}
}
