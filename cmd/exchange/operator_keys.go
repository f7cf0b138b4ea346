package main

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"exchange/core/event"
)

// The operator's commands about API keys.

type (
	keyAnswer struct {
		Key         string   `json:"key"`
		Secret      string   `json:"secret"`
		Account     string   `json:"account"`
		Permissions []string `json:"permissions"`
		Allow       []string `json:"allow"`
		Parallel    int      `json:"parallel,omitempty"`
	}
	keyRow struct {
		Key         string   `json:"key"`
		Account     string   `json:"account"`
		Permissions []string `json:"permissions"`
		Allow       []string `json:"allow"`
		Parallel    int      `json:"parallel,omitempty"`
		Revoked     bool     `json:"revoked"`
	}
	keysAnswer struct {
		Keys []keyRow `json:"keys"`
	}
	revokeAnswer struct {
		Key     string `json:"key"`
		Account string `json:"account"`
		Revoked bool   `json:"revoked"`
	}
)

func (a *keyAnswer) complete() bool    { return a.Key != "" && a.Secret != "" && a.Account != "" }
func (a *keysAnswer) complete() bool   { return a.Keys != nil }
func (a *revokeAnswer) complete() bool { return a.Key != "" && a.Revoked }

func (p *program) keyCommand() *cobra.Command {
	return group("key", "Make, list and revoke API keys", p.keyCreateCommand(), p.keyListCommand(),
		p.keyRevokeCommand())
}

func (p *program) keyCreateCommand() *cobra.Command {
	var may, allow []string
	var parallel int
	c := &cobra.Command{
		Use:   "create ACCOUNT",
		Short: "Make an API key of an account; its secret is shown only now",
		Long: `Make an API key of an account; its secret is shown only now.

The nonces of a key grow: of two requests that overtake each other one is refused. A key for parallel
use (--parallel) keeps the N greatest nonces that it has used, and takes any other that is above the
least of them. So a client may send on many connections at once, with up to N requests on their way.`,
		Args: takes("ACCOUNT"),
		RunE: run(func(ctx context.Context, args []string) error {
			may, err1 := readPermissions(may)
			networks, err2 := readNetworks(allow)
			if err := cmp.Or(checkAccount(args[0]), err1, err2); err != nil {
				return err
			}
			var a keyAnswer
			in := map[string]any{"account": args[0], "permissions": may, "allow": networks}
			if parallel != 0 {
				in["parallel"] = parallel
			}
			if err := p.change(ctx, "/operator/v1/keys", in, &a,
				"`exchange key list "+args[0]+
					"` shows whether a key was made; revoke it then"); err != nil {
				return err
			}
			a.Permissions, a.Allow = notNil(a.Permissions), notNil(a.Allow)
			return p.print(&a, func(w *tabwriter.Writer) {
				fmt.Fprintf(w, "account\t%s\nkey\t%s\nsecret\t%s\npermissions\t%s\n", a.Account,
					a.Key, a.Secret, strings.Join(a.Permissions, ","))
				fmt.Fprintf(w, "from\t%s\n", orAnywhere(a.Allow))
				if a.Parallel > 0 {
					fmt.Fprintf(w, "nonces\t%d, for parallel use\n", a.Parallel)
				}
				fmt.Fprintln(w, "\nThe secret is shown only now: keep it.")
			})
		}),
	}
	c.Flags().StringSliceVar(&may, "permissions", []string{"read", "trade"},
		"what the key may do: read, trade, withdraw")
	c.Flags().StringSliceVar(&allow, "allow", nil,
		"network the key may be used from, such as 10.0.0.0/8; may be given again (default from "+
			"anywhere)")
	c.Flags().IntVar(&parallel, "parallel", 0, fmt.Sprintf(
		"make a key for parallel use that keeps so many nonces, 1 to %d (default: nonces grow)",
		event.MaxParallel))
	return c
}

func (p *program) keyListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list ACCOUNT",
		Short: "List the API keys of an account",
		Args:  takes("ACCOUNT"),
		RunE: run(func(ctx context.Context, args []string) error {
			if err := checkAccount(args[0]); err != nil {
				return err
			}
			var a keysAnswer
			if err := p.ask(ctx, "/operator/v1/keys?"+url.Values{"account": {args[0]}}.Encode(),
				&a); err != nil {
				return err
			}
			for i := range a.Keys {
				a.Keys[i].Permissions, a.Keys[i].Allow = notNil(a.Keys[i].Permissions),
					notNil(a.Keys[i].Allow)
			}
			return p.print(&a, func(w *tabwriter.Writer) {
				fmt.Fprintln(w, "KEY\tPERMISSIONS\tFROM\tSTATE")
				for _, x := range a.Keys {
					state := "valid"
					if x.Revoked {
						state = "revoked"
					}
					if x.Parallel > 0 {
						state += fmt.Sprintf(", for parallel use (%d)", x.Parallel)
					}
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", x.Key, strings.Join(x.Permissions, ","),
						orAnywhere(x.Allow), state)
				}
			})
		}),
	}
}

func (p *program) keyRevokeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "revoke KEY",
		Short: "End an API key, for ever",
		Args:  takes("KEY"),
		RunE: run(func(ctx context.Context, args []string) error {
			if err := checkKey(args[0]); err != nil {
				return err
			}
			var a revokeAnswer
			in := map[string]string{"key": args[0]}
			if err := p.change(ctx, "/operator/v1/keys/revoke", in, &a, repeatIt); err != nil {
				return err
			}
			return p.print(&a, func(w *tabwriter.Writer) {
				fmt.Fprintf(w, "The key %s of %s is revoked.\n", a.Key, a.Account)
			})
		}),
	}
}

func notNil(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

func orAnywhere(networks []string) string {
	if len(networks) == 0 {
		return "anywhere"
	}
	return strings.Join(networks, ",")
}
