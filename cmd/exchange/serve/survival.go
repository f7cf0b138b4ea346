package serve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"exchange/cmd/exchange/cli"
	"exchange/persistence"
	"exchange/persistence/replicated"
)

type surviveAnswer struct {
	Node     string   `json:"node"`
	Sequence uint64   `json:"sequence"`
	Gone     []string `json:"gone"`
}

// ends lists the end of each folder, a line each.
func ends(list []replicated.FolderEnd) string {
	var b strings.Builder
	for i := range list {
		f := &list[i]
		if f.Fault != nil {
			fmt.Fprintf(&b, "\n- %s: %v", f.Folder, f.Fault)
			continue
		}
		fmt.Fprintf(&b, "\n- %s (node %s): term %d, entry %d, sequence %d", f.Folder, f.Node,
			f.Term, f.Index, f.Seq)
		if f.Ended != "" {
			fmt.Fprintf(&b, "; %s", f.Ended)
		}
	}
	return b.String()
}

const surviveHelp = `Makes this node the only voter of its cluster, when other nodes are permanently gone with their disks
and the rest is no majority. Run it on the machine of this node while no process uses its data folder.
A node that is only down must be started instead.

Records that the other nodes acknowledged and this one lacks are lost: an order is acknowledged when a
majority has it, and this node need not be part of that majority. Without --yes this command changes
no member: it prints the last term and sequence of this node's folder, and of each further data folder
that is given. Each folder with valid checksums of its own is opened, even if other nodes have rejected
it. Choose the node with the highest term, and in that the highest sequence. A shorter one, or one that
ended because others found it short or removed, is taken by its name alone: --shorter NODE.

The other nodes are never members again. One that comes back with its old folder, or that was only cut
off, is ignored: empty its folder. Two of them that come back would serve by themselves, with the
records that they have, so make sure that they do not. Then start this node, inform your clients,
compare its books with exchange audit, and let other nodes join with empty folders: until then one disk
tolerates no failure.`

func (p *Commands) clusterSurviveCommand() *cobra.Command {
	var given cli.Sources
	var sure bool
	var shorter string
	c := &cobra.Command{
		Use:   "survive [FOLDER...]",
		Short: "Let this node continue alone: the others' disks are permanently gone",
		Long:  surviveHelp,
		Args:  cobra.ArbitraryArgs,
		RunE: cli.Run(func(_ context.Context, folders []string) error {
			return p.survive(&given, folders, sure, shorter)
		}),
	}
	given.Register(c.Flags())
	c.Flags().StringVar(&shorter, "shorter", "", "the name of this node, if its folder is to be "+
		"taken although another one has more, or others have found it short or removed")
	c.Flags().BoolVar(&sure, "yes", false, "do it: what only the other nodes had is lost")
	return c
}

func (p *Commands) survive(given *cli.Sources, folders []string, sure bool, shorter string) error {
	cfg, err := p.Load(given)
	if err != nil {
		return err
	}
	if !cfg.Cluster.On() || cfg.Cluster.Observer {
		return cli.Usage("cluster survive is for a node of a cluster: name cluster.node and " +
			"cluster.nodes")
	}
	id, _, err := loadNode(&cfg.Cluster)
	if err != nil {
		return cli.WithExit(cli.ExitUsage, err)
	}
	held, err := holdFolder(cfg)
	if err != nil {
		return err
	}
	defer held.Release() //nolint:errcheck // the process's end frees it, too
	s, err := replicated.Survive(&replicated.Survival{Folder: cfg.Data, Cluster: id,
		Node: cfg.Cluster.Node, Sure: sure, Others: folders, Shorter: shorter,
		Fatal: func(err error) {
			fmt.Fprintf(p.Stderr, "exchange: FATAL: the node's log cannot be written: %v\n", err)
			os.Exit(cli.ExitUnavailable)
		}})
	switch {
	case errors.Is(err, persistence.ErrCorrupt), errors.Is(err, persistence.ErrFormat):
		return cli.WithExit(cli.ExitBroken, err)
	case err != nil:
		return cli.WithExit(cli.ExitUsage, err)
	case !sure:
		return cli.Usage("node %s has the journal up to sequence %d; what only %s had after that "+
			"would be lost permanently, and they would no longer be members. The members were "+
			"not changed: if their disks are gone, add --yes%s", cfg.Cluster.Node, s.Folders[0].Seq,
			strings.Join(s.Gone, ", "), ends(s.Folders))
	}
	a := surviveAnswer{Node: cfg.Cluster.Node, Sequence: s.Folders[0].Seq, Gone: s.Gone}
	return p.Print(&a, func(w *tabwriter.Writer) {
		fmt.Fprintf(w, "Node %s continues alone after sequence %d. What only %s had is lost.\n",
			a.Node, a.Sequence, strings.Join(a.Gone, ", "))
		fmt.Fprintln(w, "\nNext:\n- start it: exchange serve\n- compare its books: exchange "+
			"audit\n- inform your\nclients\n- let other nodes join with empty folders")
	})
}
