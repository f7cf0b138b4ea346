//go:build prove

package clients

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The exchange accepts the ccxt examples of the page for traders: they run in order, on one demo,
// with alice's and bob's keys.
func TestTheExamplesOfTheTradingPageRunInCCXT(t *testing.T) {
	onTheDemo(t, "pebble:"+t.TempDir(), tradingExamples(t), "ccxt")
}

// tradingExamples returns a script of the examples in docs/trading.md.
func tradingExamples(t *testing.T) (script string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/trading.md")
	succeeds(t, err)
	blocks := regexp.MustCompile("(?s)```js\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	var program strings.Builder
	program.WriteString("import { connect } from '" + workingFolder(t) + "/connect.mjs';\n" +
		"const { client } = await connect(process.argv[2], process.argv[3]);\n" +
		"const [alice, bob] = ['alice', 'bob'].map((name) => " +
		"client(`demo-${name}`, `demo-${name}-secret`));\n" +
		// something to trade with, and a last price
		"await alice.createOrder('BTC/USDT', 'limit', 'sell', 5, 50000);\n" +
		"await bob.createOrder('BTC/USDT', 'limit', 'buy', 1, 50000);\n")
	calls := 0
	for _, b := range blocks {
		program.WriteString("{\n" + b[1] + "}\n")
		calls += strings.Count(b[1], "await ")
	}
	if calls < 15 {
		t.Fatalf("the page has %d examples for ccxt", calls)
	}
	script = t.TempDir() + "/examples.mjs"
	succeeds(t, os.WriteFile(script, []byte(program.String()), 0o600))
	return script
}

func workingFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.Getwd()
	succeeds(t, err)
	return folder
}
