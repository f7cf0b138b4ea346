package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// The operator's command about dead man's switches.

type (
	switchRow struct {
		Account string      `json:"account"`
		Key     string      `json:"key"`
		Seconds json.Number `json:"seconds"`
		Due     string      `json:"due"`
		Session bool        `json:"session"`
		Pair    string      `json:"pair,omitempty"`
		Type    string      `json:"type,omitempty"`
		Prefix  string      `json:"client_order_id_prefix,omitempty"`
	}
	switchesAnswer struct {
		Switches []switchRow `json:"switches"`
	}
)

func (a *switchesAnswer) complete() bool { return a.Switches != nil }

func (p *program) switchCommand() *cobra.Command {
	return group("switch", "List dead man's switches", p.switchListCommand())
}

func (p *program) switchListCommand() *cobra.Command {
	var account string
	c := &cobra.Command{
		Use:   "list",
		Short: "List the switches that cancel orders unless their keys call in time",
		Args:  takes(),
	}
	c.Flags().StringVar(&account, "account", "", "only switches of this account")
	c.RunE = run(func(ctx context.Context, _ []string) error {
		path := "/operator/v1/switches"
		if c.Flags().Changed("account") {
			if err := checkAccount(account); err != nil {
				return err
			}
			path += "?" + url.Values{"account": {account}}.Encode()
		}
		var a switchesAnswer
		if err := p.ask(ctx, path, &a); err != nil {
			return err
		}
		return p.print(&a, func(w *tabwriter.Writer) {
			fmt.Fprintln(w, "ACCOUNT\tKEY\tSECONDS\tCANCELS AT\tWHICH")
			for i := range a.Switches {
				s := &a.Switches[i]
				due := s.Due
				if due == "" {
					due = "the end of its sessions"
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", plain(s.Account), plain(s.Key), s.Seconds,
					plain(due), plain(s.orders()))
			}
		})
	})
	return c
}

// orders describes which orders the switch cancels.
func (s *switchRow) orders() string {
	var all []string
	for _, x := range []string{s.Pair, s.Type, s.Prefix} {
		if x != "" {
			all = append(all, x)
		}
	}
	if len(all) == 0 {
		return "all"
	}
	return strings.Join(all, " ")
}
