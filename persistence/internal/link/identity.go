package link

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
)

// Credentials prove a node's name to its peers, and theirs to it.
type Credentials struct {
	Certificate tls.Certificate
	// Roots is the cluster's authority.
	Roots *x509.CertPool
}

// The roles that a certificate gives a name: the part after the name.
const (
	roleVoter    = "voter"
	roleObserver = "observer"
)

const (
	domain = "exchange"
	// maxLabel is the longest part of a DNS name, in characters.
	maxLabel = 63
)

// identity returns the DNS name in a voter's certificate.
func identity(cluster, name string) string { return identityOf(roleVoter, cluster, name) }

// identityOf returns the DNS name in the certificate of a role.
func identityOf(role, cluster, name string) string {
	return strings.Join([]string{name, role, cluster, domain}, ".")
}

// identity returns the name in this process's greetings.
func (l *Link) identity() string {
	if l.o.Observes {
		return identityOf(roleObserver, l.o.Cluster, l.o.Name)
	}
	return identity(l.o.Cluster, l.o.Name)
}

// checkLabel refuses a name that cannot be a part of a DNS name.
func checkLabel(name string) error {
	ok := name != "" && len(name) <= maxLabel && name[0] != '-' && name[len(name)-1] != '-'
	for _, c := range []byte(name) {
		ok = ok && (c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-')
	}
	if !ok {
		return fmt.Errorf("the name %q: it must have 1 to %d characters of a-z, 0-9 and '-'", name,
			maxLabel)
	}
	return nil
}

// config authenticates this node and verifies a peer named server; "": a peer that dials.
func (c *Credentials) config(server string) *tls.Config {
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{c.Certificate},
		RootCAs:      c.Roots,
		ClientCAs:    c.Roots,
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ServerName:   server,
	}
}

// named reports whether a connection's certificate, which was verified, is a node's.
func named(conn *tls.Conn, identity string) bool {
	certificates := conn.ConnectionState().PeerCertificates
	return len(certificates) > 0 && slices.Contains(certificates[0].DNSNames, identity)
}

// loopback refuses an address that another machine can reach, or that needs a look-up.
func loopback(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("%s: %w", address, errPlain)
	}
	return nil
}

var errPlain = errors.New("nodes without certificates have addresses of the loopback only")
