package operate

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"exchange/cmd/exchange/cli"
	"exchange/config"
	"exchange/core/money"
	"exchange/gateway/operator"
)

// Deposits of a file: first all lines are checked, then they are sent one after the other.

const (
	// maxDepositFile bounds the file, in bytes: it is read as a whole.
	maxDepositFile = 64 << 20
	// shownFaults bounds the lines in an error.
	shownFaults = 20
)

var depositColumns = []string{"account", "currency", "amount", "reference"}

// A depositRow is a line of the file.
type depositRow struct {
	line                         int
	account, currency, reference string
	amount                       money.Amount
}

// A lineFault is the fault of a line of the file.
type lineFault struct {
	Line  int    `json:"line"`
	Error string `json:"error"`
}

func (f lineFault) String() string { return fmt.Sprintf("line %d: %s", f.Line, f.Error) }

// faulty returns the error of the faulty lines; nil: none.
func faulty(file, done string, faults []lineFault) error {
	if len(faults) == 0 {
		return nil
	}
	slices.SortFunc(faults, func(a, b lineFault) int { return a.Line - b.Line })
	var text strings.Builder
	fmt.Fprintf(&text, "%s: %s", file, done)
	for _, f := range faults[:min(len(faults), shownFaults)] {
		fmt.Fprintf(&text, "\n  %s", f)
	}
	if n := len(faults) - shownFaults; n > 0 {
		fmt.Fprintf(&text, "\n  and %s further lines", config.Thousands(n))
	}
	return cli.WithExit(cli.ExitUsage, errors.New(text.String()))
}

// A depositsAnswer is the summary of a file's deposits.
type depositsAnswer struct {
	Lines    int           `json:"lines"`
	Credited int           `json:"credited"` // by this run
	Repeated int           `json:"repeated"` // credited before, under the same reference
	Refused  []lineFault   `json:"refused"`
	Totals   []creditTotal `json:"totals"` // of deposits credited by this run

	sums map[string]money.Balance
}

type creditTotal struct {
	Currency string        `json:"currency"`
	Amount   money.Balance `json:"amount"`
}

func (a *depositsAnswer) write(w *tabwriter.Writer) {
	fmt.Fprintf(w, "lines\t%s\ncredited now\t%s\ncredited before\t%s\nrefused\t%s\n",
		config.Thousands(a.Lines), config.Thousands(a.Credited), config.Thousands(a.Repeated),
		config.Thousands(len(a.Refused)))
	if len(a.Totals) == 0 {
		return
	}
	fmt.Fprintln(w, "\nCURRENCY\tCREDITED NOW")
	for _, t := range a.Totals {
		fmt.Fprintf(w, "%s\t%s\n", t.Currency, t.Amount)
	}
}

// depositFile credits the lines of a file. A reference is credited once, so repeating the file
// changes nothing.
func (p *Commands) depositFile(ctx context.Context, file string) error {
	text, err := cli.ReadOrdinary(file, maxDepositFile)
	if err != nil {
		return cli.WithExit(cli.ExitUsage, fmt.Errorf("%s cannot be read: %w", file, err))
	}
	rows, faults, err := readDeposits(text)
	if err != nil {
		return cli.WithExit(cli.ExitUsage, fmt.Errorf("%s: %w; nothing was credited", file, err))
	}
	if len(faults) == 0 {
		if faults, err = p.unknownNames(ctx, rows); err != nil {
			return err
		}
	}
	if err := faulty(file, "nothing was credited, because lines are wrong", faults); err != nil {
		return err
	}
	a := &depositsAnswer{Lines: len(rows), Refused: []lineFault{}, Totals: []creditTotal{},
		sums: map[string]money.Balance{}}
	stopped := p.creditAll(ctx, rows, a)
	for _, currency := range slices.Sorted(maps.Keys(a.sums)) {
		a.Totals = append(a.Totals, creditTotal{currency, a.sums[currency]})
	}
	if err := p.Print(a, a.write); err != nil {
		return fmt.Errorf("%s lines are credited; the same command again credits none twice: %w",
			config.Thousands(a.Credited+a.Repeated), err)
	}
	if stopped != nil {
		return stopped
	}
	return faulty(file, "the exchange has refused lines, and credited the others", a.Refused)
}

// readDeposits reads the lines of a file, and the faults of each.
func readDeposits(text []byte) (rows []depositRow, faults []lineFault, err error) {
	r := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(text, []byte("\ufeff"))))
	r.FieldsPerRecord, r.ReuseRecord = -1, true
	header, err := r.Read()
	if errors.Is(err, io.EOF) {
		err = errors.New("it is empty")
	}
	if err != nil {
		return nil, nil, err
	}
	at := map[string]int{}
	for i, name := range header {
		at[name] = i
	}
	for _, name := range depositColumns {
		if _, there := at[name]; !there || len(at) != len(depositColumns) ||
			len(header) != len(depositColumns) {
			return nil, nil, fmt.Errorf("its first line must have the columns %s, and has %.200q",
				strings.Join(depositColumns, ","), strings.Join(header, ","))
		}
	}
	seen := map[string]int{} // the line of each reference
	for {
		fields, err := r.Read()
		if errors.Is(err, io.EOF) {
			return rows, faults, nil
		}
		if err != nil { // names its line
			return nil, nil, err
		}
		line, _ := r.FieldPos(0)
		row, err := readDeposit(line, fields, at)
		if first := seen[row.reference]; err == nil && first != 0 {
			err = fmt.Errorf("the reference %q is that of line %d", row.reference, first)
		}
		if err != nil {
			faults = append(faults, lineFault{line, err.Error()})
			continue
		}
		seen[row.reference] = line
		rows = append(rows, row)
	}
}

// readDeposit checks the fields of a line.
func readDeposit(line int, fields []string, at map[string]int) (row depositRow, err error) {
	if len(fields) != len(depositColumns) {
		return row, fmt.Errorf("it has %d columns, and not %d", len(fields), len(depositColumns))
	}
	row = depositRow{line: line, account: fields[at["account"]], currency: fields[at["currency"]],
		reference: fields[at["reference"]]}
	if row.amount, err = readAmount(fields[at["amount"]]); err == nil {
		err = checkReference(row.reference)
	}
	return row, cmp.Or(checkAccount(row.account), checkCurrency(row.currency), err)
}

// unknownNames returns the lines whose account or currency does not exist.
func (p *Commands) unknownNames(ctx context.Context, rows []depositRow) (faults []lineFault,
	err error) {
	var totals struct{ Totals []struct{ Currency string } }
	raw, err := p.ask(ctx, "/operator/v1/totals", typeOf[operator.TotalsAnswer]())
	if err == nil {
		err = json.Unmarshal(raw, &totals)
	}
	if err != nil {
		return nil, err
	}
	var list operator.AccountsAnswer
	all := invocation{verb: accountVerbs[1]}
	if raw, err = p.askPages(ctx, all.begin()); err == nil {
		err = json.Unmarshal(raw, &list)
	}
	if err != nil {
		return nil, err
	}
	accounts, currencies := map[string]bool{}, map[string]bool{}
	for i := range list.Accounts {
		accounts[list.Accounts[i].Account] = true
	}
	for i := range totals.Totals {
		currencies[totals.Totals[i].Currency] = true
	}
	for i := range rows {
		switch r := &rows[i]; {
		case !accounts[r.account]:
			faults = append(faults, lineFault{r.line, fmt.Sprintf("there is no account %q",
				r.account)})
		case !currencies[r.currency]:
			faults = append(faults, lineFault{r.line, fmt.Sprintf("there is no currency %q",
				r.currency)})
		}
	}
	return faults, nil
}

// creditAll sends the lines, and continues after a refused one. An error is the reason why it
// stopped.
func (p *Commands) creditAll(ctx context.Context, rows []depositRow, a *depositsAnswer) error {
	g := p.Progress()
	defer g.Done()
	for i := range rows {
		r := &rows[i]
		raw, repeats, err := p.changeUntilKnown(ctx, "/operator/v1/deposits",
			operator.DepositRequest{Account: r.account, Currency: r.currency,
				Amount: operator.Number(r.amount.String()), Reference: r.reference},
			typeOf[operator.DepositAnswer](), repeatIt)
		d, _ := parseMembers(raw)
		switch {
		case err != nil && cli.ExitCode(err) == cli.ExitUsage:
			a.Refused = append(a.Refused, lineFault{r.line, err.Error()})
		case err != nil:
			return fmt.Errorf("line %d: %w; the lines after it were not sent. The same command "+
				"again credits no line twice", r.line, err)
		case string(d["repeated"]) == "true" && repeats == 0:
			a.Repeated++
		default: // also if an earlier try of this line credited it
			a.Credited++
			a.sums[r.currency] = a.sums[r.currency].Add(r.amount.Balance())
		}
		g.Show("%s of %s deposits", config.Thousands(i+1), config.Thousands(len(rows)))
	}
	return nil
}
