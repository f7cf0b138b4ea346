package link

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A certificate of an authority, also of one that was reloaded, proves one voter of its cluster to
// its own roots, as server and as client, for ten years.
func TestAuthorityIssuesNamesOfItsCluster(t *testing.T) {
	made, err := NewAuthority("c1")
	succeeds(t, err)
	cert, key := made.PEM()
	ca, err := LoadAuthority(cert, key)
	if err != nil || ca.Cluster() != "c1" {
		t.Fatal(ca, err)
	}
	dir := t.TempDir()
	write := func(name string, b []byte) string {
		name = filepath.Join(dir, name)
		succeeds(t, os.WriteFile(name, b, 0o600))
		return name
	}
	roots := write("ca", cert)
	for _, a := range []*Authority{made, ca} {
		cert, key, err := a.Issue("n1")
		succeeds(t, err)
		certFile, keyFile := write("cert", cert), write("key", key)
		c, err := LoadCredentials(certFile, keyFile, roots)
		succeeds(t, err)
		other, err := NewAuthority("c1")
		succeeds(t, err)
		foreign := &Credentials{Certificate: c.Certificate, Roots: x509.NewCertPool()}
		foreign.Roots.AddCert(other.cert)
		if err := c.Fits("c1", "n1", false); err != nil || c.Fits("c1", "n2", false) == nil ||
			c.Fits("c2", "n1", false) == nil || c.Fits("c1", "n1", true) == nil ||
			foreign.Fits("c1", "n1", false) == nil {
			t.Error("they fit another node, observer, cluster or authority, or not their own:", err)
		}
		leaf := c.Certificate.Leaf
		if len(leaf.DNSNames) != 1 || leaf.DNSNames[0] != "n1.voter.c1.exchange" || leaf.IsCA {
			t.Fatalf("%v", leaf.DNSNames)
		}
		for _, u := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth,
			x509.ExtKeyUsageClientAuth} {
			if _, err := leaf.Verify(x509.VerifyOptions{Roots: c.Roots,
				DNSName: identity("c1", "n1"), KeyUsages: []x509.ExtKeyUsage{u},
				CurrentTime: time.Now().AddDate(validYears, 0, -1)}); err != nil {
				t.Error(err)
			}
		}
		if _, err := LoadAuthority(cert, key); err == nil {
			t.Error("a node's certificate is an authority's")
		}
		for _, files := range [][3]string{{keyFile, certFile, roots}, {certFile, keyFile, keyFile},
			{certFile, keyFile, roots + ".none"}} {
			if _, err := LoadCredentials(files[0], files[1], files[2]); err == nil {
				t.Errorf("%v are read", files)
			}
		}
	}
	for _, name := range []string{"", "N1", "a.b", "-a"} {
		if _, _, err := ca.Issue(name); err == nil {
			t.Errorf("%q is a node's name", name)
		}
		if _, err := NewAuthority(name); err == nil {
			t.Errorf("%q is a cluster's name", name)
		}
	}
	if _, key := ca.PEM(); !bytes.Equal(key, func() []byte { _, k := made.PEM(); return k }()) {
		t.Error("another key is read")
	}
}

// An authority's key proves no name of another cluster.
func TestAuthorityIsLimitedToOneCluster(t *testing.T) {
	ca, err := NewAuthority("c1")
	succeeds(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(ca.cert)
	for name, good := range map[string]bool{identity("c1", "a"): true, identity("c2", "a"): false,
		"example.com": false} {
		raw, key, err := ca.issue(name)
		succeeds(t, err)
		c := tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}
		leaf, err := x509.ParseCertificate(c.Certificate[0])
		succeeds(t, err)
		if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: name}); (err == nil) !=
			good {
			t.Errorf("%s: %v", name, err)
		}
	}
}
