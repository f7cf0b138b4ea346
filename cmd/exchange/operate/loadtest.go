package operate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"exchange/cmd/exchange/cli"
	"exchange/config"
	"exchange/loadtest"
)

const loadtestName = "loadtest"

const loadtestHelp = `Loads a running exchange over HTTP and the event stream, and verifies it: at the end every order must
exist as it was acknowledged, wallets must match the trades, updates of the stream must be dense, and
local books must equal the REST books. With an operator's token it creates and funds its own accounts,
revokes their keys at the end, and has the server audit itself. With --keys it trades on given
accounts, which no other program may use during the test.

The operator's listener may have TLS (--operator https://...); the public one may not: the exchange
alone is measured.

With the addresses of several nodes (--address a:8080,b:8090,c:8100) connections and subscribers are
spread over them, and orders acknowledged at one are read at another. A node that ends during the test
does not end the test: the report shows how long it did not serve.

Start the server with --no-rate-limits, and with --synthetic-pairs N for a test with many pairs.

Rates and latencies count completed requests. Refusals have a row of their own, and more than
--allow-refused percent of them fail the test.

Without --rate each connection sends when it has its answer. With it, requests are due at that rate
whatever the server does, and latency counts from when a request was due. --ramp finds the highest
rate whose p99 is within --p99: --duration is one step's. --stages is an open loop, too, whose rate
changes: each stage has a time, and a rate or two for a straight line. So 30s@1000,1m@1000..5000,20s@0
sends 1,000 requests a second, then a rate that rises to 5,000, and then none.

With --sockets each account logs in and sends its orders over a socket.

Ctrl-C ends the load; acknowledged orders are verified and reported. Ctrl-C after the load ends the
verification. The test waits at most --wait for an exchange that does not answer.

With the operator's address the report has the server's memory, processors, snapshots and open orders,
one row a minute. --open-orders keeps a level of orders, --deposits adds a banker, and --stall and
--growth are bounds (make soak uses all of them).

` +
	"`exchange loadtest compare`" + ` compares the JSON reports of two tests.

Exits with 0 if every check passed, 1 if --allow-refused, --stall or --growth does not hold, 70 if the
verification finds any difference, 75 if the server could not be reached or the verification did not
finish, 64 for wrong arguments.`

// loadtestFlags holds the values of the flags.
type loadtestFlags struct {
	options                loadtest.Options
	keys, mix, subscribers string
	stages                 string
	jsonFile, htmlFile     string
	plotFile               string
}

func (p *Commands) loadtestCommand() *cobra.Command {
	var f loadtestFlags
	o := &f.options
	c := &cobra.Command{
		Use: loadtestName + " [--rate N | --stages LIST | --ramp --p99 TIME] " +
			"[--json FILE] [--html FILE]",
		Short: "Drive a running exchange, measure it, and verify what it answered",
		Long:  loadtestHelp,
		Args:  cli.Takes(),
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.StringSliceVar(&o.Addresses, "address", []string{config.Default().Listen},
		"address of the public API, or those of a cluster's nodes, with commas")
	flags.StringVar(&f.keys, "keys", "",
		"file of key,secret lines, each of an account of its own, in place of accounts that "+
			"are made")
	flags.StringVar(&o.Name, "name", "loadtest",
		"prefix of created accounts: NAME-1, NAME-2, ...; two tests at once need two names")
	flags.IntVar(&o.Pairs, "pairs", 0, "number of the server's pairs to trade (default all)")
	flags.IntVar(&o.PairsPerAccount, "pairs-per-account", 0,
		"pairs that an account trades (default 4, or more if all pairs need it)")
	flags.IntVar(&o.Accounts, "accounts", 64, "accounts that are made")
	flags.IntVar(&o.Connections, "connections", 64, "with one request in flight at most")
	flags.IntVar(&o.Sockets, "sockets", 0,
		"sockets of the stream that orders go over, 64 in flight on each, not connections")
	flags.IntVar(&o.Batch, "batch", 0, "orders, cancels and changes of one request, up to 50")
	flags.IntVar(&o.Threads, "threads", 1,
		"threads that send; one sends some 100,000 requests a second")
	flags.DurationVar(&o.Duration, "duration", 30*time.Second,
		"of the load, or of each step of a ramp")
	flags.DurationVar(&o.Warmup, "warmup", 0,
		"of load before that, which is verified and not counted (default none)")
	loadtestRates(flags, &f)
	flags.StringVar(&f.mix, "mix", "",
		"shares of 100 of place,cancel,reads (default by the model, 60,40,0)")
	flags.IntVar(&o.Instructed, "instructed", 0,
		"percent of orders with instructions (market, ioc, stop, ...), and of cancels that "+
			"are changes of orders instead")
	flags.StringVar(&o.Model, "model", "random-walk",
		"how prices move: "+strings.Join(loadtest.Models, ", "))
	flags.Uint64Var(&o.Seed, "seed", 1, "of what is random")
	flags.StringVar(&f.subscribers, "subscribers", "diff=1",
		"sockets by channel, such as diff=1,trades=10, or none; channels are "+strings.Join(
			loadtest.Channels, ", "))
	flags.IntVar(&o.OpenOrders, "open-orders", 0,
		"orders that are to rest in all: an order or a cancel is sent as this level asks for")
	flags.Float64Var(&o.Deposits, "deposits", 0,
		"deposits a second by the operator, while the load runs")
	flags.DurationVar(&o.Every, "row", time.Minute, "of a row of the table over time")
	flags.StringVar(&o.Disk, "disk", "", "folder of the server whose size is reported")
	loadtestBounds(flags, o)
	flags.DurationVar(&o.Timeout, "timeout", 10*time.Second,
		"how long an answer may take; then its outcome is unknown")
	flags.DurationVar(&o.Wait, "wait", time.Minute,
		"how long to wait, before and after the load, for an exchange that does not answer")
	flags.BoolVar(&o.NoVerify, "no-verify", false,
		"verify nothing, and keep nothing of orders that are closed")
	flags.BoolVar(&o.LeaveOrders, "leave-orders", false,
		"leave the resting orders open at the end")
	flags.StringVar(&f.jsonFile, "json", "", "write the report to this file, as JSON")
	flags.StringVar(&f.htmlFile, "html", "",
		"write the report to this file, as one page with plots")
	flags.StringVar(&f.plotFile, "plot", "",
		"draw what happened over time into this file, as SVG")
	c.RunE = cli.Run(func(ctx context.Context, _ []string) error { return p.loadtest(ctx, c, &f) })
	c.AddCommand(p.loadtestCompareCommand())
	return c
}

// loadtestRates adds the flags of request rates.
func loadtestRates(flags *pflag.FlagSet, f *loadtestFlags) {
	flags.Float64Var(&f.options.Rate, "rate", 0,
		"requests a second in an open loop, or where a ramp begins (default: a closed loop)")
	flags.StringVar(&f.stages, "stages", "",
		"an open loop whose rate changes, in place of --duration and --rate: TIME@RATE or "+
			"TIME@FROM..TO, with commas")
	flags.BoolVar(&f.options.Ramp, "ramp", false, "find the highest rate that holds --p99")
	flags.DurationVar(&f.options.P99, "p99", 0, "the bound of --ramp")
}

// loadtestBounds adds the bounds of a test that verifies.
func loadtestBounds(flags *pflag.FlagSet, o *loadtest.Options) {
	flags.DurationVar(&o.Stall, "stall", 0,
		"fail (1) if anything takes longer than this (default: never)")
	flags.Float64Var(&o.Growth, "growth", 0,
		"fail (1) if the server's memory or snapshot in the last row is more than this many "+
			"times that of the fifth (default: never)")
	flags.Float64Var(&o.AllowRefused, "allow-refused", 1,
		"fail (1) if more than this percentage of the requests is refused; cancels and "+
			"changes that came too late are no refusals")
}

// loadtest reads the files of the flags, runs the test and writes its report.
func (p *Commands) loadtest(ctx context.Context, c *cobra.Command, f *loadtestFlags) (err error) {
	o := &f.options
	if f.mix != "" {
		if o.Mix, err = loadtest.ParseMix(f.mix); err != nil {
			return cli.Usage("%w", err)
		}
	}
	if o.Subscribers, err = loadtest.ParseSubscribers(f.subscribers); err != nil {
		return cli.Usage("%w", err)
	}
	if err := loadtestStages(c, f); err != nil {
		return err
	}
	if checkAccount(o.Name+"-1000000") != nil {
		return cli.Usage(
			"--name is %q: write 1 to 50 of a-z, 0-9, '.', '_' and '-', beginning with a letter "+
				"or a digit", o.Name)
	}
	if err := p.loadtestAccounts(c, f); err != nil {
		return err
	}
	if err := o.Validate(); err != nil {
		return cli.Usage("%w", err)
	}
	// Now, because an impossible name must not be found minutes later.
	jsonFile, err1 := createFile(f.jsonFile)
	htmlFile, err2 := createFile(f.htmlFile)
	plotFile, err3 := createFile(f.plotFile)
	if err := errors.Join(err1, err2, err3); err != nil {
		return cli.WithExit(cli.ExitUsage, err)
	}
	if p.Env("GOGC") == "" {
		// the load test shares the machine with the exchange, and most of its memory stays
		debug.SetGCPercent(400)
	}
	o.Progress, o.Terminal = p.Stderr, cli.IsTerminal(p.Stderr)
	report, err := loadtest.Run(ctx, *o)
	if report == nil {
		return loadtestFailed(err)
	}
	err = errors.Join(report.WriteText(p.Stdout),
		writeFile(jsonFile, func(w io.Writer) error {
			e := json.NewEncoder(w)
			e.SetIndent("", "  ")
			return e.Encode(report)
		}),
		writeFile(htmlFile, report.WriteHTML), writeFile(plotFile, report.WriteSVG),
		loadtestFailed(err))
	return loadtestOutcome(report, err)
}

// loadtestStages reads the stages, if there are any. They replace the usual duration.
func loadtestStages(c *cobra.Command, f *loadtestFlags) (err error) {
	if !c.Flags().Changed("stages") {
		return nil
	}
	for _, name := range []string{"duration", "rate", "ramp"} {
		if c.Flags().Changed(name) {
			return cli.Usage(
				"--%s and --stages exclude each other: a stage says for how long which "+
					"rate is sent", name)
		}
	}
	f.options.Duration = 0
	if f.options.Stages, err = loadtest.ParseStages(f.stages); err != nil {
		return cli.Usage("%w", err)
	}
	return nil
}

// loadtestOutcome is the worst error of a report.
func loadtestOutcome(report *loadtest.Report, err error) error {
	if report.Differs() {
		n := report.Verification.Found
		return cli.WithExit(cli.ExitBroken, errors.Join(
			fmt.Errorf("the exchange's state differs from its answers: %d %s", n,
				cli.Either(n == 1, "difference", "differences")), err))
	}
	if v := report.Verification; err == nil && v != nil && v.Incomplete != "" {
		return cli.WithExit(cli.ExitUnavailable,
			fmt.Errorf("the verification did not finish: %s", v.Incomplete))
	}
	if err == nil && report.Broke() {
		return cli.WithExit(cli.ExitBound, errors.New(strings.Join(report.Broken, "; ")))
	}
	return cli.WithExit(cli.ExitUnavailable, err)
}

// loadtestAccounts reads the keys and the operator's token. With keys the token is optional, and
// only for the audit.
func (p *Commands) loadtestAccounts(c *cobra.Command, f *loadtestFlags) error {
	o := &f.options
	if f.keys != "" {
		if c.Flags().Changed("accounts") {
			return cli.Usage(
				"--accounts counts created accounts: with --keys each line is one account")
		}
		text, err := os.ReadFile(f.keys)
		if err != nil {
			return cli.WithExit(cli.ExitUsage, fmt.Errorf("the keys cannot be read: %w", err))
		}
		if o.Keys, err = loadtest.ParseKeys(string(text)); err != nil {
			return cli.Usage("%s: %w", f.keys, err)
		}
	}
	client, err := p.client()
	if err == nil && f.keys != "" && client.socket != "" && p.operator == "" &&
		p.Env("EXCHANGE_OPERATOR") == "" {
		if _, none := os.Stat(client.socket); none != nil {
			return nil // the operator did not name it, and it is not here
		}
	}
	if err != nil {
		if f.keys != "" && p.tokenFile == "" && p.Env(config.EnvOperatorToken) == "" {
			return nil
		}
		return cli.WithExit(cli.ExitUsage, fmt.Errorf("%w; or give accounts by --keys FILE", err))
	}
	o.Operator, o.Token = client.address, client.token
	if client.scheme == "https" {
		o.OperatorTLS = client.trust
	}
	return nil
}

// loadtestFailed gives the error of a test its exit code.
func loadtestFailed(err error) error {
	var u loadtest.Usage
	switch {
	case err == nil:
		return nil
	case errors.As(err, &u):
		return cli.Usage("%w", err)
	}
	return cli.WithExit(cli.ExitUnavailable, err)
}

func createFile(name string) (*os.File, error) {
	if name == "" {
		return nil, nil
	}
	return os.Create(name)
}

// writeFile writes a report to its file, if there is one.
func writeFile(f *os.File, write func(io.Writer) error) error {
	if f == nil {
		return nil
	}
	return errors.Join(write(f), f.Close())
}
