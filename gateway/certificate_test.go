package gateway

import (
	"bufio"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fasthttp/websocket"

	"exchange/gateway/tlstest"
)

// aDay is the life of certificates in tests that are not about a certificate's end.
const aDay = 24 * time.Hour

// newCertificate makes files with a certificate of serial number 1 and loads them.
func newCertificate(t *testing.T, until time.Time, log *slog.Logger) (a *tlstest.Authority,
	folder string, c *Certificate) {
	t.Helper()
	a, folder = tlstest.New(t), t.TempDir()
	a.Write(folder, 1, until)
	certFile, keyFile, _ := tlstest.Files(folder)
	c, err := LoadCertificate(certFile, keyFile, log)
	if err != nil {
		t.Fatal(err)
	}
	return a, folder, c
}

// secureExchange is an exchange whose public listener speaks TLS on a real address.
func secureExchange(t *testing.T, log *slog.Logger) (h *harness, a *tlstest.Authority,
	folder, address string) {
	t.Helper()
	h = newHarness(t, nil)
	a, folder, c := newCertificate(t, time.Now().Add(30*aDay), log)
	h.tune = func(o *Options) { o.Certificate, o.ReadTimeout = c, 20*time.Second }
	h.stop()
	h.start()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go h.gateway.Serve(l) //nolint:errcheck // ends with the listener
	h.account("alice")
	if _, err := h.deposit("alice", "10", "BTC", "r"); err != nil {
		t.Fatal(err)
	}
	return h, a, folder, l.Addr().String()
}

// serial is the number of the certificate that an answer's connection has.
func serial(t *testing.T, s *tls.ConnectionState) int64 {
	t.Helper()
	if s == nil || len(s.PeerCertificates) == 0 {
		t.Fatal("there is no certificate")
	}
	return s.PeerCertificates[0].SerialNumber.Int64()
}

// secureClient keeps one connection.
func secureClient(a *tlstest.Authority) *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: a.Pool()},
		MaxConnsPerHost: 1}, Timeout: 20 * time.Second}
}

func fetch(t *testing.T, c *http.Client, method, url, body string,
	headers ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(text)
}

// A listening client is a websocket of the event stream.
type listeningClient struct {
	t *testing.T
	c *websocket.Conn
}

func listen(t *testing.T, a *tlstest.Authority, address string, channels string) *listeningClient {
	t.Helper()
	d := websocket.Dialer{TLSClientConfig: &tls.Config{RootCAs: a.Pool()},
		HandshakeTimeout: 20 * time.Second}
	c, _, err := d.Dial("wss://"+address+streamPath+"?EIO=4&transport=websocket", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	l := &listeningClient{t, c}
	l.hears(`0{"sid"`)
	l.say("40")
	l.hears("40{")
	l.say(`42["subscribe",` + channels + `]`)
	return l
}

func (l *listeningClient) say(text string) {
	l.t.Helper()
	if err := l.c.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
		l.t.Fatal(err)
	}
}

// hears reads until there is a message with these words.
func (l *listeningClient) hears(words string) {
	l.t.Helper()
	l.c.SetReadDeadline(time.Now().Add(20 * time.Second)) //nolint:errcheck // then reading fails too
	var heard []string
	for {
		_, text, err := l.c.ReadMessage()
		if err != nil {
			l.t.Fatalf("waiting for %s: %v, after %q", words, err, heard)
		}
		heard = append(heard, string(text))
		switch {
		case strings.Contains(string(text), words):
			return
		case string(text) == "2":
			l.say("3")
		}
	}
}

func TestTheAPIAndTheStreamAreServedOverTLS(t *testing.T) {
	h, a, _, address := secureExchange(t, quiet())
	client := secureClient(a)
	sell := order("sell", "BTC_USDT", "1", "100")
	trades := listen(t, a, address, `"diff.BTC_USDT"`)
	trades.hears("subscribe.success")
	resp, body := fetch(t, client, "POST", "https://"+address+"/api/v1/order/", sell,
		append(signed("alice", 1, sell), "Content-Type", formType)...)
	if resp.StatusCode != 201 || resp.TLS.Version != tls.VersionTLS13 {
		t.Errorf("%d %s, %+v", resp.StatusCode, body, resp.TLS)
	}
	trades.hears(`"sell":[{"price":100,"amount":1}]`)
	resp, body = fetch(t, client, "GET", "https://"+address+"/api/v1/orders/own/", "",
		signed("alice", 2, "")...)
	if resp.StatusCode != 200 || !strings.Contains(body, `"id":1,`) {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	resp, body = fetch(t, client, "GET", "https://"+address+streamPath+"?EIO=4&transport=polling",
		"")
	if resp.StatusCode != 200 || !strings.HasPrefix(body, `0{"sid"`) {
		t.Errorf("polling: %d %s", resp.StatusCode, body)
	}
	if err := h.engine.VerifyAtRest(); err != nil {
		t.Error(err)
	}

	// No client gets an answer without TLS, and least of all a path.
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(20 * time.Second)) //nolint:errcheck // then reading fails too
	io.WriteString(c, alive)                        //nolint:errcheck
	if text, err := io.ReadAll(c); strings.Contains(string(text), "HTTP/") ||
		strings.Contains(string(text), "alive") {
		t.Errorf("plain HTTP is answered with %q, %v", text, err)
	}
}

func TestOldProtocolsAndWeakSuitesAreRefused(t *testing.T) {
	h, a, folder, address := secureExchange(t, quiet())
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
	ofRSA, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile, _ := tlstest.Files(folder)
	for kind, private := range map[string]crypto.Signer{"ECDSA": tlstest.NewKey(t), "RSA": ofRSA} {
		cert, key := a.PairOf(private, 2, time.Now().Add(-time.Hour), time.Now().Add(30*aDay))
		tlstest.Replace(t, certFile, cert)
		tlstest.Replace(t, keyFile, key)
		h.gateway.opts.Certificate.Reload()
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
		t.Error("a client that knows nothing but HTTP/2 is let in")
	}
	if _, err := shake(func(o *tls.Config) { o.RootCAs = x509.NewCertPool() }); err == nil {
		t.Error("a client that trusts nobody trusts this")
	}
}

func TestARenewedCertificateIsTakenWhileConnectionsStayOpen(t *testing.T) {
	logged := &captured{}
	h, a, folder, address := secureExchange(t, slog.New(slog.NewTextHandler(logged, nil)))
	c := h.gateway.opts.Certificate
	certFile, keyFile, _ := tlstest.Files(folder)
	url := "https://" + address + "/healthz"
	old, stream := secureClient(a), listen(t, a, address, `"diff.BTC_USDT"`)
	stream.hears("subscribe.success")
	check := func(what string, newest int64) {
		t.Helper()
		if resp, body := fetch(t, old, "GET", url, ""); serial(t, resp.TLS) != 1 ||
			resp.StatusCode != 200 {
			t.Errorf("%s: the connection that is open has certificate %d and %d %s", what,
				serial(t, resp.TLS), resp.StatusCode, body)
		}
		if resp, _ := fetch(t, secureClient(a), "GET", url, ""); serial(t, resp.TLS) != newest {
			t.Errorf("%s: a new connection has certificate %d, want %d", what, serial(t, resp.TLS),
				newest)
		}
	}
	check("at first", 1)
	a.Write(folder, 2, time.Now().Add(30*aDay))
	check("before anybody looks", 1)
	c.Refresh(time.Now())
	check("by its files", 2)
	a.Write(folder, 3, time.Now().Add(30*aDay))
	c.Reload()
	check("when asked", 3)

	// Files that cannot be used are told and change nothing. Once they can be used, they are taken.
	cert4, key4 := a.Pair(4, time.Now().Add(30*aDay))
	ended, endedKey := a.Pair(5, time.Now().Add(-time.Hour))
	early, earlyKey := a.PairOf(tlstest.NewKey(t), 6, time.Now().Add(time.Hour),
		time.Now().Add(30*aDay))
	said := ""
	for _, x := range []struct {
		name      string
		cert, key []byte
		mode      os.FileMode
		word      string
	}{
		{"no certificate", []byte("nothing"), key4, 0o600, "certificate"},
		{"empty files", nil, nil, 0o600, "certificate"},
		{"cut off", cert4[:len(cert4)/2], key4, 0o600, "certificate"},
		{"a key of another", ended, key4, 0o600, "private key"},
		{"no key", cert4, cert4, 0o600, "key"},
		{"one that has ended", ended, endedKey, 0o600, "has ended on"},
		{"one that has not begun", early, earlyKey, 0o600, "is not valid before"},
		{"a key for everybody", cert4, key4, 0o604, "mode 0604"},
		{"a file without end", append([]byte(strings.Repeat("\n", maxPEM)), cert4...), key4, 0o600,
			"is longer than"},
	} {
		before := strings.Count(logged.String(), "the one before stays")
		tlstest.Replace(t, certFile, x.cert)
		tlstest.Replace(t, keyFile, x.key)
		if err := os.Chmod(keyFile, x.mode); err != nil {
			t.Fatal(err)
		}
		for range 3 { // however often it is looked at, a fault is said once
			c.Refresh(time.Now())
		}
		c.Reload()
		if !c.isStale() || !strings.Contains(c.said, x.word) {
			t.Fatalf("%s: stale %v, %q", x.name, c.isStale(), c.said)
		}
		times := 1
		if c.said == said {
			times = 0
		}
		said = c.said
		if got := strings.Count(logged.String(), "the one before stays") - before; got != times {
			t.Errorf("%s: %d times in the log, want %d", x.name, got, times)
		}
		check(x.name, 3)
		if block, _ := pem.Decode(key4); strings.Contains(logged.String(), string(key4[30:60])) ||
			strings.Contains(logged.String(), string(block.Bytes)) {
			t.Errorf("%s: the key is in the log", x.name)
		}
	}
	if err := os.Remove(certFile); err != nil {
		t.Fatal(err)
	}
	c.Refresh(time.Now())
	check("no file", 3)
	tlstest.Replace(t, certFile, cert4)
	tlstest.Replace(t, keyFile, key4)
	c.Refresh(time.Now())
	check("mended", 4)
	if c.isStale() {
		t.Error("it is still stale")
	}
	sell := order("sell", "BTC_USDT", "1", "100")
	if resp, body := fetch(t, old, "POST", "https://"+address+"/api/v1/order/", sell,
		append(signed("alice", 1, sell), "Content-Type", formType)...); resp.StatusCode != 201 {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	stream.hears(`"sell":[{"price":100,"amount":1}]`) // on the connection of the first certificate
}

func TestWhatCannotBeServedIsRefusedAtTheStart(t *testing.T) {
	a, folder := tlstest.New(t), t.TempDir()
	certFile, keyFile, _ := tlstest.Files(folder)
	if _, err := LoadCertificate(certFile, keyFile, quiet()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no files: %v", err)
	}
	a.Write(folder, 1, time.Now().Add(aDay))
	for mode, ok := range map[os.FileMode]bool{0o600: true, 0o400: true, 0o640: true, 0o604: false,
		0o644: false, 0o666: false, 0o601: false} {
		if err := os.Chmod(keyFile, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadCertificate(certFile, keyFile, quiet()); (err == nil) != ok {
			t.Errorf("a key of mode %04o: %v", mode, err)
		}
	}
}

func TestTheEndOfACertificateIsToldInTime(t *testing.T) {
	logged := &captured{}
	log := slog.New(slog.NewTextHandler(logged, nil))
	until := time.Now().Add(30 * aDay)
	a, folder, c := newCertificate(t, until, log)
	scrape := scraping(t, New(Options{Log: log, BodyBytes: 1 << 10, HeaderBytes: 1 << 10,
		Connections: 10, OperatorToken: operatorToken, Certificate: c}))
	s := scrape()
	if got := s.value("exchange_tls_certificate_expiry_timestamp_seconds", "listener",
		"public"); got != float64(until.Unix()) {
		t.Errorf("the metric says %f, want %d", got, until.Unix())
	}
	if got := s.value("exchange_tls_certificate_stale", "listener", "public"); got != 0 {
		t.Errorf("stale is %f", got)
	}
	if n := len(s.series("exchange_tls_certificate_stale")); n != 1 {
		t.Errorf("%d listeners have a certificate", n)
	}
	said := func(soon, ended int) {
		t.Helper()
		if got := strings.Count(logged.String(), "ends soon"); got != soon {
			t.Errorf("it ends soon, %d times of %d", got, soon)
		}
		if got := strings.Count(logged.String(), "has ended"); got != ended {
			t.Errorf("it has ended, %d times of %d", got, ended)
		}
	}
	now := time.Now()
	c.Refresh(now)
	c.Refresh(now.Add(15 * aDay))
	said(0, 0)
	c.Refresh(now.Add(17 * aDay))
	c.Refresh(now.Add(17*aDay + time.Hour))
	said(1, 0)
	c.Refresh(now.Add(18*aDay + time.Hour))
	said(2, 0)
	c.Refresh(now.Add(31 * aDay))
	said(2, 1)
	tlstest.Replace(t, c.certFile, []byte("broken"))
	c.Refresh(now)
	if got := scrape().value("exchange_tls_certificate_stale", "listener", "public"); got != 1 {
		t.Errorf("stale is %f", got)
	}
	a.Write(folder, 2, now.Add(60*aDay))
	c.Refresh(now.Add(31 * aDay))
	said(2, 1)
	if got := scrape().value("exchange_tls_certificate_expiry_timestamp_seconds", "listener",
		"public"); got != float64(now.Add(60*aDay).Unix()) {
		t.Errorf("the metric says %f", got)
	}
}

func TestTheOperatorsListenerIsPlainOnLoopbackOnly(t *testing.T) {
	serve := func(address string, c *Certificate) (string, <-chan error) {
		g := New(Options{Log: quiet(), BodyBytes: 1 << 10, HeaderBytes: 1 << 10, Connections: 10,
			OperatorToken: operatorToken, OperatorCertificate: c})
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { g.Shutdown(time.Minute); l.Close() })
		ended := make(chan error, 1)
		go func() { ended <- g.ServeOperator(l) }()
		return l.Addr().String(), ended
	}
	for _, address := range []string{"0.0.0.0:0", ":0"} {
		if _, ended := serve(address, nil); !errors.Is(<-ended, ErrPlain) {
			t.Errorf("%s without TLS is served", address)
		}
	}
	a, _, c := newCertificate(t, time.Now().Add(aDay), quiet())
	address, _ := serve("0.0.0.0:0", c)
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	// there is no engine
	for token, status := range map[string]int{operatorToken: 503, "wrong": 401} {
		resp, body := fetch(t, secureClient(a), "GET",
			"https://127.0.0.1:"+port+"/operator/v1/accounts", "", "Authorization", "Bearer "+token)
		if resp.StatusCode != status {
			t.Errorf("%s: %d %s", token, resp.StatusCode, body)
		}
	}
}

func TestOneSecureConnectionTooManyIsClosedAndTheOthersAreServed(t *testing.T) {
	a, _, certificate := newCertificate(t, time.Now().Add(aDay), quiet())
	g := New(Options{Log: quiet(), BodyBytes: 1 << 10, HeaderBytes: 1 << 10, Connections: 2,
		Certificate: certificate, TrustedProxies: thisMachine})
	g.publicPlaces.spare = 0 // the test's clients are on this machine
	t.Cleanup(func() { g.Shutdown(time.Minute) })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go g.Serve(l) //nolint:errcheck // ends with the listener
	var held []*tls.Conn
	for range 2 {
		c, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{RootCAs: a.Pool()})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		held = append(held, c)
	}
	for range 5 {
		if c, err := tls.Dial("tcp", l.Addr().String(),
			&tls.Config{RootCAs: a.Pool()}); err == nil {
			c.Close()
			t.Error("one more is let in")
		}
	}
	for _, c := range held {
		if a := talk(t, c, "GET", alive); a.status != 200 {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	if g.publicConnections.refused.Load() != 5 {
		t.Errorf("%d were refused", g.publicConnections.refused.Load())
	}
}

// A recorder is a connection that notes how much time writes are given.
type recorder struct {
	net.Conn
	mu        sync.Mutex
	deadlines []time.Time
}

func (r *recorder) SetWriteDeadline(t time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.deadlines = append(r.deadlines, t)
	return r.Conn.SetWriteDeadline(t)
}

// A client that takes nothing must not hold up the goroutine that closes the connection.
func TestAClosedTLSConnectionWaitsForNobody(t *testing.T) {
	a, _, certificate := newCertificate(t, time.Now().Add(aDay), quiet())
	near, far := net.Pipe() // without any buffer: each write waits for its reader
	r := &recorder{Conn: near}
	below := &farewell{Conn: r}
	c := &tlsConn{tls.Server(below, certificate.config()), below}
	shaken := make(chan error, 1)
	client := tls.Client(far, &tls.Config{RootCAs: a.Pool(), ServerName: "localhost",
		SessionTicketsDisabled: true})
	go func() {
		err := client.Handshake()
		if err == nil {
			_, err = bufio.NewReader(client).Peek(1)
		}
		shaken <- err
	}()
	if _, err := c.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := <-shaken; err != nil {
		t.Fatal(err)
	}
	c.SetWriteDeadline(time.Time{}) //nolint:errcheck // the recorder's
	r.deadlines = nil
	c.Close() //nolint:errcheck // its goodbye cannot be said
	latest := time.Now().Add(farewellTimeout)
	if len(r.deadlines) == 0 {
		t.Error("there was no goodbye")
	}
	for _, d := range r.deadlines {
		if d.IsZero() || d.After(latest) {
			t.Errorf("a goodbye may take until %v, it is %v", d, latest)
		}
	}
	if _, err := near.Write([]byte("x")); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("the connection is open: %v", err)
	}
}
