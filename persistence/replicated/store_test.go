package replicated

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"exchange/persistence"
	"exchange/persistence/internal/raftlog"
	"exchange/persistence/memory"
)

// credentials returns those of a node.
func credentials(t *testing.T, a *Authority, node string) *Credentials {
	t.Helper()
	cert, key, err := a.Issue(node)
	must(t, err)
	return proof(t, a, cert, key)
}

// proof returns credentials with a certificate of the authority.
func proof(t *testing.T, a *Authority, cert, key []byte) *Credentials {
	t.Helper()
	certificate, err := tls.X509KeyPair(cert, key)
	must(t, err)
	roots := x509.NewCertPool()
	if ca, _ := a.PEM(); !roots.AppendCertsFromPEM(ca) {
		t.Fatal("the authority has no certificate")
	}
	return &Credentials{Certificate: certificate, Roots: roots}
}

func TestANodeWithoutALogIsNotOpened(t *testing.T) {
	local := memory.Open(memory.NewDisk(), persistence.Retention{})
	_, err := open(options{dir: "node", files: vfs.NewMem(), local: local, logger: quiet,
		now: time.Now})
	if !errors.Is(err, raftlog.ErrNotFormed) {
		t.Fatal(err)
	}
}

// Callers of a closed store get an error that is not definite.
func TestAClosedStoreTakesNothing(t *testing.T) {
	s := openNode(t, options{dir: "node", files: vfs.NewMem(),
		local: memory.Open(memory.NewDisk(), persistence.Retention{})}, 0, 1)
	tok, _, err := s.Acquire(t.Context(), persistence.Claim{Owner: "an owner"})
	must(t, err)
	must(t, s.Close())
	must(t, s.Close())
	for what, err := range map[string]error{
		"append": s.Append(t.Context(), tok, 0, 1, []byte("x")),
		"check":  s.Check(t.Context(), tok),
		"read":   s.Read(t.Context(), 0, nil),
		"nonces": s.Nonces(t.Context(), nil),
	} {
		if err == nil || persistence.Definite(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A caller that stops waiting gets an error that is not definite.
func TestACallerMayStopWaiting(t *testing.T) {
	s := openNode(t, options{dir: "node", files: vfs.NewMem(), send: func(string, []byte) {},
		local: memory.Open(memory.NewDisk(), persistence.Retention{})}, 0, 3)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := s.Acquire(ctx, persistence.Claim{Owner: "an owner"})
	if err == nil || persistence.Definite(err) {
		t.Fatal(err)
	}
	if err := s.awaitLead(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}
