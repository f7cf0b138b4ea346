//go:build prove && linux

package processes

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"exchange/prove/exchangetest"
)

// Operators' commands use a socket in the data folder: no token is created or sent.
func TestOperatorsUseASocketWithoutAToken(t *testing.T) {
	s := exchangetest.New(t, "pebble:"+t.TempDir())
	withoutToken(s)
	option(t, s, "--operator", "unix:operator.sock")
	path := s.Data("operator.sock")
	operate := func(args ...string) (string, string, int) {
		return s.Command(append(args, "--operator", "unix:"+path)...)
	}
	for range 2 { // the second start finds the socket that the killed one has left
		s.Start()
		if out, text, code := operate("account", "list"); code != 0 {
			t.Fatalf("%d %s%s", code, out, text)
		}
		if info, err := os.Lstat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Fatalf("%v, %v", info.Mode(), err)
		}
		s.Kill()
	}
	if _, err := os.Stat(s.Data("operator.token")); err == nil {
		t.Error("a token was made that no listener asks for")
	}
	if _, text, code := operate("account", "list"); code != 75 ||
		!strings.Contains(text, "is `exchange serve` running?") {
		t.Errorf("%d %s", code, text)
	}

	// The load tester uses the socket, too.
	s.Start()
	if out, text, code := operate("loadtest", "--address", s.Listen, "--accounts", "2",
		"--connections", "2", "--duration", "200ms"); code != 0 {
		t.Fatalf("%d %s%s", code, out, text)
	}
	if code := s.Terminate(); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	if _, err := os.Lstat(path); err == nil {
		t.Error("an orderly end has left the socket")
	}

	// A file that is not its socket is not touched.
	succeeds(t, os.WriteFile(path, []byte("mine"), 0o600))
	s.Refuses(64, "there is something else under this name")
	if b, err := os.ReadFile(path); err != nil || string(b) != "mine" {
		t.Errorf("%q, %v", b, err)
	}
	succeeds(t, os.Remove(path))
	l := must[net.Listener](t)(net.Listen("unix", path))
	s.Refuses(75, "another process listens there")
	succeeds(t, l.Close())
	option(t, s, "--operator", "unix:"+filepath.Join(t.TempDir(), strings.Repeat("x", 120)))
	s.Refuses(64, "a socket's takes 103", "127.0.0.1:8081")
}

// A guessable own token refuses the start, with the remedy.
func TestAShortTokenRefusesTheStart(t *testing.T) {
	s := exchangetest.New(t, "pebble:"+t.TempDir())
	s.Env = append(slices.Clone(s.Env), "EXCHANGE_OPERATOR_TOKEN="+strings.Repeat("x", 31))
	s.Refuses(64, "has 31 characters and needs 32", "openssl rand -hex 32")
}

// Monitoring has a listener of its own.
func TestMonitoringNeedsNoTokenThatMovesMoney(t *testing.T) {
	s := exchangetest.New(t, "pebble:"+t.TempDir())
	at := exchangetest.FreeAddress(t)
	s.Env = append(slices.Clone(s.Env), "EXCHANGE_METRICS_LISTEN="+at)
	s.Start()
	status, body, err := s.Client.Get(nil, "http://"+at+"/metrics")
	if err != nil || status != 200 ||
		!strings.Contains(string(body), "exchange_orders_accepted_total") {
		t.Errorf("%d, %v", status, err)
	}
	if status, _, err := s.Client.Get(nil, "http://"+at+"/operator/v1/accounts"); err != nil ||
		status != 404 {
		t.Errorf("%d, %v", status, err)
	}
}
