package edge_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"exchange/prove/harness"
)

// A wire is a connection whose other end has sent all its bytes, and reads all answers after that.
type wire struct {
	in  bytes.Reader
	out bytes.Buffer
}

var localAddr = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}

func (w *wire) Read(b []byte) (int, error)       { return w.in.Read(b) }
func (w *wire) Write(b []byte) (int, error)      { return w.out.Write(b) }
func (w *wire) Close() error                     { return nil }
func (w *wire) LocalAddr() net.Addr              { return localAddr }
func (w *wire) RemoteAddr() net.Addr             { return localAddr }
func (w *wire) SetDeadline(time.Time) error      { return nil }
func (w *wire) SetReadDeadline(time.Time) error  { return nil }
func (w *wire) SetWriteDeadline(time.Time) error { return nil }

// All bytes may come in, to the public listener and to the operator's. Each request has a whole
// answer of a documented status, which is JSON if it says so. No account changes without its
// signature.
func FuzzRequests(f *testing.F) {
	harnesses := harness.BenchesOf(f, func(observed bool) *harness.Exchange {
		h := harness.NewOf(f, observed, nil)
		h.Account("alice")
		h.Account("bob")
		h.Deposit("alice", "100", "BTC", "first")
		return h
	})
	for _, path := range []string{"/", "/api/v1/orderbook/BTC_USDT/?group=1&limit_sell=3",
		"/api/v1/exchanges/?limit=2&offset=1&ordering=id",
		"/api/charts/BTC_USDT/5/chart/?limit=3&since=1&until=99999999999",
		"/api/v1/ticker/?pair=X_Y", "/api/v1/pairs?currency1=BTC", "/healthz", "/metrics",
		"/api/v1/orders/own/?status=1&type=buy&client_order_id=%61", "/api/v1/order/%31/",
		"/api/v1/../v1/pairs//", "/socket.v2/?EIO=4&transport=polling"} {
		f.Add(
			[]byte(
				"GET "+path+
					" HTTP/1.1\r\nHost: a\r\nX-KEY: key-alice\r\nX-NONCE: 1\r\nX-SIGN: 00\r\n\r\n"),
			false)
	}
	for _, body := range []string{"amount=1&pair=BTC_USDT&price=1&type=sell", "order=1",
		`{"order":1}`, `amount=1e-9&pair=&price=-1&type=x`, `{"amount":"1","amount":2}`, "%zz"} {
		for _, kind := range []string{"application/x-www-form-urlencoded", "application/json"} {
			b := []byte("POST /api/v1/order/ HTTP/1.1\r\nHost: a\r\nContent-Type: " + kind +
				"\r\nX-KEY: key-alice\r\nX-NONCE: 1\r\nX-SIGN: " + strings.Repeat("0", 64) +
				"\r\nContent-Length: " + jsonNumber(len(body)) + "\r\n\r\n" + body)
			f.Add(b, false)
			f.Add(append(bytes.Clone(b), b...), false) // in one go
		}
	}
	f.Add(
		[]byte(
			"POST /api/v1/order/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: "+
				"chunked\r\nContent-Length: 3\r\n\r\n1\r\na\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n"),
		false)
	f.Add([]byte("GET / HTTP/1.1\r\nX-Forwarded-For: 1.2.3.4, ::1\r\nContent-Length: -1\r\n\r\n"),
		false)
	for _, path := range []string{"/operator/v1/deposits", "/operator/v1/accounts",
		"/operator/v1/keys", "/operator/v1/pairs/halt", "/operator/v1/withdraws/refuse",
		"/operator/v1/audit"} {
		body := `{"account":"bob","name":"x","currency":"BTC","amount":"1","reference":"r","pair":"BTC_USDT","on":true,"withdraw":1,"allow":["10.0.0.0/8"],"permissions":["read"]}`
		f.Add(
			[]byte(
				"POST "+path+
					" HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer wrong\r\nContent-Length: "+
					jsonNumber(len(body))+"\r\n\r\n"+body), true)
		f.Add([]byte("GET "+path+"?limit=x HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer "+
			harness.OperatorToken+"\r\n\r\n"), true)
	}
	before := harness.Holdings(f, harnesses[0])
	f.Fuzz(func(t *testing.T, sent []byte, operator bool) {
		if operator && bytes.Contains(sent, []byte(harness.OperatorToken)) &&
			!bytes.HasPrefix(sent, []byte("GET ")) {
			return // a client with the token may change things: see FuzzOperatorBodies
		}
		for _, h := range harnesses {
			w := &wire{}
			w.in.Reset(sent)
			server := h.Gateway.Public().Server
			if operator {
				server = h.Gateway.Operators().Server
			}
			server.ServeConn(w) //nolint:errcheck // it answers with its faults
			checkAnswers(t, sent, w.out.Bytes())
			if after := harness.Holdings(t, h); after != before {
				t.Fatalf("%q changed what there is from %s to %s", sent, before, after)
			}
		}
	})
}

func jsonNumber(n int) string {
	b, _ := json.Marshal(n)
	return string(b)
}

// knownStatuses are the statuses that a client may see.
var knownStatuses = map[int]bool{101: true, 200: true, 201: true, 204: true, 206: true, 301: true,
	302: true, 304: true, 400: true, 401: true, 403: true, 404: true, 405: true, 406: true,
	408: true,
	411: true, 413: true, 417: true, 429: true, 431: true, 501: true, 503: true}

// checkAnswers parses the answers as a client would.
func checkAnswers(t *testing.T, sent, got []byte) {
	t.Helper()
	in := bufio.NewReader(bytes.NewReader(got))
	method := "GET"
	if bytes.HasPrefix(sent, []byte("HEAD ")) {
		method = "HEAD"
	}
	for n := 0; ; n++ {
		if _, err := in.Peek(1); errors.Is(err, io.EOF) {
			return
		}
		if n > 0 && bytes.Contains(sent, []byte("HEAD ")) {
			return // the answers without a body cannot be identified here
		}
		resp, err := http.ReadResponse(in, &http.Request{Method: method})
		if err != nil {
			t.Fatalf("%q is answered with %q: %v", sent, got, err)
		}
		if resp.StatusCode == http.StatusSwitchingProtocols ||
			resp.StatusCode == http.StatusContinue {
			return
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatalf("%q is answered with %q: %v", sent, got, err)
		}
		if !knownStatuses[resp.StatusCode] {
			t.Fatalf("%q is answered with %d %q", sent, resp.StatusCode, body)
		}
		if strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") &&
			len(body) > 0 && !json.Valid(body) {
			t.Fatalf("%q is answered with %q, which is no JSON", sent, body)
		}
	}
}
