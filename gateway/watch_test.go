package gateway

import (
	"errors"
	"net"
	"strings"
	"testing"
)

// What monitoring may read is no right to move money, nor to look into memory.
func TestTheMetricsListenerHasMetricsAlone(t *testing.T) {
	const token = "a-token-of-the-metrics-0123456789"
	for _, want := range []string{"", token} {
		h := newHarness(t, nil)
		h.gateway.SetMetricsToken(want)
		h.gateway.guesses.buckets = nil // as many guesses as there are paths
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		go h.gateway.ServeMetrics(l) //nolint:errcheck // ends with the listener
		ask := func(method, path, authorization string) (int, string) {
			t.Helper()
			statuses, bodies := converse(t, l.Addr().String(), method+" "+path+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"+authorization+"\r\n")
			if len(statuses) != 1 {
				t.Fatalf("%s %s: %v", method, path, statuses)
			}
			return statuses[0], bodies[0]
		}
		right := ""
		if want != "" {
			right = "Authorization: Bearer " + want + "\r\n"
			for _, wrong := range []string{"", "Authorization: Bearer wrong\r\n", "Authorization: Bearer " + operatorToken + "\r\n"} {
				if status, text := ask("GET", metricsPath, wrong); status != 401 || strings.Contains(text, "exchange_") {
					t.Errorf("%q: %d %s", wrong, status, text)
				}
			}
		}
		if status, text := ask("GET", metricsPath, right); status != 200 || !strings.Contains(text, "exchange_orders_accepted_total") {
			t.Errorf("%d %s", status, text)
		}
		for _, path := range []string{"GET " + pprofPath + "/heap", "GET /operator/v1/accounts", "POST " + metricsPath, "GET /healthz", "GET /api/v1/pairs/"} {
			method, path, _ := strings.Cut(path, " ")
			if status, text := ask(method, path, right); status != 404 {
				t.Errorf("%s %s: %d %s", method, path, status, text)
			}
		}
	}
}

func TestWrongTokensOfTheMetricsAreLimited(t *testing.T) {
	h := newHarness(t, nil)
	h.gateway.SetMetricsToken("a-token-of-the-metrics-0123456789")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go h.gateway.ServeMetrics(l) //nolint:errcheck // ends with the listener
	throttled := false
	for range 100 * guessesAtOnce { // some come back with time
		statuses, _ := converse(t, l.Addr().String(), "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
		if throttled = len(statuses) == 1 && statuses[0] == 429; throttled {
			break
		}
	}
	if !throttled {
		t.Error("tokens may be guessed without end")
	}
}

func TestTheMetricsListenerIsPlainOnLoopbackOnly(t *testing.T) {
	g := New(Options{Log: quiet(), BodyBytes: 1 << 10, HeaderBytes: 1 << 10, Connections: 10})
	l, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := g.ServeMetrics(l); !errors.Is(err, ErrPlain) {
		t.Errorf("error is %v", err)
	}
}
