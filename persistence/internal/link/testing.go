package link

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"time"
)

// An Authority signs certificates of nodes, for tests of stores that are linked.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority makes an authority, for tests of stores that are linked.
func NewAuthority() (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	form := &x509.Certificate{IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign}
	cert, err := sign(form, form, key, key)
	return &Authority{cert, key}, err
}

// sign makes a certificate that is valid for a day.
func sign(form, parent *x509.Certificate, key, with *ecdsa.PrivateKey) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return nil, err
	}
	form.SerialNumber = serial
	form.NotBefore, form.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	raw, err := x509.CreateCertificate(rand.Reader, form, parent, &key.PublicKey, with)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(raw)
}

// Certificate returns that of a node with DNS names, for tests of stores that are linked.
func (a *Authority) Certificate(names ...string) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	cert, err := sign(&x509.Certificate{DNSNames: names, ExtKeyUsage: []x509.ExtKeyUsage{
		x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}, a.cert, key, a.key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key}, nil
}

// Pool returns a pool that has the authority alone, for tests of stores that are linked.
func (a *Authority) Pool() *x509.CertPool {
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	return roots
}
