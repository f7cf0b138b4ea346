package operate

import (
	"crypto/tls"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"exchange/cmd/exchange/cli"
	"exchange/gateway/tlstest"
	"exchange/prove/clitest"
)

// newSecureFake returns a fakeServer with TLS, and the file of the authority that signed its
// certificate.
func newSecureFake(t *testing.T, status int, body string) (f *fakeServer, authority string) {
	t.Helper()
	f = newFake(t, status, body)
	a := tlstest.New(t)
	cert, key := a.Pair(1, time.Now().Add(time.Hour))
	pair := must(tls.X509KeyPair(cert, key))
	s := startServer(t, f, &pair)
	authority = filepath.Join(t.TempDir(), "authority.pem")
	worked(t, os.WriteFile(authority, a.Text(), 0o600))
	f.url = s.URL // https://
	f.environ = []string{"EXCHANGE_OPERATOR=" + f.url, "EXCHANGE_OPERATOR_TOKEN=" + testToken}
	return f, authority
}

func TestOperatorsSpeakTLSToTrustedServers(t *testing.T) {
	f, authority := newSecureFake(t, 200, `{"accounts":[]}`)
	list := []string{"account", "list"}
	ok := func(r clitest.Result) {
		t.Helper()
		if r.Code != 0 || !strings.Contains(r.Out, "ACCOUNT") {
			t.Errorf("%+v", r)
		}
		if n := len(f.requests()); n != 1 {
			t.Errorf("%d requests", n)
		}
	}
	ok(runLine(f.environ, append(list, "--operator-ca", authority)...))
	ok(runLine(append(f.environ, "EXCHANGE_OPERATOR_CA="+authority), list...))
	ok(runLine(append(f.environ, "EXCHANGE_OPERATOR=unused:1"),
		append(list, "--operator", f.url+"/", "--operator-ca", authority)...))
	ok(runLine(f.environ, "account", "list", "--operator-ca", authority, "--operator",
		strings.Replace(f.url, "127.0.0.1", "localhost", 1)))

	// An untrusted server receives nothing.
	other := filepath.Join(t.TempDir(), "other.pem")
	worked(t, os.WriteFile(other, tlstest.New(t).Text(), 0o600))
	runLine(f.environ, list...).WantError(t, cli.ExitUsage,
		"is not trusted, and nothing was sent")
	runLine(f.environ, append(list, "--operator-ca", other)...).WantError(t, cli.ExitUsage,
		"is not trusted, and nothing was sent")
	runLine(f.environ, "deposit", "a", "BTC", "1", "--operator-ca", other).WantError(t,
		cli.ExitUsage,
		"is not trusted, and nothing was sent")
	plain := newFake(t, 200, `{"accounts":[]}`)
	runLine(plain.environ, append(list, "--operator", "https://"+plain.url)...).WantError(t,
		cli.ExitUsage, "does not speak TLS, and nothing was sent")
	plain.wantAsked()
	f.wantAsked()

	for file, want := range map[string]string{filepath.Join(t.TempDir(), "gone"): "no such file",
		f.t.TempDir(): "is a directory", os.Args[0]: "has no certificate in PEM form"} {
		runLine(f.environ, append(list, "--operator-ca", file)...).WantError(t, cli.ExitUsage, want)
	}
	f.wantAsked()
}

func TestTheTokenCrossesNoNetworkInClearText(t *testing.T) {
	environ := []string{"EXCHANGE_OPERATOR_TOKEN=" + testToken}
	for _, address := range []string{"10.0.0.1:8081", "example.org:8081", "0.0.0.0:8081", ":8081",
		"[::]:8081", "localhost.example.org:8081"} {
		runLine(environ, "account", "list", "--operator", address).WantError(t, cli.ExitUsage,
			"clear text: write https://"+address)
		runLine(append(environ, "EXCHANGE_OPERATOR="+address), "account", "list").WantError(t,
			cli.ExitUsage, "clear text")
	}
	for _, address := range []string{"http://127.0.0.1:8081", "https://", "https://x",
		"https://x:0", "https://x:y", "https://u:p@x:1", "https://x:1/path",
		"https://https://x:1"} {
		runLine(environ, "account", "list", "--operator", address).WantError(t, cli.ExitUsage,
			"write host:port")
	}
}

func TestHealthAsksAListenerWithTLS(t *testing.T) {
	a, folder := tlstest.New(t), t.TempDir()
	a.Write(folder, 1, time.Now().Add(time.Hour))
	certFile, keyFile, _ := tlstest.Files(folder)
	pair := must(tls.LoadX509KeyPair(certFile, keyFile))
	s := startServer(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), &pair)
	_, port, _ := strings.Cut(strings.TrimPrefix(s.URL, "https://"), ":")
	runLine(nil, "health", "--listen", "127.0.0.1:"+port, "--tls-cert-file", certFile).Want(t, 0,
		"ok\n", "")
	runLine([]string{"EXCHANGE_TLS_CERT_FILE=" + certFile, "EXCHANGE_LISTEN=0.0.0.0:" + port},
		"health").Want(t, 0, "ok\n", "")
	runLine(nil, "health", "--listen", "127.0.0.1:"+port).WantError(t, cli.ExitUnavailable, "")
	other := t.TempDir()
	tlstest.New(t).Write(other, 1, time.Now().Add(time.Hour))
	otherFile, _, _ := tlstest.Files(other)
	// On this machine the present content of the file does not matter: the previous certificate may
	// be served.
	for _, file := range []string{otherFile, keyFile, filepath.Join(other, "gone")} {
		runLine(nil, "health", "--listen", "127.0.0.1:"+port, "--tls-cert-file", file).Want(t, 0,
			"ok\n", "")
	}
	runLine(nil, "health", "--listen", "192.0.2.1:"+port, "--tls-cert-file", keyFile).WantError(t,
		cli.ExitUsage, "has no certificate")
	for host, verified := range map[string]bool{"127.0.0.1": false, "::1": false, "192.0.2.1": true,
		"exchange.example.org": true} {
		if _, trust, err := healthTrust(host, certFile); err != nil ||
			trust.InsecureSkipVerify == verified ||
			verified && (trust.RootCAs == nil || trust.ServerName != "localhost") {
			t.Errorf("%s: %+v, %v", host, trust, err)
		}
	}
}

// The address that serve takes from the environment is also the commands' address, with TLS if
// serve has it.
func TestCommandsSpeakTLSWhereTheirServerDoes(t *testing.T) {
	f, authority := newSecureFake(t, 200, `{"accounts":[]}`)
	environ := append(f.environ, "EXCHANGE_OPERATOR="+strings.TrimPrefix(f.url, "https://"),
		"EXCHANGE_OPERATOR_CA="+authority)
	if r := runLine(append(environ, "EXCHANGE_OPERATOR_TLS_CERT_FILE=cert.pem"), "account",
		"list"); r.Code != 0 || len(f.requests()) != 1 {
		t.Errorf("%+v", r)
	}
	if r := runLine(environ, "account", "list"); r.Code == 0 {
		t.Errorf("without TLS: %+v", r)
	}
}
