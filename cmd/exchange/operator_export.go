package main

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
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
)

// The operator's command that writes trades for other programs.

type exportedTrade struct {
	ID         json.Number `json:"id"`
	Time       string      `json:"time"`
	Pair       string      `json:"pair"`
	Type       string      `json:"type"`
	Price      json.Number `json:"price"`
	Amount     json.Number `json:"amount"`
	TakerOrder json.Number `json:"taker_order"`
	MakerOrder json.Number `json:"maker_order"`
	Taker      string      `json:"taker"`
	Maker      string      `json:"maker"`
	TakerFee   json.Number `json:"taker_fee"`
	MakerFee   json.Number `json:"maker_fee"`
}

var exportHeader = []string{"id", "time", "pair", "type", "price", "amount", "taker_order",
	"maker_order", "taker", "maker", "taker_fee", "maker_fee"}

func (t *exportedTrade) row() []string {
	return []string{t.ID.String(), t.Time, t.Pair, t.Type, t.Price.String(), t.Amount.String(),
		t.TakerOrder.String(), t.MakerOrder.String(),
		t.Taker, t.Maker, t.TakerFee.String(), t.MakerFee.String()}
}

func (t *exportedTrade) complete() bool {
	return t.ID != "" && t.Time != "" && t.Pair != "" && t.Type != "" && t.Price != "" &&
		t.Amount != "" && t.Taker != "" && t.Maker != ""
}

// An exportAnswer is the output of an export into a file.
type exportAnswer struct {
	Trades int    `json:"trades"`
	File   string `json:"file"`
}

func (a *exportAnswer) complete() bool { return true }

func (p *program) exportCommand() *cobra.Command {
	return group("export", "Write data for other programs", p.exportTradesCommand())
}

func (p *program) exportTradesCommand() *cobra.Command {
	var pair, from, to, output string
	c := &cobra.Command{
		Use:   "trades --pair PAIR",
		Short: "Write the trades of a pair as CSV, oldest first",
		Long: "Writes the trades of a pair as CSV with a header, oldest first. Times are such as " +
			"2026-11-21T08:00:00Z, or 2026-11-21, which is when " +
			"that day begins in UTC. The type is the taker's side. A fee is in the currency that " +
			"its side received.\n\n" +
			"With --json each line is an object instead. A file gets its name when it is whole; " +
			"only its owner can read it.",
		Args: takes(),
	}
	c.Flags().StringVar(&pair, "pair", "", "the pair, such as BTC_USDT")
	c.Flags().StringVar(&from, "from", "", "leave out trades before this time")
	c.Flags().StringVar(&to, "to", "", "leave out trades at this time and after it")
	c.Flags().StringVar(&output, "output", "", "write into this file (default standard output)")
	c.RunE = run(func(ctx context.Context, _ []string) error {
		if !c.Flags().Changed("pair") {
			return usage("export trades needs --pair PAIR")
		}
		if c.Flags().Changed("output") && output == "" {
			return usage("--output is empty: name a file")
		}
		if err := cmp.Or(checkPair(pair), checkReplaceable("--output", output)); err != nil {
			return err
		}
		query := url.Values{"pair": {pair}}
		var times []time.Time
		for _, x := range []struct{ flag, text string }{{"from", from}, {"to", to}} {
			if !c.Flags().Changed(x.flag) {
				continue
			}
			t, err := readTime("--"+x.flag, x.text)
			if err != nil {
				return err
			}
			query.Set(x.flag, x.text)
			times = append(times, t)
		}
		if len(times) == 2 && !times[0].Before(times[1]) {
			return usage(
				"--from is %q, which is not before --to, %q: there can be no trade between them",
				from, to)
		}
		return p.exportTrades(ctx, "/operator/v1/trades?"+query.Encode(), output)
	})
	return c
}

// readTime reads a time in the form that the server takes.
func readTime(flag, text string) (time.Time, error) {
	for _, form := range []string{time.RFC3339Nano, time.DateOnly} {
		if t, err := time.Parse(form, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, usage("%s is %q: write a time such as 2026-11-21 or 2026-11-21T08:00:00Z",
		flag, text)
}

func (p *program) exportTrades(ctx context.Context, path, output string) error {
	if output == "" {
		g := &progress{}
		if !isTerminal(p.stdout) { // otherwise it would stand between the trades
			g = p.progress()
		}
		defer g.done()
		_, err := p.exportTo(ctx, path, p.stdout, g)
		return err
	}
	g := p.progress()
	a := exportAnswer{File: output}
	err := writeBeside(filepath.Dir(output), func(f *os.File) (name string, err error) {
		a.Trades, err = p.exportTo(ctx, path, f, g)
		return output, err
	})
	g.done()
	if err != nil {
		return err
	}
	return p.print(&a, func(w *tabwriter.Writer) {
		fmt.Fprintf(w, "%s %s in %s.\n", thousands(a.Trades),
			either(a.Trades == 1, "trade is", "trades are"), a.File)
	})
}

// exportTo writes trades, and returns their number.
func (p *program) exportTo(ctx context.Context, path string, to io.Writer, g *progress) (n int,
	err error) {
	buffered := bufio.NewWriter(to)
	table := csv.NewWriter(buffered)
	header := func() {
		if !p.json {
			table.Write(exportHeader) //nolint:errcheck // Flush says it
		}
	}
	end := -1
	err = p.lines(ctx, path, nil, func(line []byte) error {
		if n++; n == 1 { // a request that is refused leaves nothing behind
			header()
		}
		g.show("%s trades", thousands(n))
		if p.json {
			_, err := fmt.Fprintf(buffered, "%s\n", line)
			return err
		}
		var t exportedTrade
		if err := json.Unmarshal(line, &t); err != nil || !t.complete() {
			return notOfListener(line)
		}
		return table.Write(t.row())
	}, &end)
	if err == nil && n == 0 {
		header()
	}
	table.Flush()
	flushed := cmp.Or(table.Error(), buffered.Flush())
	if err == nil && n != end {
		err = withExit(exitUnavailable,
			fmt.Errorf("%d trades have come, the exchange speaks of %d", n, end))
	}
	return n, cmp.Or(err, flushed)
}
