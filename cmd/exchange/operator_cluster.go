package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// The operator's commands about the nodes of a cluster.

type (
	clusterStatus struct {
		Node         string       `json:"node"`
		Role         string       `json:"role"`
		Serves       *bool        `json:"serves"`
		Leader       string       `json:"leader"`
		LeaderURL    string       `json:"leader_url"`
		Term         json.Number  `json:"term"`
		Elections    json.Number  `json:"elections"`
		Applied      json.Number  `json:"applied"`
		Committed    json.Number  `json:"committed"`
		Folded       json.Number  `json:"folded"`
		LogBytes     json.Number  `json:"log_bytes"`
		Format       json.Number  `json:"format"`
		Change       string       `json:"change"`
		Fault        string       `json:"fault"`
		Differs      []string     `json:"config_differs"`
		ClockAheadMs json.Number  `json:"clock_ahead_ms"`
		ClockWrong   bool         `json:"clock_wrong"`
		TickMs       json.Number  `json:"tick_ms"`
		Nodes        []nodeStatus `json:"nodes"`
	}
	nodeStatus struct {
		Name     string `json:"name"`
		Role     string `json:"role"`
		Replaces string `json:"replaces"`
		// null: not known at the node that was asked
		Match  *json.Number `json:"match"`
		Lag    *json.Number `json:"lag"`
		Silent *json.Number `json:"silent_ticks"`
		Reads  *json.Number `json:"reads"`
		// its file has another market part than the applied one
		Differs *bool `json:"config_differs"`
	}
	clusterHash struct {
		Node     string      `json:"node"`
		Sequence json.Number `json:"sequence"`
		Hash     string      `json:"hash"`
	}
	transferAnswer struct {
		From string `json:"from"`
		To   string `json:"to"` // "": not known yet
	}
)

func (a *clusterStatus) complete() bool { return a.Node != "" && a.Serves != nil && a.Nodes != nil }

func (a *clusterHash) complete() bool { return a.Node != "" && a.Sequence != "" && a.Hash != "" }

func (a *transferAnswer) complete() bool { return a.From != "" }

func (p *program) clusterStatusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show what a node knows of the cluster",
		Long: "Shows which node leads, and what the node that is asked knows of the others. Only " +
			"the node that leads knows how far the others are. A tick is cluster.tick_ms. The " +
			"log's bytes are those of the node that is asked. A node's program reads entries and " +
			"records up to a format; the newest one that all read may be written. A node whose " +
			"configuration has another market part than the applied one differs.",
		Args: takes(),
		RunE: run(func(ctx context.Context, _ []string) error {
			var a clusterStatus
			if err := p.ask(ctx, "/operator/v1/cluster", &a); err != nil {
				return err
			}
			return p.print(&a, a.write)
		}),
	}
}

func (a *clusterStatus) write(w *tabwriter.Writer) {
	leader := cmp.Or(plain(a.Leader), "none is known")
	if a.LeaderURL != "" {
		leader += ", at " + plain(a.LeaderURL)
	}
	fmt.Fprintf(w, "node\t%s, a %s, which %s\nleader\t%s\nterm\t%s\n", plain(a.Node), plain(a.Role),
		either(*a.Serves, "serves", "does not serve"), leader, a.Term)
	fmt.Fprintf(w, "elections\t%s begun here\ncommitted\t%s\napplied\t%s\nfolded\tsequence %s\n",
		a.Elections, a.Committed, a.Applied, a.Folded)
	fmt.Fprintf(w, "log\t%s bytes\nformat\t%s\n", a.LogBytes, a.Format)
	fmt.Fprintf(w, "clock\t%s ms from the median%s\n", a.ClockAheadMs,
		either(a.ClockWrong, ": WRONG, it may not lead", ""))
	if a.Change != "" {
		fmt.Fprintf(w, "change\t%s\n", plain(a.Change))
	}
	if a.Fault != "" {
		fmt.Fprintf(w, "fault\t%s\n", plain(a.Fault))
	}
	if len(a.Differs) > 0 {
		fmt.Fprintf(w, "config\tdiffers from the applied one, and does not count, in %s\n",
			plain(strings.Join(a.Differs, ", ")))
	}
	fmt.Fprintln(w, "\nNODE\tROLE\tHAS\tLACKS\tSILENT TICKS\tREADS FORMAT\tCONFIG")
	known := func(n *json.Number) string {
		if n == nil {
			return "?"
		}
		return n.String()
	}
	for i := range a.Nodes {
		n := &a.Nodes[i]
		differs := "?"
		if n.Differs != nil {
			differs = either(*n.Differs, "differs", "applied")
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", plain(n.Name), plain(n.Role),
			known(n.Match), known(n.Lag), known(n.Silent), known(n.Reads), differs)
	}
}

func (p *program) clusterHashCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "hash",
		Short: "Show the sequence that a node is at, and a hash of its state there",
		Long: "Shows the SHA-256 of the state that the node which is asked has folded. Nodes at " +
			"the same sequence have the same hash, so compare it when no requests are taken. " +
			"Reads and the stream do not wait for it.",
		Args: takes(),
		RunE: run(func(ctx context.Context, _ []string) error {
			var a clusterHash
			if err := p.ask(ctx, "/operator/v1/cluster/hash", &a); err != nil {
				return err
			}
			return p.print(&a, func(w *tabwriter.Writer) {
				fmt.Fprintf(w, "node\t%s\nsequence\t%s\nhash\t%s\n", plain(a.Node), a.Sequence,
					plain(a.Hash))
			})
		}),
	}
}

func (p *program) clusterTransferCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "transfer [NODE]",
		Short: "Hand the lead over to another node",
		Long: "Has the node that leads finish what is in flight and hand the lead over: to the " +
			"named node, or to the one that has most of the log.",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return takes("NODE")(c, args)
		},
		RunE: run(func(ctx context.Context, args []string) error {
			in := map[string]string{"to": ""}
			if len(args) > 0 {
				in["to"] = args[0]
			}
			var a transferAnswer
			err := p.change(ctx, "/operator/v1/cluster/transfer", in, &a,
				"`exchange cluster status` says which node leads")
			if err != nil {
				return err
			}
			return p.print(&a, func(w *tabwriter.Writer) {
				fmt.Fprintf(w, "Node %s has handed the lead over to %s.\n", plain(a.From),
					either(a.To != "", "node "+plain(a.To), "another node"))
			})
		}),
	}
}
