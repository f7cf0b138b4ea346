package operate

import (
	"bufio"
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/shopspring/decimal"
	"github.com/spf13/cobra"

	"exchange/cmd/exchange/cli"
	"exchange/config"
	"exchange/gateway/operator"
)

// The operator's commands that write rows for other programs.

// An export describes a command that writes rows of one kind.
type export struct {
	name  string // name of the command, and plural of its rows
	one   string // singular of the rows
	path  string
	short string
	about string // more text for --help
	// columns of CSV, and those of them that a row may lack
	header, optional []string
	pair             bool // has the flag --pair
	period           bool // has a period; otherwise the rows are balances
}

var exports = []export{
	{
		name: "trades", one: "trade", path: "/operator/v1/trades", pair: true, period: true,
		short: "Write the trades of a pair or of all, oldest first",
		about: "Without --pair the trades of one pair follow those of the other. The type is the " +
			"taker's side. A fee is in the currency that its side received.",
		header: []string{"id", "time", "pair", "type", "price", "amount", "taker_order",
			"maker_order", "taker", "maker", "taker_fee", "maker_fee"},
	},
	{
		name: "orders", one: "order", path: "/operator/v1/export/orders", period: true,
		short: "Write all orders, open and closed, account by account",
		about: "Each account's newest order comes first, and its orders are as they were at one " +
			"moment. The status is open, cancelled or done; remaining is what was open last. " +
			"With ndjson an order has all of its instructions.",
		header: []string{"order", "time", "account", "pair", "type", "status", "price", "amount",
			"remaining", "closed", "cancel_reason", "client_order_id", "order_type",
			"time_in_force", "trigger_price"},
		optional: []string{"closed", "cancel_reason", "client_order_id", "order_type",
			"time_in_force", "trigger_price"},
	},
	{
		name: "deposits", one: "deposit", path: "/operator/v1/export/deposits", period: true,
		short: "Write all deposits, account by account",
		about: "Each account's newest deposit comes first.",
		header: []string{"deposit", "time", "account", "currency", "amount",
			"reference"},
	},
	{
		name: "withdraws", one: "withdraw", path: "/operator/v1/export/withdraws", period: true,
		short: "Write all withdrawals, pending and ended, newest first",
		header: []string{"withdraw", "time", "account", "currency", "amount", "state", "closed",
			"address", "details", "client_id"},
		optional: []string{"closed", "address", "details", "client_id"},
	},
	{
		name: "balances", one: "balance", path: "/operator/v1/export/balances",
		short: "Write the balances of each account, at the newest sequence",
		about: "All balances are of one sequence, which each row has: the newest one. An older " +
			"one cannot be chosen, because it would take a replay of the journal. The sums of " +
			"the rows are compared with those that the exchange has made (70 if they differ): " +
			"they are what `exchange audit` shows as BALANCES at that sequence, and what is owed " +
			"to clients. Balances of 0 are left out.",
		header: []string{"sequence", "account", "currency", "balance", "reserve", "available"},
	},
}

const (
	exportHelp = "Writes one row for each, as CSV with a header, or with --format ndjson as one " +
		"JSON object on each line."
	periodHelp = "--from and --to choose by time: such as 2026-11-21T08:00:00Z, or 2026-11-21, " +
		"which is when that day begins in UTC. The history has what history.* of the " +
		"configuration keeps."
	fileHelp = "A file is renamed once it is complete; only its owner can read it."
)

// help returns the text of --help.
func (e *export) help() string {
	parts := []string{exportHelp}
	if e.about != "" {
		parts = append(parts, e.about)
	}
	if e.period {
		parts = append(parts, periodHelp)
	}
	return strings.Join(append(parts, fileHelp), "\n\n")
}

// An exportAnswer is the output of an export into a file.
type exportAnswer struct {
	kind *export
	rows int
	file string
	end  *balancesEnd // nil: the rows are no balances
}

// MarshalJSON implements json.Marshaler.
func (a *exportAnswer) MarshalJSON() ([]byte, error) {
	file, err := json.Marshal(a.file)
	b := fmt.Appendf(nil, `{%q:%d,"file":%s`, a.kind.name, a.rows, file)
	if a.end != nil && err == nil {
		var totals []byte
		totals, err = json.Marshal(a.end.Totals)
		b = fmt.Appendf(b, `,"sequence":%s,"totals":%s`, a.end.Sequence, totals)
	}
	return append(b, '}'), err
}

func (a *exportAnswer) write(w *tabwriter.Writer) {
	at := ""
	if a.end != nil {
		at = " at sequence " + a.end.Sequence.String()
	}
	fmt.Fprintf(w, "%s %s in %s%s.\n", config.Thousands(a.rows),
		cli.Either(a.rows == 1, a.kind.one+" is", a.kind.name+" are"), a.file, at)
	if a.end == nil {
		return
	}
	fmt.Fprintln(w, "\nCURRENCY\tBALANCES\tRESERVED")
	for _, t := range a.end.Totals {
		fmt.Fprintf(w, "%s\t%s\t%s\n", cli.Plain(t.Currency), t.Balances, t.Reserved)
	}
}

func (p *Commands) exportCommand() *cobra.Command {
	var list []*cobra.Command
	for i := range exports {
		list = append(list, p.exportOf(&exports[i]))
	}
	return cli.Group("export", "Write data for other programs", list...)
}

// exportFlags holds the values of an export's flags.
type exportFlags struct{ pair, from, to, format, output string }

func (p *Commands) exportOf(e *export) *cobra.Command {
	var f exportFlags
	c := &cobra.Command{
		Use:   e.name,
		Short: e.short,
		Long:  e.help(),
		Args:  cli.Takes(),
	}
	if e.pair {
		c.Flags().StringVar(&f.pair, "pair", "", "the pair, such as BTC_USDT (default all)")
	}
	if e.period {
		c.Flags().StringVar(&f.from, "from", "", "leave out "+e.name+" before this time")
		c.Flags().StringVar(&f.to, "to", "",
			"leave out "+e.name+" at this time and after it")
	}
	c.Flags().StringVar(&f.format, "format", "", "csv or ndjson (default csv, ndjson with --json)")
	c.Flags().StringVar(&f.output, "output", "", "write into this file (default standard output)")
	c.RunE = cli.Run(func(ctx context.Context, _ []string) error {
		query, err := f.query(c, e)
		if err != nil {
			return err
		}
		switch {
		case c.Flags().Changed("output") && f.output == "":
			return cli.Usage("--output is empty: name a file")
		case !c.Flags().Changed("format"):
			f.format = cli.Either(p.JSON, "ndjson", "csv")
		case f.format != "csv" && f.format != "ndjson":
			return cli.Usage("--format is %q: write csv or ndjson", f.format)
		}
		if err := cli.CheckReplaceable("--output", f.output); err != nil {
			return err
		}
		return p.export(ctx, &exportRun{export: e, path: e.path + query,
			csv: f.format == "csv"}, f.output)
	})
	return c
}

// query checks the selection, and returns its query.
func (f *exportFlags) query(c *cobra.Command, e *export) (string, error) {
	query := url.Values{}
	if e.pair && c.Flags().Changed("pair") {
		if err := checkPair(f.pair); err != nil {
			return "", err
		}
		query.Set("pair", f.pair)
	}
	var times []time.Time
	for _, x := range []struct{ flag, text string }{{"from", f.from}, {"to", f.to}} {
		if !e.period || !c.Flags().Changed(x.flag) {
			continue
		}
		t, err := readTime("--"+x.flag, x.text)
		if err != nil {
			return "", err
		}
		query.Set(x.flag, x.text)
		times = append(times, t)
	}
	switch {
	case len(times) == 2 && !times[0].Before(times[1]):
		return "", cli.Usage(
			"--from is %q, which is not before --to, %q: there can be no %s between them",
			f.from, f.to, e.one)
	case len(query) == 0:
		return "", nil
	}
	return "?" + query.Encode(), nil
}

// readTime reads a time in the server's form.
func readTime(flag, text string) (time.Time, error) {
	for _, form := range []string{time.RFC3339Nano, time.DateOnly} {
		if t, err := time.Parse(form, text); err == nil {
			return t, nil
		}
	}
	return time.Time{},
		cli.Usage("%s is %q: write a time such as 2026-11-21 or 2026-11-21T08:00:00Z",
			flag, text)
}

func (p *Commands) export(ctx context.Context, e *exportRun, output string) error {
	if output == "" {
		g := &cli.Progress{}
		if !cli.IsTerminal(p.Stdout) { // otherwise it would stand between the rows
			g = p.Progress()
		}
		defer g.Done()
		return e.writeTo(ctx, p, p.Stdout, g)
	}
	g := p.Progress()
	err := cli.WriteBeside(filepath.Dir(output), func(f *os.File) (name string, err error) {
		return output, e.writeTo(ctx, p, f, g)
	})
	g.Done()
	if err != nil {
		return err
	}
	a := &exportAnswer{kind: e.export, rows: e.rows, file: output, end: e.end}
	return p.Print(a, a.write)
}

// An exportRun is an export in progress.
type exportRun struct {
	*export
	path string // with its query
	csv  bool

	rows int
	end  *balancesEnd           // of balances
	sums map[string]*holdingSum // of balances, by currency
}

// A holdingSum is the sum of accounts' holdings of a currency.
type holdingSum struct{ balance, reserve decimal.Decimal }

// A balancesEnd is the last line of an export of balances.
type balancesEnd struct {
	Rows     int         `json:"rows"`
	Sequence json.Number `json:"sequence"`
	Totals   []struct {
		Currency string      `json:"currency"`
		Balances json.Number `json:"balances"`
		Reserved json.Number `json:"reserved"`
	} `json:"totals"`
}

// writeTo writes the rows, and compares them with the exchange's own totals.
func (e *exportRun) writeTo(ctx context.Context, p *Commands, out io.Writer,
	g *cli.Progress) error {
	buffered := bufio.NewWriter(out)
	table := csv.NewWriter(buffered)
	header := func() {
		if e.csv {
			table.Write(e.header) //nolint:errcheck // Flush returns its error
		}
	}
	n := -1
	var end any = &n
	endType := typeOf[int]()
	if !e.period {
		e.end, e.sums = &balancesEnd{}, map[string]*holdingSum{}
		end, endType = e.end, typeOf[operator.BalancesEnd]()
	}
	err := p.lines(ctx, e.path, nil, func(line []byte) error {
		if e.rows++; e.rows == 1 { // a refused request leaves no file
			header()
		}
		g.Show("%s %s", config.Thousands(e.rows), e.name)
		row, err := e.row(line)
		switch {
		case err != nil:
			return err
		case e.csv:
			return table.Write(row)
		}
		_, err = fmt.Fprintf(buffered, "%s\n", line)
		return err
	}, endType, end)
	if err == nil && e.rows == 0 {
		header()
	}
	table.Flush()
	flushed := cmp.Or(table.Error(), buffered.Flush())
	if err != nil {
		return err
	}
	if e.end != nil {
		n = e.end.Rows
	}
	if n != e.rows {
		return cli.WithExit(cli.ExitUnavailable,
			fmt.Errorf("%d %s were received, the exchange reports %d",
				e.rows, e.name, n))
	}
	return cmp.Or(e.compare(), flushed)
}

// row returns the columns of a row.
func (e *exportRun) row(line []byte) ([]string, error) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(line, &fields) != nil {
		return nil, notOfListener(line)
	}
	row := make([]string, 0, len(e.header))
	for _, name := range e.header {
		text := string(fields[name])
		if strings.HasPrefix(text, `"`) && json.Unmarshal(fields[name], &text) != nil ||
			text == "" && !slices.Contains(e.optional, name) {
			return nil, notOfListener(line)
		}
		row = append(row, text)
	}
	if e.sums != nil && !e.add(row[2], row[3], row[4]) {
		return nil, notOfListener(line)
	}
	return row, nil
}

// add adds a balance to the sums of its currency. It returns false for a malformed balance.
func (e *exportRun) add(currency, balance, reserve string) bool {
	b, err1 := decimal.NewFromString(balance)
	r, err2 := decimal.NewFromString(reserve)
	if err1 != nil || err2 != nil {
		return false
	}
	sum := e.sums[currency]
	if sum == nil {
		sum = &holdingSum{}
		e.sums[currency] = sum
	}
	sum.balance, sum.reserve = sum.balance.Add(b), sum.reserve.Add(r)
	return true
}

// compare compares the sums of balances with the totals of the exchange.
func (e *exportRun) compare() error {
	if e.end == nil {
		return nil
	}
	for _, t := range e.end.Totals {
		have := e.sums[t.Currency]
		if have == nil {
			have = &holdingSum{}
		}
		delete(e.sums, t.Currency)
		if have.balance.String() != t.Balances.String() ||
			have.reserve.String() != t.Reserved.String() {
			return cli.WithExit(cli.ExitBroken, fmt.Errorf("the rows have %s %s, of which %s are "+
				"reserved, and the exchange has %s and %s at sequence %s: run `exchange audit`",
				have.balance, t.Currency, have.reserve, t.Balances, t.Reserved, e.end.Sequence))
		}
	}
	for currency := range e.sums {
		return cli.WithExit(cli.ExitBroken,
			fmt.Errorf("the rows have %s, of which the exchange has none",
				currency))
	}
	return nil
}
