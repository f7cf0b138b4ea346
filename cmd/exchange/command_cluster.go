package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"exchange/config"
)

const clusterHelp = `Several nodes that keep one journal: one leads and serves, the others follow, and
one of them takes over when it dies.

  exchange cluster init FOLDER a=HOST:PORT b=HOST:PORT c=HOST:PORT
                                     makes the certificates and the secret key, once
  exchange cluster certify FOLDER d  makes those of a further node, or anew
  exchange cluster certify FOLDER o1 --observer
                                     makes that of an observer, which is no node
  exchange cluster authority rotate FOLDER
                                     replaces the authority, if a key was stolen
  exchange cluster status            asks a running node what it knows of the cluster
  exchange cluster hash              asks a running node for a hash of its state
  exchange cluster transfer [NODE]   has the node that leads hand the lead over
  exchange config apply              has all nodes agree on a file's pairs, fees and limits
  exchange cluster add d=HOST:PORT   has a further node join
  exchange cluster replace b d=HOST:PORT
                                     has another node, or the same one with an empty folder, take a
                                     node's place
  exchange cluster remove d          has a node take part no more
  exchange cluster survive --yes     lets this node go on alone: the others' disks are gone

docs/operations/cluster.md tells how to run three nodes.`

func (p *program) clusterCommand() *cobra.Command {
	c := group("cluster", "Make and run a cluster of nodes", append(p.commandsOf(clusterVerbs),
		p.clusterInitCommand(), p.clusterCertifyCommand(), p.clusterAuthorityCommand(),
		p.clusterAddCommand(), p.clusterReplaceCommand(), p.clusterRemoveCommand(),
		p.clusterSurviveCommand())...)
	c.Long = clusterHelp
	return c
}

// clusterNode is a node's part of what the commands print.
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

func (p *program) clusterInitCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "init FOLDER NODE=HOST:PORT...",
		Short: "Make the certificates and the secret key of a new cluster",
		Long: "Makes a folder with the authority of a new cluster, and in it a folder for each " +
			"node, to be copied to its machine. Nothing is overwritten.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usage("cluster init needs a folder and all nodes, such as " +
					"a=10.0.0.1:7000 b=10.0.0.2:7000 c=10.0.0.3:7000")
			}
			return nil
		},
		RunE: run(func(_ context.Context, args []string) error {
			text := strings.Join(args[1:], ",")
			nodes, err := config.ParseNodes(text)
			if err != nil {
				return usage("%w", err)
			}
			if n := len(nodes); n%2 == 0 {
				return usage("%d nodes bear no more faults than %d, because more than half of "+
					"them must be there: name %[2]d or %d", n, n-1, n+1)
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
			return p.print(a, func(w *tabwriter.Writer) { a.writeInit(w, text) })
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

func (p *program) clusterCertifyCommand() *cobra.Command {
	var observer bool
	c := &cobra.Command{
		Use:   "certify FOLDER NODE",
		Short: "Make the certificate of a further node, or of an observer",
		Long: "Makes the folder of a further node, or a new one of a node whose folder was moved " +
			"away: certificates are valid for ten years. With --observer it is the folder of an " +
			"observer, whose certificate makes it no node, and which has no secret key.",
		Args: takes("FOLDER", "NODE"),
		RunE: run(func(_ context.Context, args []string) error {
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
			return p.print(a, func(w *tabwriter.Writer) {
				fmt.Fprintf(w, "Copy %s to the machine of %s %s, as its cluster.folder.\n", dir,
					what, args[1])
			})
		}),
	}
	c.Flags().BoolVar(&observer, "observer", false, "it is an observer, and no node")
	return c
}
