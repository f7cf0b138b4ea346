// Package tlstest makes certificates for tests. All of it is in tlstest.go.
package tlstest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// An Authority signs certificates for 127.0.0.1, ::1 and localhost.
type Authority struct {
	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// New makes an authority.
func New(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{t: t, key: NewKey(t)}
	form := &x509.Certificate{SerialNumber: big.NewInt(1),
		Subject:   pkix.Name{CommonName: "authority of the tests"},
		NotBefore: time.Now().Add(-time.Hour),
		NotAfter:  time.Now().Add(1000 * time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign}
	raw, err := x509.CreateCertificate(rand.Reader, form, form, &a.key.PublicKey, a.key)
	if err == nil {
		a.cert, err = x509.ParseCertificate(raw)
	}
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// NewKey makes a key of an elliptic curve.
func NewKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// Pool returns a pool with only the authority.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// Text returns the authority's certificate in PEM form.
func (a *Authority) Text() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

// Pair makes a new key and its certificate in PEM form, with a serial number and an end.
func (a *Authority) Pair(serial int64, until time.Time) (cert, key []byte) {
	a.t.Helper()
	return a.PairOf(NewKey(a.t), serial, time.Now().Add(-24*time.Hour), until)
}

// PairOf is Pair for a given key of any kind and a given begin.
func (a *Authority) PairOf(private crypto.Signer, serial int64,
	from, until time.Time) (cert, key []byte) {
	a.t.Helper()
	form := &x509.Certificate{SerialNumber: big.NewInt(serial),
		Subject: pkix.Name{CommonName: "exchange"}, NotBefore: from, NotAfter: until,
		DNSNames:    []string{"localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	raw, err := x509.CreateCertificate(rand.Reader, form, a.cert, private.Public(), a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		a.t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
}

// Files returns the names of a certificate, its key, and the authority's certificate in a folder.
func Files(folder string) (cert, key, authority string) {
	return filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem"),
		filepath.Join(folder, "authority.pem")
}

// Write puts a new pair into the files of a folder, as an operator does who renews it.
func (a *Authority) Write(folder string, serial int64, until time.Time) {
	a.t.Helper()
	cert, key := a.Pair(serial, until)
	certFile, keyFile, authorityFile := Files(folder)
	for name, text := range map[string][]byte{certFile: cert, keyFile: key,
		authorityFile: a.Text()} {
		Replace(a.t, name, text)
	}
}

// Replace replaces a file's content in one step, with mode 0600.
func Replace(t testing.TB, name string, text []byte) {
	t.Helper()
	if err := os.WriteFile(name+".new", text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		t.Fatal(err)
	}
}
