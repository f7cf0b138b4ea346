package config

import (
	"fmt"
	"strings"
	"testing"
)

// A listener's problem names an address that no other listener has by default, and problems always
// have the same order.
func TestProblemsOfListenersAreTheSameEachTime(t *testing.T) {
	for key, example := range exampleAddress {
		name := "EXCHANGE_" + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
		list := problems(t, Sources{Environ: []string{"EXCHANGE_DEMO=true", name + "=x"}})
		if len(list) != 1 || !strings.HasSuffix(list[0], "such as "+example+".") {
			t.Errorf("%s: %q", key, list)
		}
	}
	for range 20 {
		list := problems(t, Sources{Environ: []string{"EXCHANGE_DEMO=true",
			"EXCHANGE_LISTEN=127.0.0.1:8080",
			"EXCHANGE_OPERATOR=127.0.0.1:8080", "EXCHANGE_METRICS_LISTEN=127.0.0.1:8080"}})
		var reported []string
		for _, p := range list {
			key, text, _ := strings.Cut(p, " ")
			_, text, _ = strings.Cut(text, "): ")
			reported = append(reported, key+" "+text)
		}
		want := []string{"operator it has the port of listen; give it another.",
			"metrics.listen it has the port of listen; give it another.",
			"metrics.listen it has the port of operator; give it another."}
		if fmt.Sprint(reported) != fmt.Sprint(want) {
			t.Fatalf("%q", reported)
		}
	}
}
