package operator_test

import (
	"fmt"
	"strings"
	"testing"

	"exchange/prove/harness"
)

func TestOperatorsMakeKeysForParallelUse(t *testing.T) {
	h := harness.Traded(t)
	ask := harness.AsOperator(t, h.Gateway)
	f := func(parallel string, want string) {
		t.Helper()
		a := ask("POST", "/operator/v1/keys",
			`{"account":"bob","permissions":["read"],"parallel":`+parallel+`}`)
		if got := fmt.Sprint(a.Status, " ", a.Body); !strings.Contains(got, want) {
			t.Errorf("%s: %s", parallel, got)
		}
	}
	f("16", `"parallel":16`)
	f("1024", `"parallel":1024`)
	for _, no := range []string{"0", "-1", "1025", "65537"} {
		f(no, "a key for parallel use keeps 1 to 1024 nonces")
	}
	f(`"16"`, "400")
	f("1.5", "400")
	a := ask("GET", "/operator/v1/keys?account=bob", "")
	if n := strings.Count(a.Body, `"parallel":`); n != 2 || a.Status != 200 {
		t.Errorf("%d of the listed keys are for parallel use: %d %s", n, a.Status, a.Body)
	}
}
