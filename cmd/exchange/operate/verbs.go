package operate

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"exchange/cmd/exchange/cli"
	"exchange/config"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/gateway/operator"
)

// TopLevel returns the operator's commands without a group, and the groups that have only
// operator's commands.
func (p *Commands) TopLevel() []*cobra.Command {
	ungrouped := p.commandsOf(ungroupedVerbs)
	return []*cobra.Command{ungrouped[0],
		cli.Group("account", "Open, list, show, freeze and close accounts",
			p.accountCommands()...),
		cli.Group("key", "Make, list and revoke API keys", p.commandsOf(keyVerbs)...),
		p.depositCommand(), ungrouped[1],
		cli.Group("withdraw", "List, approve and refuse withdrawals",
			p.commandsOf(withdrawVerbs)...),
		cli.Group("order", "List and cancel open orders", p.commandsOf(orderVerbs)...),
		cli.Group("switch", "List dead man's switches", p.commandsOf(switchVerbs)...),
		cli.Group("pair", "Halt and resume trading on pairs, and list them",
			p.commandsOf(pairVerbs)...),
		cli.Group("fees", "Give an account its own fees, and list fees", p.commandsOf(feeVerbs)...),
		cli.Group("maintenance",
			"Begin, end and show maintenance: clients' commands are refused",
			p.commandsOf(maintenanceVerbs)...),
		ungrouped[2], p.auditCommand(), p.statementCommand(), p.exportCommand(), p.backupCommand(),
		p.callCommand(), p.healthCommand(), p.loadtestCommand()}
}

// OfConfig returns the commands of the group config.
func (p *Commands) OfConfig() []*cobra.Command {
	return []*cobra.Command{p.commandOf(&configReloadVerb), p.configApplyCommand()}
}

// OfCluster returns the commands of the group cluster.
func (p *Commands) OfCluster() []*cobra.Command {
	return append(p.commandsOf(clusterVerbs), p.clusterAddCommand(), p.clusterReplaceCommand(),
		p.clusterRemoveCommand())
}

var ungroupedVerbs = []verb{
	{
		use: "status", short: "Show the state of the running exchange on one page",
		long: "Shows version, store, lags, and everything that is unusual or waits for an " +
			"operator. Backups and audits are those run by the answering node, including " +
			"before its last restart. In a cluster the leader answers; `exchange cluster " +
			"status` shows each node.",
		route: "GET status",
	},
	{
		use:   "adjust ACCOUNT CURRENCY -AMOUNT --reason TEXT",
		short: "Take money out of an account, as a correction",
		long: "Takes money out of an account, as a correction, such as of a deposit that was " +
			"credited twice. Only available money is taken, none reserved by open orders or " +
			"pending withdrawals. The owner sees the reason, and `exchange statement`, " +
			"`exchange actions` and `exchange audit` show the adjustment. The amount is below 0, " +
			"such as -0.5.\n\nRepeating the command with the same reference has no further " +
			"effect. Without --reference the command makes a new one, which the answer shows.",
		example: "  exchange adjust alice BTC -0.5 --reason 'wire 7 was credited twice'",
		route:   "POST adjustments", args: "account currency amount", flags: "reference reason!",
		check: func(x *invocation) error {
			amount, err := readAdjustment(x.text("amount"))
			x.set("amount", "-"+amount.String())
			if text, given := x.given["reference"]; given {
				if _, bad := event.NewClientID(text); bad != nil {
					err = cmp.Or(err, cli.Usage("the reference %.80q must be 1 to 36 of A-Z, a-z, "+
						"0-9, '-' and '_'", text))
				}
			}
			return err
		},
		run: func(ctx context.Context, p *Commands, x *invocation) error {
			return p.sendOnce(ctx, x, "adjust-", "taken", "the adjustment was made")
		},
	},
	{
		use: "actions", short: "List what operators did, newest first",
		long: "Lists the actions of operators, newest first, each with the name that the " +
			"operator gave (--as) and the client's address.",
		route: "GET actions", flags: "limit before", usual: 100,
	},
}

// depositCommand credits one account, or the lines of a file.
func (p *Commands) depositCommand() *cobra.Command {
	c := p.commandOf(&depositVerb)
	file, one, args := "", c.RunE, c.Args
	c.Flags().StringVar(&file, "csv", "", "credit the lines of this file instead")
	c.Args = func(c *cobra.Command, list []string) error {
		if c.Flags().Changed("csv") {
			return cli.Takes()(c, list)
		}
		return args(c, list)
	}
	c.RunE = func(c *cobra.Command, list []string) error {
		switch csv := c.Flags().Changed("csv"); {
		case csv && c.Flags().Changed("reference"):
			return cli.Usage(
				"--reference applies to a single deposit: in a file each line has its own")
		case csv && file == "":
			return cli.Usage("--csv is empty: name a file")
		case csv:
			return cli.WithExit(cli.ExitUnclassified, p.depositFile(c.Context(), file))
		}
		return one(c, list)
	}
	return c
}

var depositVerb = verb{
	use: "deposit ACCOUNT CURRENCY AMOUNT", short: "Credit an account",
	long: "Credits an account. Repeating the command with the same reference has no further " +
		"effect: give the number of the bank's or chain's transaction. Without --reference " +
		"the command makes a new one, which the answer shows.\n\n" +
		"--csv credits the lines of a file with the columns account,currency,amount," +
		"reference, and with these names as header row. Before it sends anything, the command " +
		"checks every line: its format, account and currency, and that no reference occurs " +
		"twice. If the exchange refuses a line, for example because another deposit has its " +
		"reference, the command reports that line and credits the others. Repeating the " +
		"command with the same file credits the missing lines, and none twice.",
	route: "POST deposits", args: "account currency amount", flags: "reference",
	check: func(x *invocation) error {
		amount, err := readAmount(x.text("amount"))
		x.set("amount", amount.String())
		return err
	},
	run: func(ctx context.Context, p *Commands, x *invocation) error {
		return p.sendOnce(ctx, x, "cli-", "credited", "the deposit was credited")
	},
}

// sendOnce sends a request with a reference, which the exchange executes once, until the outcome is
// known. It makes a new reference if none was given. verb and done are for the error texts.
func (p *Commands) sendOnce(ctx context.Context, x *invocation, prefix, verb, done string) error {
	reference, given := x.given["reference"]
	if !given {
		reference = prefix + strings.ToLower(rand.Text())
		x.set("reference", reference)
	}
	raw, repeats, err := p.changeUntilKnown(ctx, x.path, x.in.Addr().Interface(), x.out,
		"repeat the command with --reference "+reference+": it is "+verb+" at most once")
	if err != nil {
		return err
	}
	if !given && repeats > 0 {
		// No other command has a new reference, so an earlier try of this command succeeded.
		n, _ := parseMembers(raw)
		delete(n, "repeated")
		raw, _ = json.Marshal(n)
	}
	if err := p.answer(x, raw, repeats); err != nil {
		return fmt.Errorf("%s, but showing the answer failed; if you repeat it, use "+
			"--reference %s: %w", done, reference, err)
	}
	return nil
}

// accountCommands returns the commands of accountVerbs, with a flag --totals of `list`.
func (p *Commands) accountCommands() []*cobra.Command {
	var totals bool
	verbs := append([]verb{}, accountVerbs...)
	verbs[1].run = func(ctx context.Context, p *Commands, x *invocation) error {
		raw, err := p.askPages(ctx, x)
		if err != nil || !totals {
			return p.answerIf(err, x, raw)
		}
		totalsType := typeOf[operator.TotalsAnswer]()
		sums, err := p.ask(ctx, "/operator/v1/totals", totalsType)
		switch {
		case err != nil:
			return err
		case p.JSON:
			return p.show(x.out, append(append(raw[:len(raw)-1], ','), sums[1:]...))
		}
		if err := p.show(x.out, raw); err != nil {
			return err
		}
		fmt.Fprintln(p.Stdout)
		return p.show(totalsType, sums)
	}
	list := p.commandsOf(verbs)
	list[1].Flags().BoolVar(&totals, "totals", false,
		"also show the sums of all accounts' balances by currency, including frozen accounts")
	return list
}

var accountVerbs = []verb{
	{
		use: "create NAME", short: "Open an account",
		route: "POST accounts", args: "name", flags: "email",
		once: "`exchange account list` shows whether the account was opened",
	},
	{
		use: "list", short: "List all accounts",
		route: "GET accounts", flags: "frozen", pages: true,
	},
	{
		use: "show NAME", short: "Show an account's balances, newest open orders and pending " +
			"withdrawals",
		route: "GET account", args: "name",
	},
	{
		use: "email NAME ADDRESS", short: "Give an account another e-mail address, and hold its " +
			"withdrawals for 48 hours",
		route: "POST accounts/email", args: "account email",
		check: func(x *invocation) error {
			if x.text("email") == "" {
				return cli.Usage("an account that has an address cannot lose it: name the new one")
			}
			return nil
		},
	},
	{
		use:   "close NAME",
		short: "Close an empty account and revoke its keys, permanently; its name stays taken",
		long: "Closes an account that has no money, no open orders and no pending withdrawals, " +
			"and revokes its keys. This cannot be undone, and no other account can have its " +
			"name. `exchange adjust` removes amounts that are too small to withdraw.",
		route: "POST accounts/close", args: "account",
		done: "The account is closed, and its keys are revoked.",
	},
	{
		use: "freeze NAME", short: "Refuse all requests of an account's keys, and approvals of " +
			"its withdrawals; its open orders stay open",
		route: "POST accounts/freeze", args: "account", with: map[string]any{"on": true},
		done: "The account is frozen.",
	},
	{
		use: "unfreeze NAME", short: "Accept requests of an account's keys again",
		route: "POST accounts/freeze", args: "account", with: map[string]any{"on": false},
		done: "The account is no longer frozen.",
	},
}

var keyVerbs = []verb{
	{
		use: "create ACCOUNT", short: "Make an API key of an account; its secret is shown only now",
		long: `Make an API key of an account; its secret is shown only now.

The nonces of a key must grow: of two requests that overtake each other one is refused. For a key
with --parallel N the exchange remembers the N greatest nonces used, and accepts any unused nonce
above the least of them. So a client may have up to N requests in flight, on several connections.`,
		route: "POST keys", args: "account", flags: "permissions allow parallel",
		with: map[string]any{"permissions": []string{"read", "trade"}},
		once: "`exchange key list ACCOUNT` shows whether a key was made; if so, revoke it",
		done: "The secret is shown only now: keep it.",
	},
	{
		use: "list ACCOUNT", short: "List the API keys of an account",
		route: "GET keys", args: "account",
	},
	{
		use: "revoke KEY", short: "Revoke an API key permanently",
		route: "POST keys/revoke", args: "key", once: repeatIt,
	},
}

var withdrawVerbs = []verb{
	{
		use: "list [ACCOUNT]", short: "List the pending withdrawals of all accounts, or all of " +
			"one account",
		long: "Lists the pending withdrawals of all accounts, newest first. With ACCOUNT, or " +
			"--account, it lists all withdrawals of that account: first the pending ones, then " +
			"the closed ones. The status \"new\" waits for the code that was mailed to the " +
			"owner; \"verified\" waits for you.",
		route: "GET withdraws", args: "[account]", flags: "account limit", usual: 1000,
	},
	{
		use: "approve ID", short: "Approve a withdrawal that its owner has confirmed: its money " +
			"leaves the account",
		long: "Approves a withdrawal that its owner has confirmed: its money leaves the account. " +
			"Approving a withdrawal of a frozen account needs --despite-freeze; the log and " +
			"`exchange actions` then show the operator's name. --reference is the transaction " +
			"that pays the withdrawal; the account's owner and `exchange export` see it as " +
			"details.",
		route: "POST withdraws/approve", args: "withdraw", flags: "reference despite_freeze",
	},
	{
		use:   "refuse ID --details TEXT",
		short: "Refuse a withdrawal: its money becomes available to the account again",
		long: "Refuses a withdrawal, confirmed by its owner or not: its money becomes available " +
			"to the account again, and the owner receives the reason.",
		route: "POST withdraws/refuse", args: "withdraw", flags: "details!",
	},
}

var orderVerbs = []verb{
	{
		use:   "list [ACCOUNT]",
		short: "List open orders of an account or of all accounts, including untriggered stops",
		long: "Lists the open orders of an account, newest first. Without ACCOUNT it lists those " +
			"of all accounts, account by account. Orders that change during the listing may be " +
			"missing, or shown in their earlier state.",
		route: "GET orders", args: "[account]", flags: "pair limit", usual: maxList, pages: true,
	},
	{
		use: "cancel ID", short: "Cancel an open order of any account",
		route: "POST orders/cancel", args: "order", done: "The order is cancelled.",
		run: func(ctx context.Context, p *Commands, x *invocation) error {
			raw, repeats, err := p.send(ctx, x)
			if repeats > 0 && cli.ExitCode(err) == cli.ExitUsage {
				// The refusal may be due to an earlier try, whose outcome is unknown.
				return unknown(
					"%s; an earlier try of this command may have cancelled it: `exchange "+
						"actions` shows whether one did", strings.TrimSuffix(err.Error(), "."))
			}
			return p.answerIf(err, x, raw)
		},
	},
	{
		use:   "cancel-all [ACCOUNT|PAIR]",
		short: "Cancel all open orders of an account, of a pair, or of an account in a pair",
		long: "Cancels all open orders of an account, or all in a pair; with both, those of the " +
			"account in the pair. An argument such as BTC_USDT is a pair, any other an account; " +
			"--account and --pair name it explicitly.",
		route: "POST orders/cancel-all", flags: "account pair", run: cancelAll,
	},
}

// cancelAll cancels the orders of an account, a pair, or both. It refuses a command with neither,
// which would cancel all orders.
func cancelAll(ctx context.Context, p *Commands, x *invocation) error {
	if args := x.command.Flags().Args(); len(args) == 1 {
		kind, err := accountOrPair(args[0])
		if err != nil {
			return err
		}
		if _, twice := x.given[kind]; twice {
			return cli.Usage("order cancel-all takes one %s: %q and --%s name two", kind, args[0],
				kind)
		}
		x.given[kind] = args[0]
		if err := x.readMember(kind, args[0]); err != nil {
			return err
		}
	}
	if len(x.given) == 0 {
		return cli.Usage("order cancel-all needs an account or a pair")
	}
	raw, repeats, err := p.send(ctx, x)
	switch {
	case err != nil || repeats == 0:
		return p.answerIf(err, x, raw)
	case p.JSON: // an earlier try may have cancelled orders that are not listed
		return p.show(x.out, append(raw[:len(raw)-1], `,"incomplete":true}`...))
	}
	err = p.show(x.out, raw)
	fmt.Fprintln(p.Stdout, "\nEarlier tries of this command may have cancelled more: `exchange "+
		"actions` shows them.")
	return err
}

// accountOrPair returns "account" or "pair", whichever the name can be; an error if it can be both.
func accountOrPair(name string) (kind string, err error) {
	switch isPair := validPair.MatchString(name); {
	case isPair && validName.MatchString(name): // only digits, such as 1_2
		return "", cli.Usage("%q can be an account or a pair: write --account or --pair before it",
			name)
	case isPair:
		return "pair", nil
	}
	return "account", nil
}

var switchVerbs = []verb{{
	use: "list", short: "List the armed dead man's switches of keys",
	route: "GET switches", flags: "account",
}}

const allHelp = ". With --all it changes each configured pair, one after the other, as an action " +
	"of its own."

var pairVerbs = []verb{
	{
		use: "halt [PAIR]", short: halting, long: halting + allHelp,
		route: "POST pairs/halt", args: "[pair]", flags: "all", with: map[string]any{"on": true},
		done: "Trading is halted.", check: checkHalt,
	},
	{
		use: "resume [PAIR]", short: resuming, long: resuming + allHelp,
		route: "POST pairs/halt", args: "[pair]", flags: "all", with: map[string]any{"on": false},
		done: "Trading is open.", check: checkHalt,
	},
	{
		use: "list", short: "List the pairs with their rules, fees, last prices and halts",
		route: "GET pairs",
	},
}

const (
	halting  = "Refuse new orders on a pair; open orders stay, and can be cancelled"
	resuming = "Accept orders on a pair again"
)

func checkHalt(x *invocation) error {
	pair, given := x.given["pair"]
	name := strings.TrimPrefix(x.command.CommandPath(), "exchange ")
	switch all := x.in.FieldByName("All").Bool(); {
	case all && given:
		return cli.Usage("%s takes a pair or --all, not both: %q and --all", name, pair)
	case !all && !given:
		return cli.Usage("%s needs PAIR", name)
	case all:
		x.out = typeOf[operator.AllAnswer]()
	}
	return nil
}

var feeVerbs = []verb{
	{
		use: "set ACCOUNT PAIR --maker RATE --taker RATE", short: "Give an account its own rates " +
			"in a pair",
		long: "Gives an account its own rates in a pair, for trades from now on. A rate is a " +
			"fraction of the amount that the account receives: 0.001 is 0.1 %, and 0 is no fee.",
		route: "POST fees", args: "account pair", flags: "maker! taker!",
		check: func(x *invocation) error {
			for _, name := range []string{"maker", "taker"} {
				rate, err := readRate("--"+name, x.text(name))
				if err != nil {
					return err
				}
				x.set(name, rate.String())
			}
			return nil
		},
		run: setFees,
	},
	{
		use: "reset ACCOUNT PAIR", short: "Apply the pair's usual rates to an account again",
		route: "POST fees", args: "account pair", with: map[string]any{"usual": true},
		run: setFees,
	},
	{
		use: "list", short: "List the usual rates of all pairs, and the accounts with rates of " +
			"their own",
		route: "GET fees", pages: true,
	},
}

// setFees also shows the rates in percent, so that an operator notices 0.5 written for 0.5 %.
func setFees(ctx context.Context, p *Commands, x *invocation) error {
	raw, repeats, err := p.send(ctx, x)
	if err != nil {
		return err
	}
	n, _ := parseMembers(raw)
	x.done = fmt.Sprintf("The maker pays %s %%, and the taker %s %%.", percent(n["maker"]),
		percent(n["taker"]))
	return p.answer(x, raw, repeats)
}

func percent(rate json.RawMessage) string {
	r, err := money.ParseRate(string(rate))
	if err != nil {
		return string(rate) + " times 100"
	}
	return (money.Amount(r) * 100).String()
}

var maintenanceVerbs = []verb{
	{
		use:   "on",
		short: "Refuse clients' commands, also after a restart, until `maintenance off`",
		long: "Refuses clients' commands from now on, and answers once none is in flight. " +
			"Clients can still read, and operators can still do everything. Maintenance " +
			"survives restarts. Nothing trades, and no stop is triggered. With --cancels the " +
			"exchange accepts clients' cancels of orders and withdrawals, and dead man's " +
			"switches fire. Repeating the command without --cancels refuses cancels again.",
		route: "POST maintenance", flags: "message cancels", with: map[string]any{"on": true},
	},
	{
		use: "off", short: "Accept clients' commands again",
		route: "POST maintenance", with: map[string]any{"on": false},
	},
	{
		use: "status", short: "Show whether maintenance is on, and since when",
		route: "GET maintenance",
	},
}

var clusterVerbs = []verb{
	{
		use: "status", short: "Show a node's view of the cluster",
		long: "Shows which node leads, and the view that the answering node has of the others. " +
			"Only the leader knows the others' progress. Silence is in ticks of cluster.tick_ms. " +
			"The log's size is that of the answering node. Formats are the newest that each " +
			"node's program can read; the leader writes only what all can. A node differs if " +
			"its configuration's market part is not the applied one.",
		route: "GET cluster",
	},
	{
		use: "hash", short: "Show a node's sequence, and a hash of its state at that sequence",
		long: "Shows the SHA-256 of the answering node's state. Nodes at the same sequence must " +
			"have the same hash, so compare hashes during maintenance. Reads and the stream do " +
			"not wait for it.",
		route: "GET cluster/hash",
	},
	{
		use: "transfer [NODE]", short: "Hand the lead over to another node",
		long: "Makes the leader finish the commands in flight and hand over to the named node, " +
			"or to the node that has most of the log.",
		route: "POST cluster/transfer", args: "[to]",
		once: "`exchange cluster status` shows which node leads",
	},
}

var configReloadVerb = verb{
	use: "reload", short: "Reload the configuration of the running exchange",
	long: "Makes the running exchange read its configuration again, from the same " +
		"file, flags and environment as at its start, and apply the changes; certificates " +
		"and tokens, too. SIGHUP does the same.\n\nAll changes are applied, or none: if one of " +
		"them needs a restart, or the agreement of a cluster's nodes, the answer says which " +
		"and why, and the exchange continues as before. In a cluster only the answering node " +
		"reloads.",
	route: "POST config/reload", once: repeatIt,
}

// configApplyCommand sends the market part of a configuration.
func (p *Commands) configApplyCommand() *cobra.Command {
	var from cli.Sources
	c := p.commandOf(&verb{
		use:   "apply [--config FILE]",
		short: "Have the nodes of a cluster agree on a file's market part",
		long: "Checks a configuration as `exchange config check` does, and has all nodes of the " +
			"cluster agree on its market part: currencies, pairs with their fees, and the limits " +
			"that clients see. It takes effect in the next term, which `exchange cluster " +
			"transfer` begins. It is refused if it lacks a pair with open orders, or a currency " +
			"that accounts hold.",
		route: "POST cluster/apply", once: repeatIt,
		run: func(ctx context.Context, p *Commands, x *invocation) error {
			raw, _, err := p.send(ctx, x)
			n, _ := parseMembers(raw)
			x.done = cli.Either(length(n["keys"]) == 0, "The cluster has this market part already.",
				"It takes effect in the next term: `exchange cluster transfer` begins one.")
			return p.answerIf(err, x, raw)
		},
		check: func(x *invocation) error {
			cfg, err := p.Load(&from)
			if err != nil {
				return err
			}
			packed, err := config.PackMarket(cfg.Market())
			if err != nil {
				return cli.WithExit(cli.ExitBroken, err)
			}
			x.set("market", packed)
			return nil
		},
	})
	c.Flags().StringVar(&from.File, "config", "", "configuration file (default $EXCHANGE_CONFIG)")
	return c
}
