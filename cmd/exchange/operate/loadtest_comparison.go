package operate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"exchange/cmd/exchange/cli"
	"exchange/loadtest"
)

const loadtestCompareHelp = `Compares two reports that ` +
	"`exchange loadtest --json FILE`" + ` wrote: first the settings that differ,
then each rate and percentile, refusals and unknown outcomes, with the change from A to B in percent,
or as a factor where it is at least double or at most half. Stages are compared if both tests had the
same ones.

With --worse 10% it exits with 1 if B's rate is lower by more than 10 %, or its p99 higher by more
than 10 %; of two ramps, if the highest rate that held is lower by more than that. A report of a run
that failed is refused (64), and so is one of another layout.`

// mostWorse bounds --worse, in percent.
const mostWorse = 10_000

func (p *Commands) loadtestCompareCommand() *cobra.Command {
	var worse string
	c := &cobra.Command{
		Use:   "compare A.json B.json [--worse PERCENT]",
		Short: "Compare the JSON reports of two load tests",
		Long:  loadtestCompareHelp,
		Args:  cli.Takes("A.json", "B.json"),
	}
	c.Flags().StringVar(&worse, "worse", "",
		"fail (1) if B's rate is lower or its p99 higher by more than this, such as 10% "+
			"(default: never)")
	c.RunE = cli.Run(func(_ context.Context, args []string) error {
		if !c.Flags().Changed("worse") {
			return p.compareLoadtests(args[0], args[1], nil)
		}
		percent, err := strconv.ParseFloat(strings.TrimSuffix(worse, "%"), 64)
		if err != nil || !(percent >= 0 && percent <= mostWorse) { // or not a number
			return cli.Usage("--worse is %q: write 0%% to %d%%, such as 10%%", worse, mostWorse)
		}
		return p.compareLoadtests(args[0], args[1], &percent)
	})
	return c
}

// compareLoadtests compares two reports, and judges the second one if there is a bound in percent.
func (p *Commands) compareLoadtests(first, second string, worse *float64) error {
	a, err := readReport(first)
	if err != nil {
		return err
	}
	b, err := readReport(second)
	if err != nil {
		return err
	}
	c, err := loadtest.Compare(a, b)
	if err != nil {
		return cli.WithExit(cli.ExitUsage, err)
	}
	c.A.File, c.B.File = cli.Plain(first), cli.Plain(second)
	if worse != nil {
		c.Judge(*worse)
	}
	if p.JSON {
		err = cli.PrintJSON(p.Stdout, c)
	} else {
		err = c.WriteText(p.Stdout)
	}
	if err == nil && len(c.Worse) > 0 {
		err = cli.WithExit(cli.ExitBound, fmt.Errorf("%s is worse than %s by more than %g %%: %s",
			c.B.File, c.A.File, *worse, strings.Join(c.Worse, "; ")))
	}
	return err
}

// readReport reads the file of a report.
func readReport(name string) (*loadtest.Report, error) {
	refuse := func(err error) error {
		return cli.WithExit(cli.ExitUsage, fmt.Errorf("the report %s: %s", cli.Plain(name),
			cli.Plain(err.Error())))
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, refuse(err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, loadtest.MaxReport+1))
	if err == nil && len(text) > loadtest.MaxReport {
		err = errors.New("it has more than 256 MiB, which no report has")
	}
	if err != nil {
		return nil, refuse(err)
	}
	r, err := loadtest.ParseReport(text)
	if err != nil {
		return nil, refuse(err)
	}
	return r, nil
}
