package serve

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"exchange/cmd/exchange/cli"
	"exchange/config"
)

// OfCluster returns the commands of the group cluster.
func (p *Commands) OfCluster() []*cobra.Command {
	return []*cobra.Command{p.clusterInitCommand(), p.clusterCertifyCommand(),
		p.clusterAuthorityCommand(), p.clusterSurviveCommand()}
}

// clusterNode is a node's part of the commands' output.
type clusterNode struct {
	Name    string `json:"name"`
	Address string `json:"address,omitempty"`
	Folder  string `json:"folder"`
}

// clusterAnswer is the output of the commands that make certificates.
type clusterAnswer struct {
	Cluster string        `json:"cluster"`
	Folder  string        `json:"folder"`
	Nodes   []clusterNode `json:"nodes"`
}

func (p *Commands) clusterInitCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "init FOLDER NODE=HOST:PORT...",
		Short: "Make the certificates and the secret key of a new cluster",
		Long: "Makes a folder with the authority of a new cluster, and in it a folder for each " +
			"node, to be copied to its machine. Nothing is overwritten.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return cli.Usage("cluster init needs a folder and all nodes, such as " +
					"a=10.0.0.1:7000 b=10.0.0.2:7000 c=10.0.0.3:7000")
			}
			return nil
		},
		RunE: cli.Run(func(_ context.Context, args []string) error {
			text := strings.Join(args[1:], ",")
			nodes, err := config.ParseNodes(text)
			if err != nil {
				return cli.Usage("%w", err)
			}
			if n := len(nodes); n%2 == 0 {
				return cli.Usage("%d nodes tolerate no more failures than %d, because more than "+
					"half of them must be up: name %[2]d or %d", n, n-1, n+1)
			}
			f, err := newClusterFolder(args[0])
			if err != nil {
				return err
			}
			a := &clusterAnswer{Cluster: f.id, Folder: f.dir}
			for _, n := range nodes {
				dir, err := f.certify(n.Name)
				if err != nil {
					return err
				}
				a.Nodes = append(a.Nodes, clusterNode{n.Name, n.Address, dir})
			}
			return p.Print(a, func(w *tabwriter.Writer) { a.writeInit(w, text) })
		}),
	}
}

func (a *clusterAnswer) writeInit(w *tabwriter.Writer, nodes string) {
	fmt.Fprintf(w, "The cluster %s is made in %s.\n\n", a.Cluster, a.Folder)
	fmt.Fprintln(w, "NODE\tADDRESS\tCOPY TO ITS MACHINE")
	for _, n := range a.Nodes {
		fmt.Fprintf(w, "%s\t%s\t%s\n", n.Name, n.Address, n.Folder)
	}
	fmt.Fprintf(w, `
On each machine, with the folder of its node as /etc/exchange/cluster:

  exchange serve --config exchange.yaml --node NODE --nodes %s

and in exchange.yaml, the same on all nodes:

  cluster:
    folder: /etc/exchange/cluster

Keep %s away from the nodes, and copy it to a safe place: a process with its ca.key
can be any node, and exchange.key opens all API secrets.
`, nodes, filepath.Clean(a.Folder))
}

func (p *Commands) clusterCertifyCommand() *cobra.Command {
	var observer bool
	c := &cobra.Command{
		Use:   "certify FOLDER NODE",
		Short: "Make the certificate of a further node, or of an observer",
		Long: "Makes the folder of a further node, or a new one of a node whose folder was moved " +
			"away: certificates are valid for ten years. With --observer it is the folder of an " +
			"observer, whose certificate makes it no node, and which has no secret key.",
		Args: cli.Takes("FOLDER", "NODE"),
		RunE: cli.Run(func(_ context.Context, args []string) error {
			f, err := openClusterFolder(args[0])
			if err != nil {
				return err
			}
			certify, what := f.certify, "node"
			if observer {
				certify, what = f.certifyObserver, "observer"
			}
			dir, err := certify(args[1])
			if err != nil {
				return err
			}
			a := &clusterAnswer{Cluster: f.id, Folder: f.dir,
				Nodes: []clusterNode{{Name: args[1], Folder: dir}}}
			return p.Print(a, func(w *tabwriter.Writer) {
				fmt.Fprintf(w, "Copy %s to the machine of %s %s, as its cluster.folder.\n", dir,
					what, args[1])
			})
		}),
	}
	c.Flags().BoolVar(&observer, "observer", false, "it is an observer, and no node")
	return c
}
