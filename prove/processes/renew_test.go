//go:build prove

package processes

import (
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"exchange/gateway/tlstest"
	"exchange/prove/exchangetest"
)

// Changes while the exchange runs, or between two of its starts: certificates, the operator's
// token, the server's key.

// withoutToken removes the operator's token from the server's environment, so that the server reads
// the token's file.
func withoutToken(s *exchangetest.Server) {
	s.Env = slices.DeleteFunc(s.Env, func(e string) bool {
		return strings.HasPrefix(e, "EXCHANGE_OPERATOR_TOKEN=")
	})
}

// option gives serve another value for a flag.
func option(t *testing.T, s *exchangetest.Server, flag, value string) {
	t.Helper()
	i := slices.Index(s.Args, flag)
	if i < 0 {
		t.Fatalf("there is no %s in %q", flag, s.Args)
	}
	s.Args[i+1] = value
}

// serialOf returns the serial number of the certificate that an address serves.
func serialOf(t *testing.T, a *tlstest.Authority, address string) int64 {
	t.Helper()
	c := must[*tls.Conn](t)(tls.Dial("tcp", address, &tls.Config{RootCAs: a.Pool()}))
	defer c.Close()
	return c.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

// tokenIsRenewed replaces the operator's token by a short one and by none.
func tokenIsRenewed(t *testing.T, s *exchangetest.Server, folder, authority string) {
	t.Helper()
	old := must[[]byte](t)(os.ReadFile(s.Data("operator.token")))
	oldFile := folder + "/old.token"
	tlstest.Replace(t, oldFile, old)
	with := func(file string) int {
		_, _, code := s.Command("account", "list", "--operator", "https://"+s.Operator,
			"--operator-ca", authority, "--operator-token-file", file)
		return code
	}
	tlstest.Replace(t, s.Data("operator.token"), []byte("short"))
	s.Signal(syscall.SIGHUP)
	exchangetest.Eventually(t, "the short token is logged",
		func() bool { return strings.Contains(s.Log(), "the tokens stay as they are") })
	if code := with(oldFile); code != 0 {
		t.Errorf("the token before: %d", code)
	}
	if err := os.Remove(s.Data("operator.token")); err != nil { // as at the first start
		t.Fatal(err)
	}
	s.Signal(syscall.SIGHUP)
	exchangetest.Eventually(t, "the new token is taken", func() bool {
		return strings.Contains(s.Log(), "the operator's token was changed")
	})
	if code := with(s.Data("operator.token")); code != 0 {
		t.Errorf("the new token: %d", code)
	}
	if code := with(oldFile); code != 64 {
		t.Errorf("the token before: %d", code)
	}
	if strings.Contains(s.Log(), strings.TrimSpace(string(old))) {
		t.Error("the token is in the log")
	}
}

// refusesHalfOfTLS starts with wrong settings of TLS, and then sets the right ones.
func refusesHalfOfTLS(t *testing.T, s *exchangetest.Server, folder string, tlsEnv []string) {
	t.Helper()
	_, port, err := net.SplitHostPort(s.Operator)
	succeeds(t, err)
	option(t, s, "--operator", "0.0.0.0:"+port)
	s.Refuses(64, "only a loopback address", "operator_tls.cert_file")
	plain := s.Env
	s.Env = append(slices.Clone(plain), tlsEnv[0])
	s.Refuses(64, "tls.key_file is empty")
	s.Env = append(slices.Clone(plain), tlsEnv...)
	s.Env = append(s.Env, "EXCHANGE_TLS_KEY_FILE="+folder+"/gone")
	s.Refuses(64, "TLS:", "no such file")
	s.Env = append(slices.Clone(plain), tlsEnv...)
}

// aliveOver returns the serial number of the certificate of a kept-alive connection.
func aliveOver(t *testing.T, client *http.Client, address string) int64 {
	t.Helper()
	resp := must[*http.Response](t)(client.Get("https://" + address + "/healthz"))
	defer resp.Body.Close()
	if _, err := io.ReadAll(resp.Body); err != nil { // or the connection is not used again
		t.Fatal(err)
	}
	return resp.TLS.PeerCertificates[0].SerialNumber.Int64()
}

func TestCertificatesAndTheTokenAreRenewedBySIGHUP(t *testing.T) {
	s := exchangetest.New(t, "pebble:"+t.TempDir())
	withoutToken(s)
	a, folder := tlstest.New(t), t.TempDir()
	a.Write(folder, 1, time.Now().Add(time.Hour))
	certFile, keyFile, authority := tlstest.Files(folder)
	tlsEnv := []string{"EXCHANGE_TLS_CERT_FILE=" + certFile, "EXCHANGE_TLS_KEY_FILE=" + keyFile,
		"EXCHANGE_OPERATOR_TLS_CERT_FILE=" + certFile, "EXCHANGE_OPERATOR_TLS_KEY_FILE=" + keyFile}
	refusesHalfOfTLS(t, s, folder, tlsEnv)
	s.Run()
	exchangetest.Eventually(t, "the exchange is alive", func() bool {
		_, _, code := s.Command("health", "--listen", s.Listen)
		return code == 0
	})
	operate := func(args ...string) (string, string, int) {
		return s.Command(append(args, "--operator", "https://"+s.Operator, "--operator-ca",
			authority, "--operator-token-file", s.Data("operator.token"))...)
	}
	exchangetest.Eventually(t, "the exchange is ready", func() bool {
		_, _, code := operate("account", "create", "alice")
		return code == 0
	})
	// without TLS
	if _, text, code := s.Command("account", "list", "--operator-token-file",
		s.Data("operator.token")); code == 0 {
		t.Errorf("%d %s", code, text)
	}
	serial := func(address string) int64 { return serialOf(t, a, address) }
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: a.Pool()}}, Timeout: 20 * time.Second}
	alive := func() int64 { t.Helper(); return aliveOver(t, client, s.Listen) }
	if n := alive(); n != 1 {
		t.Fatalf("certificate %d", n)
	}
	a.Write(folder, 2, time.Now().Add(time.Hour))
	s.Signal(syscall.SIGHUP)
	for _, address := range []string{s.Listen, s.Operator} {
		exchangetest.Eventually(t, "the new certificate is served", func() bool {
			return serial(address) == 2
		})
	}
	tlstest.Replace(t, certFile, []byte("broken"))
	s.Signal(syscall.SIGHUP)
	exchangetest.Eventually(t, "the broken one is logged", func() bool {
		return strings.Contains(s.Log(), "the one before stays")
	})
	if n := serial(s.Listen); n != 2 {
		t.Errorf("certificate %d is served", n)
	}
	a.Write(folder, 3, time.Now().Add(time.Hour))
	exchangetest.Eventually(t, "one that comes later is found without a signal", func() bool {
		return serial(s.Listen) == 3
	})

	tokenIsRenewed(t, s, folder, authority)
	if n := alive(); n != 1 {
		t.Errorf("the connection of the first certificate is gone: %d", n)
	}
	stops(t, s)
}

func TestTheServersKeyIsRotatedByItsCommands(t *testing.T) {
	s := exchangetest.New(t, "pebble:"+t.TempDir())
	config := func(args ...string) (answer struct{ Keys, Retired []string }) {
		t.Helper()
		out, errOut, code := s.Command(
			append(append([]string{"secret-key"}, args...),
				append([]string{"--json"}, s.Args[1:]...)...)...)
		if err := json.Unmarshal([]byte(out), &answer); err != nil || code != 0 {
			t.Fatalf("%q: %d %s %s", args, code, out, errOut)
		}
		return answer
	}
	if _, text, code := s.Command(
		append([]string{"secret-key", "rotate"}, s.Args[1:]...)...); code != 64 ||
		!strings.Contains(text, "makes it at its first start") {
		t.Errorf("%d %s", code, text)
	}
	s.Start()
	w := opened(t, s, 3)
	w.load(100, s.Kill)
	first := config("show").Keys
	rotated := config("rotate").Keys
	if len(first) != 1 || len(rotated) != 2 || rotated[1] != first[0] {
		t.Fatalf("%q, %q", first, rotated)
	}
	start := func() {
		t.Helper()
		s.Mails.Forget() // some may be of a key that is gone
		s.Start()
	}
	start()
	if !strings.Contains(s.Log(), "the secrets of API keys were sealed with the current key") {
		t.Error("nothing was sealed again")
	}
	w.load(100, s.Kill) // nothing of the start is lost by a crash
	retired := config("retire")
	if len(retired.Keys) != 1 || retired.Keys[0] != rotated[0] || len(retired.Retired) != 1 ||
		!strings.HasSuffix(retired.Retired[0], first[0]) {
		t.Fatalf("%+v", retired)
	}
	start()
	w.compare() // under the keys of before, by audit too
	w.load(100, s.Kill)

	// Retired too early: secrets sealed with the key can be opened while its file is there, next to
	// the other.
	config("rotate")
	early := config("retire").Retired
	text := must[[]byte](t)(os.ReadFile(early[0]))
	key := must[[]byte](t)(os.ReadFile(s.Data("exchange.key")))
	succeeds(t, os.Remove(early[0]))
	s.Refuses(64, "sealed with another secret key", rotated[0])
	succeeds(t, os.WriteFile(early[0], text, 0o600))
	start()
	w.compare()
	if log := s.Log(); strings.Contains(log, strings.TrimSpace(string(text))) ||
		strings.Contains(log, strings.TrimSpace(string(key))) {
		t.Error("a key is in the log")
	}
}
