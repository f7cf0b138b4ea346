package loadtest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"exchange/gateway/tlstest"
)

func TestTheOperatorIsAskedOverTLSIfItIsTrusted(t *testing.T) {
	a := tlstest.New(t)
	cert, key := a.Pair(1, time.Now().Add(time.Hour))
	pair := must(tls.X509KeyPair(cert, key))
	asked := 0
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		if r.URL.Path != "/operator/v1/keys" || r.Header.Get("Authorization") != "Bearer token" {
			t.Errorf("%s %q", r.URL, r.Header)
		}
		io.WriteString(w, `{"key":"k"}`) //nolint:errcheck // of a test
	})
	s := httptest.Server{Listener: network.Listen(""), Config: &http.Server{Handler: h},
		TLS: &tls.Config{Certificates: []tls.Certificate{pair}}}
	s.StartTLS()
	defer s.Close()
	ask := func(trust *tls.Config) (string, error) {
		var answer struct{ Key string }
		r := newRest(&Options{Addresses: []string{"127.0.0.1:1"},
			Operator: strings.TrimPrefix(s.URL, "https://"), OperatorTLS: trust, Token: "token"})
		return answer.Key, r.operate(context.Background(), "keys", map[string]string{}, &answer,
			false)
	}
	if _, err := ask(&tls.Config{RootCAs: a.Pool()}); err != nil || asked != 1 {
		t.Errorf("%v, asked %d times", err, asked)
	}
	_, err := ask(&tls.Config{RootCAs: x509.NewCertPool()})
	if err == nil || !strings.Contains(err.Error(), "was not answered") || asked != 1 {
		t.Errorf("who is not trusted: %v, asked %d times", err, asked)
	}
}
