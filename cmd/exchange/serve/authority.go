package serve

import (
	"context"
	"encoding/pem"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"exchange/cmd/exchange/cli"
	"exchange/persistence/replicated"
)

// The commands that replace a cluster's authority after a theft of ca.key or a node's key.

// authorityAnswer is the output of the commands about the authority.
type authorityAnswer struct {
	Cluster string `json:"cluster"`
	Folder  string `json:"folder"`
	// Authorities is the number of authorities in the certificate's file. The first one signs.
	Authorities int `json:"authorities"`
}

func (p *Commands) clusterAuthorityCommand() *cobra.Command {
	command := func(use, short, next string,
		change func(dir string) (*authorityAnswer, error)) *cobra.Command {
		return &cobra.Command{
			Use: use + " FOLDER", Short: short, Args: cli.Takes("FOLDER"),
			RunE: cli.Run(func(_ context.Context, args []string) error {
				a, err := change(args[0])
				if err != nil {
					return cli.WithExit(cli.ExitUsage, err)
				}
				return p.Print(a, func(w *tabwriter.Writer) {
					fmt.Fprintf(w, "authorities of cluster %s\t%d\n\n%s\n", a.Cluster,
						a.Authorities, next)
				})
			}),
		}
	}
	c := cli.Group("authority", "Replace the authority of a cluster",
		command("rotate", "Make another authority beside the present one, which signs from now on",
			"Copy ca.crt to each node and observer, and restart them one after the other: they "+
				"trust both. Then make new certificates for each (certify), and copy them.",
			rotateAuthority),
		command("retire", "Trust none but the newest authority",
			"Copy ca.crt to each node and observer, and restart them one after the other: "+
				"certificates of the earlier authorities are invalid then.", retireAuthorities))
	c.Long = "Replaces the authority in the folder of `exchange cluster init`, because its " +
		"ca.key or the key of a node was stolen. docs/runbook.md has all steps: the " +
		"cluster keeps serving."
	return c
}

// rotateAuthority puts a new authority before the others. It needs no key of theirs, so an
// interrupted rotation is repeated.
func rotateAuthority(dir string) (*authorityAnswer, error) {
	c := &clusterFolder{dir: dir}
	id, err := os.ReadFile(c.file(clusterIDName))
	if err != nil {
		return nil, fmt.Errorf("%w; name the folder that `exchange cluster init` has made", err)
	}
	before, err := c.authorities()
	if err != nil {
		return nil, err
	}
	made, err := replicated.NewAuthority(strings.TrimSpace(string(id)))
	if err != nil {
		return nil, err
	}
	cert, key := made.PEM()
	all := append([]string{string(cert)}, before...)
	err = c.replace(authorityName, strings.Join(all, ""))
	if err == nil {
		err = c.replace(authorityKey, string(key))
	}
	return &authorityAnswer{made.Cluster(), dir, len(all)}, err
}

// retireAuthorities leaves only the first authority.
func retireAuthorities(dir string) (*authorityAnswer, error) {
	c, err := openClusterFolder(dir)
	if err != nil {
		return nil, err
	}
	cert, _ := c.authority.PEM()
	return &authorityAnswer{c.id, dir, 1}, c.replace(authorityName, string(cert))
}

// authorities returns the certificates of the authorities that the nodes trust.
func (c *clusterFolder) authorities() (list []string, err error) {
	text, err := os.ReadFile(c.file(authorityName))
	if err != nil {
		return nil, err
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		list = append(list, string(pem.EncodeToMemory(block)))
	}
	return list, nil
}

// replace gives a file another text, in one step.
func (c *clusterFolder) replace(name, text string) error {
	return cli.WriteBeside(c.dir, func(f *os.File) (string, error) {
		_, err := f.WriteString(text)
		return c.file(name), err
	})
}
