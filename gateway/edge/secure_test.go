//go:build prove

package edge_test

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fasthttp/websocket"

	"exchange/gateway"
	"exchange/gateway/edge"
	"exchange/gateway/listen"
	"exchange/gateway/tlstest"
	"exchange/prove/harness"
)

// secureExchange is an exchange whose public listener speaks TLS on a real address.
func secureExchange(t *testing.T, log *slog.Logger) (h *harness.Exchange, a *tlstest.Authority,
	folder, address string) {
	t.Helper()
	h = harness.New(t, nil)
	a, folder, c := harness.NewCertificate(t, time.Now().Add(30*harness.ADay), log)
	h.Retune(func(o *edge.Options) { o.Certificate, o.ReadTimeout = c, 20*time.Second })
	l := harness.Must(net.Listen("tcp", "127.0.0.1:0"))
	go h.Gateway.Serve(l) //nolint:errcheck // ends with the listener
	h.Account("alice")
	h.Deposit("alice", "10", "BTC", "r")
	return h, a, folder, l.Addr().String()
}

// secureClient keeps one connection.
func secureClient(a *tlstest.Authority) *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: a.Pool()},
		MaxConnsPerHost: 1}, Timeout: 20 * time.Second}
}

func fetch(t *testing.T, c *http.Client, method, url, body string,
	headers ...string) (*http.Response, string) {
	t.Helper()
	r := harness.Must(http.NewRequest(method, url, strings.NewReader(body)))
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp := harness.Must(c.Do(r))
	defer resp.Body.Close()
	text := harness.Must(io.ReadAll(resp.Body))
	return resp, string(text)
}

// A listening client is a websocket of the event stream.
type listeningClient struct {
	t *testing.T
	c *websocket.Conn
}

func subscribed(t *testing.T, a *tlstest.Authority, address, channels string) *listeningClient {
	t.Helper()
	d := websocket.Dialer{TLSClientConfig: &tls.Config{RootCAs: a.Pool()},
		HandshakeTimeout: 20 * time.Second}
	c, _, err := d.Dial("wss://"+address+edge.StreamPath+"?EIO=4&transport=websocket", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	l := &listeningClient{t, c}
	l.receives(`0{"sid"`)
	l.say("40")
	l.receives("40{")
	l.say(`42["subscribe",` + channels + `]`)
	return l
}

func (l *listeningClient) say(text string) {
	l.t.Helper()
	harness.Worked(l.t, l.c.WriteMessage(websocket.TextMessage, []byte(text)))
}

// receives reads until a message contains these words.
func (l *listeningClient) receives(words string) {
	l.t.Helper()
	//nolint:errcheck // then reading fails too
	l.c.SetReadDeadline(time.Now().Add(20 * time.Second))
	var received []string
	for {
		_, text, err := l.c.ReadMessage()
		if err != nil {
			l.t.Fatalf("waiting for %s: %v, after %q", words, err, received)
		}
		received = append(received, string(text))
		switch {
		case strings.Contains(string(text), words):
			return
		case string(text) == "2":
			l.say("3")
		}
	}
}

func TestTheAPIAndTheStreamAreServedOverTLS(t *testing.T) {
	h, a, _, address := secureExchange(t, harness.Quiet())
	client := secureClient(a)
	sell := harness.Order("sell", "BTC_USDT", "1", "100")
	trades := subscribed(t, a, address, `"diff.BTC_USDT"`)
	trades.receives("subscribe.success")
	resp, body := fetch(t, client, "POST", "https://"+address+"/api/v1/order/", sell,
		append(harness.Signed("alice", 1, sell), "Content-Type", harness.FormType)...)
	if resp.StatusCode != 201 || resp.TLS.Version != tls.VersionTLS13 {
		t.Errorf("%d %s, %+v", resp.StatusCode, body, resp.TLS)
	}
	trades.receives(`"sell":[{"price":100,"amount":1}]`)
	resp, body = fetch(t, client, "GET", "https://"+address+"/api/v1/orders/own/", "",
		harness.Signed("alice", 2, "")...)
	if resp.StatusCode != 200 || !strings.Contains(body, `"id":1,`) {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	resp, body = fetch(t, client, "GET",
		"https://"+address+edge.StreamPath+"?EIO=4&transport=polling", "")
	if resp.StatusCode != 200 || !strings.HasPrefix(body, `0{"sid"`) {
		t.Errorf("polling: %d %s", resp.StatusCode, body)
	}
	h.Verify()

	// Without TLS a client gets the hint to use it, and nothing of the path's content.
	c := harness.Must(net.Dial("tcp", address))
	defer c.Close()
	c.SetDeadline(time.Now().Add(20 * time.Second)) //nolint:errcheck // then reading fails too
	io.WriteString(c, alive)                        //nolint:errcheck
	if text, err := io.ReadAll(c); !strings.HasPrefix(string(text), "HTTP/1.1 400 ") ||
		strings.Contains(string(text), "alive") {
		t.Errorf("plain HTTP is answered with %q, %v", text, err)
	}
}

func TestOldProtocolsAndWeakSuitesAreRefused(t *testing.T) {
	h, a, folder, address := secureExchange(t, harness.Quiet())
	shake := func(change func(*tls.Config)) (tls.ConnectionState, error) {
		o := &tls.Config{RootCAs: a.Pool()}
		change(o)
		c, err := tls.Dial("tcp", address, o)
		if err != nil {
			return tls.ConnectionState{}, err
		}
		defer c.Close()
		return c.ConnectionState(), nil
	}
	for _, v := range []uint16{tls.VersionTLS10, tls.VersionTLS11} {
		if _, err := shake(func(o *tls.Config) { o.MinVersion, o.MaxVersion = v, v }); err == nil {
			t.Errorf("%s is spoken", tls.VersionName(v))
		}
	}
	ofRSA := harness.Must(rsa.GenerateKey(rand.Reader, 2048))
	certFile, keyFile, _ := tlstest.Files(folder)
	for kind, private := range map[string]crypto.Signer{"ECDSA": tlstest.NewKey(t), "RSA": ofRSA} {
		cert,
			key := a.PairOf(private, 2, time.Now().Add(-time.Hour), time.Now().Add(30*harness.ADay))
		tlstest.Replace(t, certFile, cert)
		tlstest.Replace(t, keyFile, key)
		h.Gateway.Options().Certificate.Reload()
		good := 0
		for _, s := range append(tls.CipherSuites(), tls.InsecureCipherSuites()...) {
			if s.SupportedVersions[0] == tls.VersionTLS13 {
				continue
			}
			modern := strings.HasPrefix(s.Name, "TLS_ECDHE_") &&
				(strings.Contains(s.Name, "_GCM_") || strings.Contains(s.Name, "_POLY1305_"))
			state, err := shake(func(o *tls.Config) {
				o.MaxVersion, o.CipherSuites = tls.VersionTLS12, []uint16{s.ID}
			})
			switch {
			case err == nil && !modern:
				t.Errorf("%s is taken", s.Name)
			case err == nil && state.CipherSuite == s.ID && strings.Contains(s.Name, kind):
				good++
			}
		}
		if good != 3 {
			t.Errorf("%s: %d modern suites of TLS 1.2 are taken", kind, good)
		}
	}
	for _, x := range []struct {
		offered []string
		want    string
	}{{[]string{"h2", "http/1.1"}, "http/1.1"}, {[]string{"http/1.1"}, "http/1.1"}, {nil, ""}} {
		if state, err := shake(func(o *tls.Config) { o.NextProtos = x.offered }); err != nil ||
			state.NegotiatedProtocol != x.want {
			t.Errorf("%q: %q, %v", x.offered, state.NegotiatedProtocol, err)
		}
	}
	if _, err := shake(func(o *tls.Config) { o.NextProtos = []string{"h2"} }); err == nil {
		t.Error("a client of HTTP/2 alone is let in")
	}
	if _, err := shake(func(o *tls.Config) { o.RootCAs = x509.NewCertPool() }); err == nil {
		t.Error("a client that trusts no authority trusts this")
	}
}

func TestTheOperatorsListenerIsPlainOnLoopbackOnly(t *testing.T) {
	serve := func(address string, c *listen.Certificate) (string, <-chan error) {
		g := gateway.New(edge.Options{Log: harness.Quiet(), BodyBytes: 1 << 10,
			HeaderBytes: 1 << 10,
			Connections: 10, OperatorToken: harness.OperatorToken, OperatorCertificate: c})
		l := harness.Must(net.Listen("tcp", address))
		t.Cleanup(func() { g.Shutdown(time.Minute); l.Close() })
		ended := make(chan error, 1)
		go func() { ended <- g.ServeOperator(l) }()
		return l.Addr().String(), ended
	}
	for _, address := range []string{"0.0.0.0:0", ":0"} {
		if _, ended := serve(address, nil); !errors.Is(<-ended, listen.ErrPlain) {
			t.Errorf("%s without TLS is served", address)
		}
	}
	a, _, c := harness.NewCertificate(t, time.Now().Add(harness.ADay), harness.Quiet())
	address, _ := serve("0.0.0.0:0", c)
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	// there is no engine
	for token, status := range map[string]int{harness.OperatorToken: 503, "wrong": 401} {
		resp, body := fetch(t, secureClient(a), "GET",
			"https://127.0.0.1:"+port+"/operator/v1/accounts", "", "Authorization", "Bearer "+token)
		if resp.StatusCode != status {
			t.Errorf("%s: %d %s", token, resp.StatusCode, body)
		}
	}
}
