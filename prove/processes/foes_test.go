//go:build prove && linux

package processes

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// An issuer signs certificates as a cluster's authority does, and wrong ones.
type issuer struct {
	t       *testing.T
	cluster string
	cert    *x509.Certificate
	key     any
	roots   *x509.CertPool
}

// issuerOf is the authority of a cluster, from the operator's folder.
func issuerOf(t *testing.T, folder string) *issuer {
	t.Helper()
	id, err1 := os.ReadFile(filepath.Join(folder, "cluster.id"))
	pair, err2 := tls.LoadX509KeyPair(filepath.Join(folder, "ca.crt"),
		filepath.Join(folder, "ca.key"))
	succeeds(t, err1, err2)
	i := &issuer{t: t, cluster: strings.TrimSpace(string(id)), cert: pair.Leaf,
		key: pair.PrivateKey, roots: x509.NewCertPool()}
	i.roots.AddCert(i.cert)
	return i
}

// identity is the name in the certificate of a node, or of an observer.
func (i *issuer) identity(role, name string) string {
	return strings.Join([]string{name, role, i.cluster, "exchange"}, ".")
}

// issue signs a certificate, after change has modified it.
func (i *issuer) issue(name string, change func(*x509.Certificate)) *tls.Certificate {
	i.t.Helper()
	key := must[*ecdsa.PrivateKey](i.t)(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	form := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()),
		DNSNames: []string{name}, Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{
			x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	if change != nil {
		change(form)
	}
	raw, err := x509.CreateCertificate(rand.Reader, form, i.cert, &key.PublicKey, i.key)
	succeeds(i.t, err)
	return &tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}
}

// A foe is a hostile peer of one process, with an address of its own.
type foe struct {
	*issuer
	address string // that it attacks
	server  string // name in the certificate there
	own     string // its own address
}

// patience bounds a foe's wait for its end. It is no bound for the program.
const patience = time.Minute

// dial opens a plain connection.
func (f *foe) dial() (net.Conn, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(f.own)}, Timeout: patience}
	conn, err := d.Dial("tcp", f.address)
	if err != nil {
		return nil, err
	}
	return conn, conn.SetDeadline(time.Now().Add(patience))
}

// secure opens a connection with a certificate; nil: without one.
func (f *foe) secure(cert *tls.Certificate) (net.Conn, error) {
	conn, err := f.dial()
	if err != nil {
		return nil, err
	}
	c := &tls.Config{RootCAs: f.roots, ServerName: f.server, MinVersion: tls.VersionTLS13}
	if cert != nil {
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return cert, nil // whatever authority is asked for
		}
	}
	return tls.Client(conn, c), nil
}

// framed prefixes a frame with its length.
func framed(text string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...)
}

var errStillOpen = errors.New("the connection is still open")

// ends returns all bytes until the connection ends, and an error if it does not.
func ends(conn net.Conn) (string, error) {
	defer conn.Close()
	all, err := io.ReadAll(io.LimitReader(conn, 16<<20))
	if late, ok := errors.AsType[net.Error](err); ok && late.Timeout() {
		return string(all), errStillOpen
	}
	return string(all), nil // however it ends
}

// says opens a connection, sends pieces, and expects its end.
func (f *foe) says(conn net.Conn, err error, pieces ...[]byte) (string, error) {
	if err != nil {
		return "", err
	}
	go func() {
		for _, b := range pieces {
			if _, err := conn.Write(b); err != nil {
				return
			}
		}
	}()
	return ends(conn)
}

// slowly is says at one byte each quarter of a second, repeated endlessly.
func (f *foe) slowly(conn net.Conn, err error, first, each []byte) (string, error) {
	if err != nil {
		return "", err
	}
	over := make(chan struct{})
	defer close(over)
	go func() {
		conn.Write(first) //nolint:errcheck // it may have ended
		next := time.NewTicker(250 * time.Millisecond)
		defer next.Stop()
		for i := 0; ; i++ {
			if _, err := conn.Write([]byte{each[i%len(each)]}); err != nil {
				return
			}
			select {
			case <-next.C:
			case <-over:
				return
			}
		}
	}()
	return ends(conn)
}

// crowd opens silent connections, calls then, and waits for their end, or closes them.
func (f *foe) crowd(n int, waits bool, then func() error) error {
	var all []net.Conn
	defer func() {
		for _, c := range all {
			c.Close()
		}
	}()
	for range n {
		conn, err := f.dial()
		if err != nil {
			return err
		}
		all = append(all, conn)
	}
	if err := then(); err != nil || !waits {
		return err
	}
	for i, c := range all {
		if _, err := ends(c); err != nil {
			return fmt.Errorf("connection %d of %d: %w", i, n, err)
		}
	}
	return nil
}
