package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
)

// The operator's commands. Each checks its arguments, makes one request, and prints the answer.

// The answers, as the server gives them and as --json prints them. Amounts are json.Number: their
// digits pass through untouched.
type (
	accountAnswer struct {
		Account string      `json:"account"`
		ID      json.Number `json:"id"`
		Email   string      `json:"email"`
	}
	accountsAnswer struct {
		Accounts []accountAnswer `json:"accounts"`
	}
	keyAnswer struct {
		Key         string   `json:"key"`
		Secret      string   `json:"secret"`
		Account     string   `json:"account"`
		Permissions []string `json:"permissions"`
		Allow       []string `json:"allow"`
	}
	keyRow struct {
		Key         string   `json:"key"`
		Account     string   `json:"account"`
		Permissions []string `json:"permissions"`
		Allow       []string `json:"allow"`
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
	depositAnswer struct {
		Deposit   json.Number `json:"deposit"`
		Account   string      `json:"account"`
		Currency  string      `json:"currency"`
		Amount    json.Number `json:"amount"`
		Balance   json.Number `json:"balance"`
		Reference string      `json:"reference"`
		Repeated  bool        `json:"repeated,omitempty"`
	}
)

func (a *accountAnswer) complete() bool  { return a.Account != "" && a.ID != "" }
func (a *accountsAnswer) complete() bool { return a.Accounts != nil }
func (a *keyAnswer) complete() bool      { return a.Key != "" && a.Secret != "" && a.Account != "" }
func (a *keysAnswer) complete() bool     { return a.Keys != nil }
func (a *revokeAnswer) complete() bool   { return a.Key != "" && a.Revoked }
func (a *depositAnswer) complete() bool {
	return a.Deposit != "" && a.Amount != "" && a.Balance != "" && a.Reference != ""
}

// print writes the answer as JSON, or as text in columns that fn writes, separated by tabs.
func (p *program) print(a answer, fn func(w *tabwriter.Writer)) error {
	if p.json {
		return printJSON(p.stdout, a)
	}
	w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	fn(w)
	return w.Flush()
}

func (p *program) accountCommand() *cobra.Command {
	var email string
	create := &cobra.Command{
		Use:   "create NAME",
		Short: "Open an account",
		Args:  takes("NAME"),
		RunE: run(func(ctx context.Context, args []string) error {
			if err := cmp.Or(checkAccount(args[0]), checkEmail(email)); err != nil {
				return err
			}
			var a accountAnswer
			in := map[string]string{"name": args[0], "email": email}
			if err := p.change(ctx, "/operator/v1/accounts", in, &a, "`exchange account list` shows whether the account was opened"); err != nil {
				return err
			}
			return p.print(&a, func(w *tabwriter.Writer) {
				fmt.Fprintf(w, "account\t%s\nid\t%s\n", a.Account, a.ID)
				if a.Email != "" {
					fmt.Fprintf(w, "email\t%s\n", a.Email)
				}
			})
		}),
	}
	create.Flags().StringVar(&email, "email", "", "address for mail about withdrawals")
	list := &cobra.Command{
		Use:   "list",
		Short: "List all accounts",
		Args:  takes(),
		RunE: run(func(ctx context.Context, _ []string) error {
			var a accountsAnswer
			if err := p.ask(ctx, "/operator/v1/accounts", &a); err != nil {
				return err
			}
			return p.print(&a, func(w *tabwriter.Writer) {
				fmt.Fprintln(w, "ID\tACCOUNT\tEMAIL")
				for _, x := range a.Accounts {
					fmt.Fprintf(w, "%s\t%s\t%s\n", x.ID, x.Account, orDash(x.Email))
				}
			})
		}),
	}
	return group("account", "Open and list accounts", create, list)
}

func (p *program) keyCommand() *cobra.Command {
	return group("key", "Make, list and revoke API keys", p.keyCreateCommand(), p.keyListCommand(), p.keyRevokeCommand())
}

func (p *program) keyCreateCommand() *cobra.Command {
	var may, allow []string
	c := &cobra.Command{
		Use:   "create ACCOUNT",
		Short: "Make an API key of an account; its secret is shown only now",
		Args:  takes("ACCOUNT"),
		RunE: run(func(ctx context.Context, args []string) error {
			may, err1 := readPermissions(may)
			networks, err2 := readNetworks(allow)
			if err := cmp.Or(checkAccount(args[0]), err1, err2); err != nil {
				return err
			}
			var a keyAnswer
			in := map[string]any{"account": args[0], "permissions": may, "allow": networks}
			if err := p.change(ctx, "/operator/v1/keys", in, &a, "`exchange key list "+args[0]+"` shows whether a key was made; revoke it then"); err != nil {
				return err
			}
			a.Permissions, a.Allow = notNil(a.Permissions), notNil(a.Allow)
			return p.print(&a, func(w *tabwriter.Writer) {
				fmt.Fprintf(w, "account\t%s\nkey\t%s\nsecret\t%s\npermissions\t%s\n", a.Account, a.Key, a.Secret, strings.Join(a.Permissions, ","))
				fmt.Fprintf(w, "from\t%s\n", orAnywhere(a.Allow))
				fmt.Fprintln(w, "\nThe secret is shown only now: keep it.")
			})
		}),
	}
	c.Flags().StringSliceVar(&may, "permissions", []string{"read", "trade"}, "what the key may do: read, trade, withdraw")
	c.Flags().StringSliceVar(&allow, "allow", nil, "network the key may be used from, such as 10.0.0.0/8; may be given again (default from anywhere)")
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
			if err := p.ask(ctx, "/operator/v1/keys?"+url.Values{"account": {args[0]}}.Encode(), &a); err != nil {
				return err
			}
			for i := range a.Keys {
				a.Keys[i].Permissions, a.Keys[i].Allow = notNil(a.Keys[i].Permissions), notNil(a.Keys[i].Allow)
			}
			return p.print(&a, func(w *tabwriter.Writer) {
				fmt.Fprintln(w, "KEY\tPERMISSIONS\tFROM\tSTATE")
				for _, x := range a.Keys {
					state := "valid"
					if x.Revoked {
						state = "revoked"
					}
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", x.Key, strings.Join(x.Permissions, ","), orAnywhere(x.Allow), state)
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
			if err := p.change(ctx, "/operator/v1/keys/revoke", in, &a, "run the same command again until it answers"); err != nil {
				return err
			}
			return p.print(&a, func(w *tabwriter.Writer) {
				fmt.Fprintf(w, "The key %s of %s is revoked.\n", a.Key, a.Account)
			})
		}),
	}
}

func (p *program) depositCommand() *cobra.Command {
	var reference string
	c := &cobra.Command{
		Use:   "deposit ACCOUNT CURRENCY AMOUNT",
		Short: "Credit an account",
		Long: "Credits an account. A reference is credited once, however often the command is repeated with it: give the number of the bank's " +
			"or chain's transaction. Without --reference a new one is made, and named in the answer.",
		Args: takes("ACCOUNT", "CURRENCY", "AMOUNT"),
	}
	c.Flags().StringVar(&reference, "reference", "", "what this deposit is known by, unique over all accounts (default: a random one)")
	c.RunE = run(func(ctx context.Context, args []string) error {
		amount, err := readAmount(args[2])
		fresh := !c.Flags().Changed("reference")
		if fresh {
			reference = "cli-" + strings.ToLower(rand.Text())
		}
		if err := cmp.Or(checkAccount(args[0]), checkCurrency(args[1]), err, checkReference(reference)); err != nil {
			return err
		}
		var a depositAnswer
		in := map[string]string{"account": args[0], "currency": args[1], "amount": amount.String(), "reference": reference}
		repeats, err := p.changeUntilKnown(ctx, "/operator/v1/deposits", in, &a,
			"repeat the command with --reference "+reference+": it is credited once at most")
		if err != nil {
			return err
		}
		if fresh && repeats > 0 {
			a.Repeated = false // nobody else can know a fresh reference: the first try of this command had landed
		}
		return p.print(&a, func(w *tabwriter.Writer) {
			fmt.Fprintf(w, "deposit\t%s\naccount\t%s\namount\t%s %s\nbalance\t%s %s\nreference\t%s\n",
				a.Deposit, a.Account, a.Amount, a.Currency, a.Balance, a.Currency, a.Reference)
			if a.Repeated {
				fmt.Fprintln(w, "\nThis reference was credited before: nothing was added now.")
			}
		})
	})
	return c
}

// ask makes a request that changes nothing.
func (p *program) ask(ctx context.Context, path string, out answer) error {
	c, err := p.client()
	if err != nil {
		return err
	}
	return c.call(ctx, path, nil, out)
}

// change makes a request that changes something, once. When it is not known whether it did, the error
// says so, and advice how to find out.
func (p *program) change(ctx context.Context, path string, in any, out answer, advice string) error {
	c, err := p.client()
	if err != nil {
		return err
	}
	return adviseIfUnknown(c.call(ctx, path, in, out), advice)
}

// pauses lie between the tries of a request that may be repeated.
var pauses = []time.Duration{200 * time.Millisecond, 500 * time.Millisecond, time.Second}

// changeUntilKnown makes a request that the server carries out once however often it comes, and
// repeats it some times while its outcome is unknown. It returns how often it was repeated.
func (p *program) changeUntilKnown(ctx context.Context, path string, in any, out answer, advice string) (repeats int, err error) {
	c, err := p.client()
	if err != nil {
		return 0, err
	}
	maybeDone := false // some try may have been carried out
	for {
		err = c.call(ctx, path, in, out)
		var u unknownError
		if errors.As(err, &u) {
			maybeDone = true
		} else if !maybeDone || exitCode(err) != exitUnavailable {
			return repeats, err
		}
		if repeats == len(pauses) || !wait(ctx, pauses[repeats]) {
			return repeats, adviseIfUnknown(unknown("%w", err), advice)
		}
		repeats++
	}
}

func adviseIfUnknown(err error, advice string) error {
	var u unknownError
	if errors.As(err, &u) {
		return unknown("%s; whether it was done is unknown: %s", strings.TrimSuffix(err.Error(), "."), advice)
	}
	return err
}

// wait is false if ctx ends before d has passed.
func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func notNil(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func orAnywhere(networks []string) string {
	if len(networks) == 0 {
		return "anywhere"
	}
	return strings.Join(networks, ",")
}
