package link

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"slices"
	"strings"
	"time"
)

const (
	// validYears is the validity of a certificate, in years.
	validYears = 10
	// before is how far a node's clock may lag behind that of the machine that made a certificate.
	before = time.Hour

	certificateBlock = "CERTIFICATE"
	keyBlock         = "PRIVATE KEY"
)

// An Authority signs the certificates of one cluster's nodes, and of no other names: its own
// certificate is constrained to them.
type Authority struct {
	cluster string
	cert    *x509.Certificate
	key     *ecdsa.PrivateKey
}

// NewAuthority makes the authority of a cluster.
func NewAuthority(cluster string) (*Authority, error) {
	if err := checkLabel(cluster); err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	form := &x509.Certificate{IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign, Subject: pkix.Name{CommonName: zone(cluster)},
		PermittedDNSDomainsCritical: true, PermittedDNSDomains: []string{zone(cluster)}}
	cert, err := sign(form, form, key, key)
	if err != nil {
		return nil, err
	}
	return &Authority{cluster, cert, key}, nil
}

// zone returns the DNS name below which all names of a cluster are.
func zone(cluster string) string { return cluster + "." + domain }

// LoadAuthority reads the texts of PEM.
func LoadAuthority(cert, key []byte) (*Authority, error) {
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("the authority: %w", err)
	}
	a := &Authority{cert: pair.Leaf}
	var ok bool
	if a.key, ok = pair.PrivateKey.(*ecdsa.PrivateKey); !ok || !a.cert.IsCA ||
		len(a.cert.PermittedDNSDomains) != 1 {
		return nil, errors.New("the certificate and its key are not those of a cluster's authority")
	}
	a.cluster, ok = strings.CutSuffix(a.cert.PermittedDNSDomains[0], "."+domain)
	if err := checkLabel(a.cluster); !ok || err != nil {
		return nil, errors.Join(errors.New("the certificate names no cluster"), err)
	}
	return a, nil
}

// Cluster returns the cluster that the authority is for.
func (a *Authority) Cluster() string { return a.cluster }

// PEM returns the authority's certificate, which all nodes have as their roots, and its key. Only
// the operator has the key: each process with the key can impersonate any node.
func (a *Authority) PEM() (cert, key []byte) {
	key, err := encodeKey(a.key)
	if err != nil {
		panic("BUG: a key that was made here cannot be encoded: " + err.Error())
	}
	return encode(certificateBlock, a.cert.Raw), key
}

// Issue makes the certificate and the key of a voter.
func (a *Authority) Issue(node string) (cert, key []byte, err error) {
	return a.issueAs(roleVoter, node)
}

// IssueObserver makes the certificate and the key of an observer, which prove no voter.
func (a *Authority) IssueObserver(name string) (cert, key []byte, err error) {
	return a.issueAs(roleObserver, name)
}

func (a *Authority) issueAs(role, name string) (cert, key []byte, err error) {
	if err := checkLabel(name); err != nil {
		return nil, nil, err
	}
	raw, own, err := a.issue(identityOf(role, a.cluster, name))
	if err != nil {
		return nil, nil, err
	}
	key, err = encodeKey(own)
	return encode(certificateBlock, raw), key, err
}

// issue makes a certificate with DNS names.
func (a *Authority) issue(names ...string) (raw []byte, key *ecdsa.PrivateKey, err error) {
	if key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, nil, err
	}
	cert, err := sign(&x509.Certificate{DNSNames: names, KeyUsage: x509.KeyUsageDigitalSignature,
		Subject: pkix.Name{CommonName: names[0]}, ExtKeyUsage: []x509.ExtKeyUsage{
			x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}, a.cert, key, a.key)
	if err != nil {
		return nil, nil, err
	}
	return cert.Raw, key, nil
}

// sign makes a certificate.
func sign(form, parent *x509.Certificate, key, with *ecdsa.PrivateKey) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	form.SerialNumber = serial
	now := time.Now()
	form.NotBefore, form.NotAfter = now.Add(-before), now.AddDate(validYears, 0, 0)
	raw, err := x509.CreateCertificate(rand.Reader, form, parent, &key.PublicKey, with)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(raw)
}

func encode(kind string, raw []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw})
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return encode(keyBlock, raw), nil
}

// Fits returns an error unless these are the credentials of a node or an observer of a cluster.
func (c *Credentials) Fits(cluster, name string, observer bool) error {
	role := roleVoter
	if observer {
		role = roleObserver
	}
	own := c.Certificate.Leaf
	if want := identityOf(role, cluster, name); !slices.Contains(own.DNSNames, want) {
		return fmt.Errorf("the certificate is of %s, and not of %s",
			strings.Join(own.DNSNames, ", "), want)
	}
	if _, err := own.Verify(x509.VerifyOptions{Roots: c.Roots,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err != nil {
		return fmt.Errorf("the certificate is not one of the authority's: %w", err)
	}
	return nil
}

// LoadCredentials reads a node's certificate, its key, and the authority's certificate from files.
func LoadCredentials(certFile, keyFile, caFile string) (*Credentials, error) {
	certificate, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("the node's certificate: %w", err)
	}
	text, err := os.ReadFile(caFile)
	if err != nil {
		return nil, fmt.Errorf("the authority's certificate: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate", caFile)
	}
	return &Credentials{Certificate: certificate, Roots: roots}, nil
}
