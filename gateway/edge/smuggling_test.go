package edge_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"exchange/gateway/api"
	"exchange/gateway/edge"
	"exchange/prove/harness"
)

// converse sends bytes on a new connection and reads all answers until the server closes it. So the
// bytes must end with a request that asks for the close.
func converse(t *testing.T, l *harness.Network, text string, methods ...string) (statuses []int,
	bodies []string) {
	t.Helper()
	c := harness.Dialed(t, l)
	defer c.Close()
	go io.WriteString(c, text) //nolint:errcheck // the server may hang up before it has read all
	in := bufio.NewReader(c)
	for i := 0; ; i++ {
		r := &http.Request{Method: "GET"}
		if i < len(methods) {
			r.Method = methods[i]
		}
		resp, err := http.ReadResponse(in, r)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
			err != nil && strings.Contains(err.Error(), "reset by peer") {
			return statuses, bodies
		}
		if err != nil {
			t.Fatalf("after %v: %v", statuses, err)
		}
		body := harness.Must(io.ReadAll(resp.Body))
		statuses, bodies = append(statuses, resp.StatusCode), append(bodies, string(body))
	}
}

// tlsHello begins a handshake of TLS.
const tlsHello = "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"

// The request that hides, and the one after all others.
const (
	hiddenRequest = "GET /api/v1/pairs HTTP/1.1\r\nHost: x\r\n\r\n"
	lastRequest   = "GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
)

// framed is a POST with headers about its body.
func framed(headers, body string) string {
	return "POST /api/v1/order HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" +
		headers + "\r\n" + body
}

func probe(headers string) string {
	return "GET /healthz HTTP/1.1\r\nHost: x\r\n" + headers + "\r\n"
}

func chunked(body string) string { return framed("Transfer-Encoding: chunked\r\n", body) }

// After each request comes another one, which would be seen if the first ended elsewhere than in
// the standard.
func TestNoRequestHidesInAnother(t *testing.T) { harness.Bubble(t, testNoRequestHidesInAnother) }

func testNoRequestHidesInAnother(t *testing.T) {
	h := harness.Traded(t)
	l := h.Served()
	refused := map[string]string{
		"a length and chunks": framed(
			"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
		"chunks and a length": framed(
			"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", "0\r\n\r\n"),
		"chunks and a longer length": framed(
			fmt.Sprintf("Content-Length: %d\r\nTransfer-Encoding: chunked\r\n",
				5+len(hiddenRequest)), "0\r\n\r\n"+hiddenRequest),
		"a length, and chunks with a request": framed(
			"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
			fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(hiddenRequest), hiddenRequest)),
		"two lengths": framed(
			"Content-Length: 5\r\nContent-Length: 0\r\n", "hello"),
		"two lengths, the other way round": framed(
			"Content-Length: 0\r\nContent-Length: 5\r\n", "hello"),
		"the same length twice": framed(
			"Content-Length: 5\r\nContent-Length: 5\r\n", "hello"),
		"a list of lengths":       framed("Content-Length: 5, 5\r\n", "hello"),
		"a length with a sign":    framed("Content-Length: +5\r\n", "hello"),
		"a negative length":       framed("Content-Length: -5\r\n", "hello"),
		"a length in hexadecimal": framed("Content-Length: 0x5\r\n", "hello"),
		"a length and something":  framed("Content-Length: 5 x\r\n", "hello"),
		"an empty length":         framed("Content-Length: \r\n", "hello"),
		"a length beyond 64 bits": framed(
			"Content-Length: 18446744073709551621\r\n", "hello"),
		"a blank before the colon": framed("Content-Length : 5\r\n", "hello"),
		"a tab before the colon":   framed("Content-Length\t: 5\r\n", "hello"),
		"a blank before the colon of chunks": framed("Transfer-Encoding : chunked\r\n",
			"0\r\n\r\n"),
		"another transfer encoding": framed("Transfer-Encoding: xchunked\r\n",
			"0\r\n\r\n"),
		"one that was taken back": framed("Transfer-Encoding: identity\r\n", ""),
		"one that was taken back, and a length": framed(
			"Transfer-Encoding: identity\r\nContent-Length: 5\r\n", "hello"),
		"two transfer encodings": framed("Transfer-Encoding: gzip, chunked\r\n",
			"0\r\n\r\n"),
		"chunks before another": framed(
			"Transfer-Encoding: chunked, identity\r\n", "0\r\n\r\n"),
		"two fields of transfer encodings": framed(
			"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", "0\r\n\r\n"),
		"two fields, the other way round": framed(
			"Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
		"a control character before it": framed("Transfer-Encoding: \x0bchunked\r\n",
			"0\r\n\r\n"),
		"chunks in HTTP/1.0": strings.Replace(chunked("0\r\n\r\n"),
			"HTTP/1.1", "HTTP/1.0", 1),
		"a folded transfer encoding": framed("Transfer-Encoding:\r\n chunked\r\n",
			"0\r\n\r\n"),
		"a folded line":            probe("X-A: 1\r\n  Content-Length: 5\r\n"),
		"a line folded by a tab":   probe("X-A: 1\r\n\tContent-Length: 5\r\n"),
		"a fold in the first line": "GET /healthz HTTP/1.1\r\n Host: x\r\n\r\n",
		"fields without CR":        "GET /healthz HTTP/1.1\r\nHost: x\nX-A: 1\n\n",
		"the last field without CR": "GET /healthz HTTP/1.1\r\nHost: x\r\nX-A: " +
			"1\n\r\n",
		"a body after fields without CR": "POST /api/v1/order HTTP/1.1\r\nHost: " +
			"x\nContent-Length: 5\n\nhello",
		"a field in the first line": "GET /healthz HTTP/1.1\rContent-Length: " +
			"5\r\nHost: x\r\n\r\n",
		"a version of the future":       "GET /healthz HTTP/9.9\r\nHost: x\r\n\r\n",
		"a version of another protocol": "GET /healthz HTTP/2.0\r\nHost: x\r\n\r\n",
		"a version before the first":    "GET /healthz HTTP/0.9\r\nHost: x\r\n\r\n",
		"a version in small letters":    "GET /healthz http/1.1\r\nHost: x\r\n\r\n",
		"a line in a line":              probe("X-A: 1\nContent-Length: 5\r\n"),
		"an end without CR": strings.TrimSuffix(probe("X-A: 1\r\n"),
			"\r\n") + "\n",
		"CR alone":                               "GET /healthz HTTP/1.1\rHost: x\r\r",
		"CR in a value":                          probe("X-A: 1\rContent-Length: 5\r\n"),
		"a zero byte in a value":                 probe("X-A: 1\x002\r\n"),
		"a zero byte in a name":                  probe("X\x00A: 1\r\n"),
		"a blank in a name":                      probe("X A: 1\r\n"),
		"no name":                                probe(": 1\r\n"),
		"no colon":                               probe("broken\r\n"),
		"two hosts":                              probe("Host: y\r\n"),
		"no host":                                "GET /healthz HTTP/1.1\r\n\r\n",
		"two blanks in the first line":           "GET  /healthz  HTTP/1.1\r\nHost: x\r\n\r\n",
		"no version":                             "GET /healthz\r\n\r\n",
		"a strange version":                      "GET /healthz HTTP/1.1x\r\nHost: x\r\n\r\n",
		"TLS where there is none":                tlsHello,
		"an extension of a chunk that continues": chunked("5;a\nhello\r\n0\r\n\r\n"),
		"chunks without CR":                      chunked("5\nhello\n0\n\n"),
		"a last line without CR after chunks":    chunked("5\r\nhello\r\n0\r\n\n"),
		"the same after no body":                 chunked("0\r\n\n"),
		"a chunk beyond 64 bits": chunked(
			"FFFFFFFFFFFFFFFF1\r\nhello\r\n0\r\n\r\n"),
		"a chunk of 2^63": chunked(
			"7FFFFFFFFFFFFFFF\r\nhello\r\n0\r\n\r\n"),
		"a negative chunk":              chunked("-5\r\nhello\r\n0\r\n\r\n"),
		"a chunk with a sign":           chunked("+5\r\nhello\r\n0\r\n\r\n"),
		"a chunk with 0x":               chunked("0x5\r\nhello\r\n0\r\n\r\n"),
		"a blank before a chunk's size": chunked(" 5\r\nhello\r\n0\r\n\r\n"),
		"a chunk without a size":        chunked("\r\nhello\r\n0\r\n\r\n"),
		"a chunk that is too short":     chunked("3\r\nhello\r\n0\r\n\r\n"),
		"a size of many zeros": chunked(
			strings.Repeat("0", 100) + "5\r\nhello\r\n0\r\n\r\n"),
		"a field after the body": chunked("5\r\nhello\r\n0\r\nX-A: 1\r\n\r\n"),
		"a length after the body": chunked(
			"5\r\nhello\r\n0\r\nContent-Length: 5\r\n\r\n"),
		"a key after the body": chunked(
			"5\r\nhello\r\n0\r\nX-KEY: key-bob\r\n\r\n"),
		"an announced key after the body": framed(
			"Transfer-Encoding: chunked\r\nTrailer: X-KEY\r\n",
			"5\r\nhello\r\n0\r\nX-KEY: key-bob\r\n\r\n"),
		"an address after the body": framed(
			"Transfer-Encoding: chunked\r\nX-Forwarded-For: 192.0.2.1\r\n",
			"5\r\nhello\r\n0\r\nX-Forwarded-For: 192.0.2.7\r\n\r\n"),
		"a field after the body of a read": "GET /healthz HTTP/1.1\r\nHost: " +
			"x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-A: 1\r\n\r\n",
		"a field after the body, for the stream": "POST /socket.v2/?EIO=4 HTTP/1.1\r\nHost: " +
			"x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-A: 1\r\n\r\n",
		"a length and chunks, for a path not there": "POST /nothing HTTP/1.1\r\nHost: " +
			"x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	}
	before := h.Hash()
	for name, text := range refused {
		statuses, bodies := converse(t, l, text+lastRequest+lastRequest)
		if len(statuses) != 1 || statuses[0] != 400 ||
			bodies[0] != harness.Detail(api.MalformedRequest.Detail) {
			t.Errorf("%s: %v %q", name, statuses, bodies)
		}
	}
	h.StillAt(before)
}

func TestRequestsWithAClearEndAreAnswered(t *testing.T) {
	harness.Bubble(t, testRequestsWithAClearEndAreAnswered)
}

func testRequestsWithAClearEndAreAnswered(t *testing.T) {
	h := harness.Traded(t)
	l, before := h.Served(), h.Hash()
	unauthenticated, alive := 401, 200
	for name, x := range map[string]struct {
		text     string
		statuses []int
	}{
		"a body": {framed("Content-Length: 5\r\n", "hello"),
			[]int{unauthenticated}},
		"no body": {framed("", ""), []int{unauthenticated}},
		"chunks": {chunked("5\r\nhello\r\n0\r\n\r\n"),
			[]int{unauthenticated}},
		"chunks in other letters": {
			framed("transfer-encoding: CHUNKED\r\n", "5\r\nhello\r\n0\r\n\r\n"),
			[]int{unauthenticated}},
		"an extension of a chunk": {chunked("5;a=b\r\nhello\r\n0\r\n\r\n"),
			[]int{unauthenticated}},
		"a blank after a chunk's size": {chunked("5 \r\nhello\r\n0 \r\n\r\n"),
			[]int{unauthenticated}},
		"a request in a body": {
			framed(fmt.Sprintf("Content-Length: %d\r\n", len(hiddenRequest)), hiddenRequest),
			[]int{unauthenticated}},
		"a request in a chunk": {
			chunked(fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(hiddenRequest), hiddenRequest)),
			[]int{unauthenticated}},
		"a request in a read's body": {
			probe(fmt.Sprintf("Content-Length: %d\r\n", len(hiddenRequest))) + hiddenRequest,
			[]int{alive}},
		"a read with chunks": {
			"GET /healthz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: " +
				"chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", []int{alive}},
		"pipelined ones":            {strings.Repeat(probe(""), 50), slicesOf(50, alive)},
		"another name for a length": {framed("Content_Length: 5\r\n", ""), []int{unauthenticated}},
		"an upgrade to another HTTP": {
			probe(
				"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: " +
					"AAMAAABkAARAAAAAAAIAAAAA\r\n"), []int{alive}},
		"a tunnel": {"CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n", []int{404}},
		"an echo": {
			"TRACE /healthz HTTP/1.1\r\nHost: x\r\nX-Secret: 1\r\n\r\n", []int{405}},
		"empty lines before a request": {"\r\n\n" + probe(""), []int{alive}},
		"a first line without CR":      {strings.Replace(probe(""), "\r\n", "\n", 1), []int{alive}},
		"a path of another host": {"GET http://y/healthz HTTP/1.1\r\nHost: x\r\n\r\n",
			[]int{alive}},
	} {
		statuses, bodies := converse(t, l, x.text+lastRequest)
		if fmt.Sprint(statuses) != fmt.Sprint(append(x.statuses, 200)) ||
			bodies[len(bodies)-1] != `{"status":"ready"}` {
			t.Errorf("%s: %v %q", name, statuses, bodies)
		}
	}
	h.StillAt(before)
}

func slicesOf(n, v int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = v
	}
	return list
}

func TestTheOperatorsListenerIsAsStrict(t *testing.T) {
	harness.Bubble(t, func(t *testing.T) {
		h := harness.Traded(t)
		l := harness.NewNetwork(t)
		go h.Gateway.ServeOperator(l) //nolint:errcheck // ends with the listener
		auth := "Host: x\r\nAuthorization: Bearer " + harness.OperatorToken + "\r\n"
		before := h.Hash()
		freeze := `{"account":"bob","on":true}`
		chunks := fmt.Sprintf("%x\r\n%s\r\n0\r\n", len(freeze), freeze)
		chunked := "Host: x\r\nTransfer-Encoding: chunked\r\n"
		token := "Authorization: Bearer " + harness.OperatorToken + "\r\n"
		for name, text := range map[string]string{
			"a length and chunks": auth + fmt.Sprintf("Content-Length: %d\r\n", len(freeze)) +
				"Transfer-Encoding: chunked\r\n\r\n" +
				chunks + "\r\n",
			"a folded line": auth + "X-A: 1\r\n 2\r\n\r\n",
			"a name after the body": auth + "Transfer-Encoding: chunked\r\n\r\n" + chunks +
				"X-Operator: eve\r\n\r\n",
			"a token after the body": chunked + "\r\n" + chunks + token + "\r\n",
			"an announced token after it": chunked + "Trailer: Authorization\r\n\r\n" + chunks +
				token + "\r\n",
			"a second token after it": chunked + "Authorization: Bearer wrong\r\n\r\n" + chunks +
				token + "\r\n",
			"a token after no body": chunked + "\r\n0\r\n" + token + "\r\n",
		} {
			statuses, bodies := converse(t, l,
				"POST /operator/v1/accounts/freeze HTTP/1.1\r\n"+text)
			if len(statuses) != 1 || statuses[0] != 400 ||
				bodies[0] != harness.Refusal(api.MalformedRequest.Detail)+"\n" {
				t.Errorf("%s: %v %q", name, statuses, bodies)
			}
		}
		h.StillAt(before)
	})
}

// A client behind a proxy that passes on bytes after a body must not be able to name its own
// address there.
func TestBytesAfterABodyNameNoAddress(t *testing.T) {
	harness.Bubble(t, func(t *testing.T) {
		h := harness.New(t, nil)
		h.Retune(func(o *edge.Options) {
			o.TrustedProxies = []netip.Prefix{
				netip.MustParsePrefix("127.0.0.0/8")}
		})
		h.Account("alice")
		h.Key("alice", "office", 7, "192.0.2.0/24")
		s := harness.Signed("office", 1, "")
		head := "GET /api/v1/wallets?currency_id=BTC HTTP/1.1\r\nHost: x\r\nConnection: " +
			"close\r\nTransfer-Encoding: chunked\r\n"
		for i := 0; i < len(s); i += 2 {
			head += s[i] + ": " + s[i+1] + "\r\n"
		}
		head += "X-Forwarded-For: 203.0.113.9\r\n\r\n"
		l := h.Served()
		statuses, bodies := converse(t, l, head+"0\r\n\r\n")
		if len(statuses) != 1 || statuses[0] != 403 ||
			bodies[0] != harness.Detail(api.AddressNotAllowed.Detail) {
			t.Errorf("%v %q", statuses, bodies)
		}
		statuses, bodies = converse(t, l, head+"0\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n")
		if len(statuses) != 1 || statuses[0] != 400 {
			t.Errorf("an address after the body: %v %q", statuses, bodies)
		}
	})
}
