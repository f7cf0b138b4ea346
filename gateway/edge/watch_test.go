package edge_test

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"exchange/gateway"
	"exchange/gateway/edge"
	"exchange/gateway/listen"
	"exchange/gateway/operator"
	"exchange/prove/harness"
)

// The right to read metrics is no right to move money, nor to read the memory.
func TestTheMetricsListenerHasMetricsAlone(t *testing.T) {
	harness.Bubble(t, func(t *testing.T) {
		const token = "a-token-of-the-metrics-0123456789"
		for _, want := range []string{"", token} {
			h := harness.New(t, nil)
			h.Gateway.SetMetricsToken(want)
			h.Gateway.Operators().Operator.AllowGuesses() // as many guesses as there are paths
			l := harness.NewNetwork(t)
			t.Cleanup(func() { l.Close() })
			go h.Gateway.ServeMetrics(l) //nolint:errcheck // ends with the listener
			ask := func(method, path, authorization string) (int, string) {
				t.Helper()
				statuses, bodies := converse(t, l,
					method+" "+path+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"+authorization+
						"\r\n")
				if len(statuses) != 1 {
					t.Fatalf("%s %s: %v", method, path, statuses)
				}
				return statuses[0], bodies[0]
			}
			right := ""
			if want != "" {
				right = "Authorization: Bearer " + want + "\r\n"
				for _, wrong := range []string{"", "Authorization: Bearer wrong\r\n",
					"Authorization: Bearer " + harness.OperatorToken + "\r\n"} {
					if status, text := ask("GET", edge.MetricsPath, wrong); status != 401 ||
						strings.Contains(text, "exchange_") {
						t.Errorf("%q: %d %s", wrong, status, text)
					}
				}
			}
			if status, text := ask("GET", edge.MetricsPath, right); status != 200 ||
				!strings.Contains(text, "exchange_orders_accepted_total") {
				t.Errorf("%d %s", status, text)
			}
			for _, path := range []string{"GET " + edge.PprofPath + "/heap",
				"GET /operator/v1/accounts",
				"POST " + edge.MetricsPath, "GET /healthz", "GET /api/v1/pairs/"} {
				method, path, _ := strings.Cut(path, " ")
				if status, text := ask(method, path, right); status != 404 {
					t.Errorf("%s %s: %d %s", method, path, status, text)
				}
			}
		}
	})
}

func TestWrongTokensOfTheMetricsAreLimited(t *testing.T) {
	harness.Bubble(t, func(t *testing.T) {
		const token = "a-token-of-the-metrics-0123456789"
		h, clock := harness.Limited(t, func(*edge.Options) {})
		h.Gateway.SetMetricsToken(token)
		l := harness.NewNetwork(t)
		t.Cleanup(func() { l.Close() })
		go h.Gateway.ServeMetrics(l) //nolint:errcheck // ends with the listener
		ask := func(authorization string) string {
			t.Helper()
			statuses, _ := converse(t, l,
				"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"+authorization+"\r\n")
			return fmt.Sprint(statuses)
		}
		for i := range operator.GuessesAtOnce {
			wrong := "Authorization: Bearer " + strings.Repeat("x", len(token)) + "\r\n"
			if i%2 == 1 {
				wrong = ""
			}
			if got := ask(wrong); got != "[401]" {
				t.Errorf("guess %d: %s", i, got)
			}
		}
		for range 3 {
			if got := ask("Authorization: Bearer wrong\r\n"); got != "[429]" {
				t.Errorf("one guess too many: %s", got)
			}
			if got := ask("Authorization: Bearer " + token + "\r\n"); got != "[200]" {
				t.Errorf("the right one passes all the same: %s", got)
			}
		}
		clock.Pass(time.Second)
		if got := ask("Authorization: Bearer wrong\r\n"); got != "[401]" {
			t.Errorf("a second later: %s", got)
		}
	})
}

func TestTheMetricsListenerIsPlainOnLoopbackOnly(t *testing.T) {
	harness.Bubble(t, func(t *testing.T) {
		g := gateway.New(edge.Options{Log: harness.Quiet(), BodyBytes: 1 << 10,
			HeaderBytes: 1 << 10, Connections: 10})
		l := harness.NewNetwork(t)
		l.At = &net.TCPAddr{IP: net.IPv4zero}
		if err := g.ServeMetrics(l); !errors.Is(err, listen.ErrPlain) {
			t.Errorf("error is %v", err)
		}
	})
}
