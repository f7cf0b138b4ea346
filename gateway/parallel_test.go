package gateway

import (
	"fmt"
	"strings"
	"testing"

	"exchange/core/event"
)

// A client with many connections takes its nonces from one counter. The requests overtake each
// other, and none is refused; each is then sent again, and all of these are.
func TestAKeyForParallelUseServesManyConnections(t *testing.T) {
	h := traded(t)
	if _, err := h.engine.CreateParallelKey("test", "bob", "key-parallel", "secret-parallel",
		event.AllPermissions, nil, 64); err != nil {
		t.Fatal(err)
	}
	p := order("buy", "ETH_USDT", "0.01", "1")
	const connections, rounds = 60, 5
	for round := range rounds {
		first := uint64(1000 * (round + 1))
		send := func(i int) answer {
			nonce := first + uint64(i*37%connections)
			if i%10 == 9 {
				return h.do("GET", "/api/v1/wallets/", "", "", signed("parallel", nonce, "")...)
			}
			return h.do("POST", "/api/v1/order/", formType, p, signed("parallel", nonce, p)...)
		}
		for i, a := range together(connections, send) {
			if a.status != 201 && (i%10 != 9 || a.status != 200) {
				t.Errorf("round %d: %d %s", round, a.status, a.body)
			}
		}
		for _, a := range together(connections, send) {
			if last := usedNonce(first + connections - 1); a.status != 401 || a.body != last {
				t.Errorf("round %d, sent again: %d %s", round, a.status, a.body)
			}
		}
	}
	if err := h.engine.VerifyAtRest(); err != nil {
		t.Error(err)
	}
	a := h.do("GET", "/api/v1/orders/own/?pair=ETH_USDT&limit=1000", "", "",
		signed("parallel", 10_000, "")...)
	if n := strings.Count(a.body, `"id":`); n != rounds*connections*9/10 {
		t.Errorf("%d orders", n)
	}
}

func TestOperatorsMakeKeysForParallelUse(t *testing.T) {
	h := traded(t)
	ask := asOperator(t, h.gateway)
	f := func(parallel string, want string) {
		t.Helper()
		a := ask("POST", "/operator/v1/keys",
			`{"account":"bob","permissions":["read"],"parallel":`+parallel+`}`)
		if got := fmt.Sprint(a.status, " ", a.body); !strings.Contains(got, want) {
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
	if n := strings.Count(a.body, `"parallel":`); n != 2 || a.status != 200 {
		t.Errorf("%d of the listed keys are for parallel use: %d %s", n, a.status, a.body)
	}
}
