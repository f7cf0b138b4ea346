package replicated

import "exchange/persistence/internal/link"

// An Authority signs the certificates of one cluster's nodes. Its PEM holds the certificate, which
// all nodes keep, and the key, which no node keeps. Issue makes a node's certificate and key.
type Authority = link.Authority

// Credentials prove a node's name to the others, and theirs to it.
type Credentials = link.Credentials

// NewAuthority makes the authority of a cluster. Names of clusters and nodes are 1 to 63 characters
// of a-z, 0-9 and '-'.
func NewAuthority(cluster string) (*Authority, error) { return link.NewAuthority(cluster) }

// LoadAuthority reads the certificate and the key of an authority, as PEM returned them.
func LoadAuthority(cert, key []byte) (*Authority, error) { return link.LoadAuthority(cert, key) }

// LoadCredentials reads a node's certificate, its key, and the authority's certificate from files.
func LoadCredentials(certFile, keyFile, caFile string) (*Credentials, error) {
	return link.LoadCredentials(certFile, keyFile, caFile)
}
