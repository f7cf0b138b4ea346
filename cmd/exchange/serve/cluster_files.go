package serve

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"exchange/actors/seal"
	"exchange/cmd/exchange/cli"
	"exchange/config"
	"exchange/persistence"
	"exchange/persistence/replicated"
)

// The files that make nodes a cluster. The operator's folder has the first five and a folder of
// each node, which has all but ca.key and is copied to that node's machine:
//
//	cluster.id      the id of the cluster
//	ca.crt          the certificate of its authority
//	exchange.key    the key that seals API secrets, the same on all nodes
//	operator.token  the token of operators' commands, the same on all nodes
//	ca.key          the authority's key: its holder can impersonate any node
//	node.crt        the node's certificate
//	node.key        its key
//
// The folder of an observer has neither exchange.key nor operator.token.
const (
	clusterIDName   = "cluster.id"
	authorityName   = "ca.crt"
	authorityKey    = "ca.key"
	certificateName = "node.crt"
	certificateKey  = "node.key"
)

// A clusterFolder is the operator's folder of a cluster.
type clusterFolder struct {
	dir       string
	id        string
	authority *replicated.Authority
}

// newClusterFolder makes the folder, with a new authority, a new secret key and a new operator's
// token. Nothing is overwritten.
func newClusterFolder(dir string) (*clusterFolder, error) {
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return nil, cli.WithExit(cli.ExitUsage,
			fmt.Errorf("%s is not empty, and nothing is overwritten: "+
				"name a folder that is not there yet", dir))
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, cli.WithExit(cli.SystemCode(err), err)
	}
	c := &clusterFolder{dir: dir, id: persistence.NewID()}
	var err error
	if c.authority, err = replicated.NewAuthority(c.id); err != nil {
		return nil, err
	}
	cert, key := c.authority.PEM()
	if _, err := seal.Load("", c.file(config.SecretKeyName), true); err != nil {
		return nil, cli.WithExit(cli.ExitUsage, err)
	}
	return c, c.write("", map[string]string{clusterIDName: c.id + "\n",
		authorityName: string(cert), authorityKey: string(key),
		config.OperatorTokenName: newToken() + "\n"})
}

// openClusterFolder reads the files of newClusterFolder.
func openClusterFolder(dir string) (*clusterFolder, error) {
	c := &clusterFolder{dir: dir}
	cert, err1 := os.ReadFile(c.file(authorityName))
	key, err2 := readSecret("the key of the cluster's authority", c.file(authorityKey))
	if err := errors.Join(err1, err2); err != nil {
		return nil, cli.WithExit(cli.ExitUsage, fmt.Errorf(
			"%w; name the folder that `exchange cluster init` has made", err))
	}
	var err error
	if c.authority, err = replicated.LoadAuthority(cert, key); err != nil {
		return nil, cli.WithExit(cli.ExitUsage, fmt.Errorf("%s: %w", dir, err))
	}
	c.id = c.authority.Cluster()
	return c, nil
}

func (c *clusterFolder) file(name string) string { return filepath.Join(c.dir, name) }

// write writes files below the folder, each readable by its owner only, and overwrites none.
func (c *clusterFolder) write(below string, files map[string]string) error {
	for name, text := range files {
		if err := seal.WriteSecret(c.file(filepath.Join(below, name)), text); err != nil {
			return cli.WithExit(cli.SystemCode(err), err)
		}
	}
	return nil
}

// certify makes the folder of a node, which must not exist yet.
func (c *clusterFolder) certify(node string) (dir string, err error) {
	cert, key, err := c.authority.Issue(node)
	if err != nil {
		return "", cli.WithExit(cli.ExitUsage, err)
	}
	secret, err := readSecret("the secret key", c.file(config.SecretKeyName))
	if err != nil {
		return "", cli.WithExit(cli.ExitUsage, err)
	}
	files := map[string]string{certificateName: string(cert), certificateKey: string(key),
		config.SecretKeyName: string(secret)}
	token, err := readSecret("the operator's token", c.file(config.OperatorTokenName))
	switch {
	case err == nil:
		files[config.OperatorTokenName] = string(token)
	case !errors.Is(err, fs.ErrNotExist): // it may be missing
		return "", cli.WithExit(cli.ExitUsage, err)
	}
	return c.folder(node, files)
}

// certifyObserver makes the folder of an observer, which must not exist yet. It has neither the
// secret key nor the operator's token.
func (c *clusterFolder) certifyObserver(name string) (dir string, err error) {
	cert, key, err := c.authority.IssueObserver(name)
	if err != nil {
		return "", cli.WithExit(cli.ExitUsage, err)
	}
	return c.folder(name, map[string]string{certificateName: string(cert),
		certificateKey: string(key)})
}

// folder makes the folder of a node or an observer, with the cluster's id and the authority's
// certificate as well.
func (c *clusterFolder) folder(name string, files map[string]string) (dir string, err error) {
	ca, err := os.ReadFile(c.file(authorityName))
	if err != nil {
		return "", cli.WithExit(cli.ExitUsage, err)
	}
	files[clusterIDName], files[authorityName] = c.id+"\n", string(ca)
	dir = c.file(name)
	if err := os.Mkdir(dir, 0o700); errors.Is(err, fs.ErrExist) {
		return "", cli.WithExit(cli.ExitUsage, fmt.Errorf(
			"%s is there, and nothing is overwritten: move it away for a new certificate", dir))
	} else if err != nil {
		return "", cli.WithExit(cli.ExitUsage, err)
	}
	return dir, c.write(name, files)
}

// plainCluster is the id of a cluster without certificates, on the loopback.
const plainCluster = "local"

// loadNode reads the cluster's id and this node's credentials. Without a folder the nodes use plain
// connections.
func loadNode(c *config.Cluster) (id string, _ *replicated.Credentials, err error) {
	if c.Folder == "" {
		return plainCluster, nil, nil
	}
	in := func(name string) string { return filepath.Join(c.Folder, name) }
	text, err := os.ReadFile(in(clusterIDName))
	if err != nil {
		return "", nil, fmt.Errorf("the cluster's id: %w", err)
	}
	if _, err := readSecret("this node's key", in(certificateKey)); err != nil {
		return "", nil, err
	}
	credentials, err := replicated.LoadCredentials(in(certificateName), in(certificateKey),
		in(authorityName))
	if err != nil {
		return "", nil, err
	}
	id = strings.TrimSpace(string(text))
	if err := credentials.Fits(id, c.Node, c.Observer); err != nil {
		return "", nil, fmt.Errorf("%s: %w", in(certificateName), err)
	}
	return id, credentials, nil
}
