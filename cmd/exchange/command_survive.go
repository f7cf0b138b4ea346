package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"exchange/persistence"
	"exchange/persistence/replicated"
)

type surviveAnswer struct {
	Node     string   `json:"node"`
	Sequence uint64   `json:"sequence"`
	Gone     []string `json:"gone"`
}

func (a *surviveAnswer) complete() bool { return true }

const surviveHelp = `Makes this node the only voter of its cluster, when so many other nodes are
gone for good, with their disks, that the rest is no majority. It is run on the machine of this node
while no process uses its data folder. A node that is only down must be started instead.

What the other nodes had acknowledged and this one has not got is lost: an order is acknowledged
when a majority has it, and this node need not be one of that. Choose the node with the highest
sequence, which this command prints, and changes no member, without --yes.

The other nodes are never counted again. One that comes back with its old folder, or that was only
cut off, is told that it is removed, and what it has acknowledged meanwhile is gone. Two of them
that come back where they do not reach this node would serve by themselves, so make sure that they
do not. Then start this node, tell your clients, compare its books with exchange audit, and let
other nodes join with empty folders: until then one disk bears no fault.`

func (p *program) clusterSurviveCommand() *cobra.Command {
	var given sources
	var sure bool
	c := &cobra.Command{
		Use:   "survive",
		Short: "Let this node go on alone: the others' disks are gone for good",
		Long:  surviveHelp,
		Args:  takes(),
		RunE:  run(func(context.Context, []string) error { return p.survive(&given, sure) }),
	}
	given.register(c.Flags())
	c.Flags().BoolVar(&sure, "yes", false, "do it: what only the other nodes had is lost")
	return c
}

func (p *program) survive(given *sources, sure bool) error {
	cfg, err := p.load(given)
	if err != nil {
		return err
	}
	if !cfg.Cluster.On() || cfg.Cluster.Observer {
		return usage("cluster survive is for a node of a cluster: name cluster.node and " +
			"cluster.nodes")
	}
	id, _, err := loadNode(&cfg.Cluster)
	if err != nil {
		return withExit(exitUsage, err)
	}
	held, err := holdFolder(cfg.Data)
	if err != nil {
		return err
	}
	defer held.Release() //nolint:errcheck // the process's end frees it, too
	s, err := replicated.Survive(&replicated.Survival{Folder: cfg.Data, Cluster: id,
		Node: cfg.Cluster.Node, Sure: sure, Fatal: func(err error) {
			fmt.Fprintf(p.stderr, "exchange: FATAL: the node's log cannot be written: %v\n", err)
			os.Exit(exitUnavailable)
		}})
	switch {
	case errors.Is(err, persistence.ErrCorrupt):
		return withExit(exitBroken, err)
	case err != nil:
		return withExit(exitUsage, err)
	case !sure:
		return usage("node %s has the journal up to sequence %d; what only %s had behind that "+
			"would be lost for good, and they would be counted no more. The members were not "+
			"changed: if their disks are gone, say --yes", cfg.Cluster.Node, s.Seq,
			strings.Join(s.Gone, ", "))
	}
	a := surviveAnswer{Node: cfg.Cluster.Node, Sequence: s.Seq, Gone: s.Gone}
	return p.print(&a, func(w *tabwriter.Writer) {
		fmt.Fprintf(w, "Node %s goes on alone behind sequence %d. What only %s had is lost.\n",
			a.Node, a.Sequence, strings.Join(a.Gone, ", "))
		fmt.Fprintln(w, "\nNext:\n- start it: exchange serve\n- compare its books: exchange "+
			"audit\n- tell your clients\n- let other nodes join with empty folders")
	})
}
