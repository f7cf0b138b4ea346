//go:build prove

package processes

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/shopspring/decimal"

	"exchange/persistence/redistest"
	"exchange/prove/exchangetest"
)

// Operators call the API as their clients would, credit a file of deposits, and export all
// resulting rows.
func TestOperatorsTools(t *testing.T) {
	s := exchangetest.New(t, redistest.Start(t).URL())
	o := &clerk{world: &world{t: t, s: s}, dir: t.TempDir()}
	o.s.Start()
	o.opens()
	o.credits()
	o.trades()
	o.exports()
	o.balances()
	clean(t, o.s)
}

// A clerk is an operator with files.
type clerk struct {
	*world
	dir string
}

func (o *clerk) file(name, text string) string {
	o.t.Helper()
	name = filepath.Join(o.dir, name)
	succeeds(o.t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

func (o *clerk) opens() {
	o.t.Helper()
	keys := ""
	for _, name := range []string{"alice", "bob"} {
		o.run(0, "", "account", "create", name, "--email", name+"@example.org")
		keys += o.run(0, "", "key", "create", name, "--permissions", "read,trade,withdraw",
			"--json")
	}
	o.file("keys", keys)
}

// call sends a request of the API that is answered with a status.
func (o *clerk) call(status int, account, path string, fields ...string) string {
	o.t.Helper()
	args := append([]string{"call", account, path, "--json", "--address", o.s.Listen,
		"--key-file", filepath.Join(o.dir, "keys")}, fields...)
	out, errOut, code := o.s.Command(args...)
	if want := fmt.Sprintf(`{"status":%d,`, status); !strings.HasPrefix(out, want) ||
		(code == 0) != (status/100 == 2) || (errOut == "") != (code == 0) {
		o.t.Fatalf("%v: %d %s %s, want %s", args, code, out, errOut, want)
	}
	return out
}

func (o *clerk) credits() {
	o.t.Helper()
	const head = "account,currency,amount,reference\n"
	file := o.file("deposits.csv", head+"alice,BTC,10,r1\nbob,USDT,5000,r2\nalice,BTC,0.5,r3\n")
	wrong := o.file("wrong.csv", head+"bob,USDT,1,r4\ncarol,USDT,1,r5\n")
	o.run(64, `line 3: there is no account "carol"`, "deposit", "--csv", wrong)
	for _, want := range []string{`{"lines":3,"credited":3,"repeated":0,"refused":[],"totals":[` +
		`{"currency":"BTC","amount":10.5},{"currency":"USDT","amount":5000}]}`,
		`{"lines":3,"credited":0,"repeated":3,"refused":[],"totals":[]}`} {
		if got := o.run(0, "", "deposit", "--csv", file, "--json"); got != want+"\n" {
			o.t.Fatalf("got %s, want %s", got, want)
		}
	}
	file = o.file("other.csv", head+"bob,USDT,6,r2\nbob,BTC,1,r6\n")
	o.run(64, `line 2: reference "r2" belongs to deposit 2, which is another one`, "deposit",
		"--csv", file)
}

var oid = regexp.MustCompile(`"oid":(\d+)`)

func (o *clerk) trades() {
	o.t.Helper()
	order := func(status int, account, side, amount, price string, more ...string) (id string) {
		o.t.Helper()
		out := o.call(status, account, "/api/v1/order/", append([]string{"pair=BTC_USDT",
			"type=" + side, "amount=" + amount, "price=" + price}, more...)...)
		if m := oid.FindStringSubmatch(out); m != nil {
			return m[1]
		}
		return ""
	}
	order(201, "alice", "sell", "1", "100", "client_order_id=a-1")
	order(201, "bob", "buy", "0.25", "100")
	order(201, "bob", "buy", "0.25", "100")
	order(201, "bob", "buy", "2", "100", "time_in_force=ioc")
	order(400, "bob", "buy", "1000", "100")
	id := order(201, "alice", "sell", "1", "110")
	order(201, "alice", "sell", "1", "120")
	o.call(200, "alice", "/api/v1/order-cancel/", "order="+id)
	o.call(201, "alice", "/api/v1/withdraw/", "currency=BTC", "amount=2", "address=bc1q")
	out := o.call(200, "alice", "/api/v1/orders/own/?status=1", "pair=BTC_USDT")
	if strings.Count(out, `"pair":`) != 1 {
		o.t.Errorf("alice has not one order: %s", out)
	}
	if out := o.call(200, "-", "/api/v1/exchanges/", "pair=BTC_USDT"); strings.Count(out,
		`"pair":`) != 3 {
		o.t.Errorf("there are not three trades: %s", out)
	}
}

// exported returns the rows of an export, without the header. A file and standard output must be
// equal.
func (o *clerk) exported(what string, columns ...string) (rows [][]string) {
	o.t.Helper()
	file := filepath.Join(o.dir, what+".csv")
	o.run(0, "", "export", what, "--output", file)
	text, err := os.ReadFile(file)
	if err != nil || string(text) != o.run(0, "", "export", what) {
		o.t.Fatalf("the file is not what is printed: %v, %s", err, text)
	}
	all, err := csv.NewReader(strings.NewReader(string(text))).ReadAll()
	if err != nil || len(all) == 0 {
		o.t.Fatalf("%v: %s", err, text)
	}
	lines := strings.Split(strings.TrimSpace(o.run(0, "", "export", what, "--format",
		"ndjson")), "\n")
	if len(lines) != len(all)-1 {
		o.t.Errorf("%s: %d rows of CSV, and %d lines of JSON", what, len(all)-1, len(lines))
	}
	for _, row := range all[1:] {
		var some []string
		for _, c := range columns {
			i := slices.Index(all[0], c)
			if i < 0 {
				o.t.Fatalf("%s has no column %s", what, c)
			}
			some = append(some, row[i])
		}
		rows = append(rows, some)
	}
	return rows
}

func (o *clerk) exports() {
	o.t.Helper()
	for _, x := range []struct {
		what    string
		columns []string
		want    string
	}{
		{"trades", []string{"id", "pair", "type", "amount", "taker", "maker"},
			"1 BTC_USDT buy 0.25 bob alice\n2 BTC_USDT buy 0.25 bob alice\n" +
				"3 BTC_USDT buy 0.5 bob alice\n"},
		{"orders", []string{"account", "type", "status", "price", "amount", "remaining",
			"cancel_reason", "client_order_id"},
			"alice sell open 120 1 1  \nalice sell cancelled 110 1 1  \n" +
				"alice sell done 100 1 0  a-1\n" +
				"bob buy cancelled 100 2 1.5 ioc \nbob buy done 100 0.25 0  \n" +
				"bob buy done 100 0.25 0  \n"},
		{"deposits", []string{"deposit", "account", "currency", "amount", "reference"},
			"3 alice BTC 0.5 r3\n1 alice BTC 10 r1\n4 bob BTC 1 r6\n2 bob USDT 5000 r2\n"},
		{"withdraws", []string{"withdraw", "account", "amount", "state", "closed", "address"},
			"1 alice 2 new  bc1q\n"},
	} {
		var got strings.Builder
		for _, row := range o.exported(x.what, x.columns...) {
			fmt.Fprintln(&got, strings.Join(row, " "))
		}
		if got.String() != x.want {
			o.t.Errorf("%s:\n%swant\n%s", x.what, got.String(), x.want)
		}
	}
	o.run(0, "", "export", "orders", "--to", "2020-01-01")
}

// balances expects the sums of the exported balances to equal an audit at the same sequence.
func (o *clerk) balances() {
	o.t.Helper()
	type totals struct {
		Sequence uint64
		Totals   []struct {
			Currency string
			Balances decimal.Decimal
		}
	}
	read := func(text string) (a totals) {
		o.t.Helper()
		if err := json.Unmarshal([]byte(text), &a); err != nil || len(a.Totals) != 2 {
			o.t.Fatalf("%s: %v", text, err)
		}
		return a
	}
	file := filepath.Join(o.dir, "balances.csv")
	var export, audit totals
	exchangetest.Eventually(o.t, "an export and an audit are of one sequence", func() bool {
		export = read(o.run(0, "", "export", "balances", "--format", "csv", "--json", "--output",
			file))
		audit = read(o.run(0, "", "audit", "--json"))
		return export.Sequence == audit.Sequence
	})
	sums := map[string]decimal.Decimal{}
	for _, row := range o.exported("balances", "currency", "balance", "sequence") {
		sums[row[0]] = sums[row[0]].Add(decimal.RequireFromString(row[1]))
		if row[2] != fmt.Sprint(export.Sequence) {
			o.t.Errorf("a row is of sequence %s, want %d", row[2], export.Sequence)
		}
	}
	for i, t := range audit.Totals {
		if !t.Balances.Equal(sums[t.Currency]) || !t.Balances.Equal(export.Totals[i].Balances) ||
			t.Balances.IsZero() {
			o.t.Errorf("%s: the audit has %s, the rows %s, the export's sums %s", t.Currency,
				t.Balances, sums[t.Currency], export.Totals[i].Balances)
		}
	}
}
