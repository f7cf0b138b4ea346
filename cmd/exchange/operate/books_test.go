package operate

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exchange/cmd/exchange/cli"
	"exchange/core/state"
	"exchange/prove/clitest"
)

const (
	balanced = `{"sequence":18446744073709551615,"replayed_from":0,"records":41,"accounts":3,"open_orders":2,"pending_withdraws":1,"projections_compared":2,` +
		`"projections_changed_meanwhile":1,"rows_compared":77,"rows_trimmed":3,"paused_ms":7,"totals":[{"currency":"BTC","deposited":100000000000000000.0000000000000001,"withdrawn":0,` +
		`"adjusted":0,"balances":100000000000000000.0000000000000001,"reserved":0.5},{"currency":"USDT","deposited":1,"withdrawn":1,"adjusted":0,"balances":0,"reserved":0}],"differences":[]}`
	balancedText = `sequence                       18446744073709551615
replayed from                  0
records                        41
accounts                       3
open orders                    2
pending withdraws              1
projections compared           2
projections changed meanwhile  1
rows compared                  77
rows trimmed                   3
paused ms                      7
differences                    -

totals:
CURRENCY  DEPOSITED                            WITHDRAWN  ADJUSTED  BALANCES                             RESERVED
BTC       100000000000000000.0000000000000001  0          0         100000000000000000.0000000000000001  0.5
USDT      1                                    1          0         0                                    0

The books balance: no difference was found.
`
	someProgress = `{"at":100,"of":400}` + "\n" + `{"at":300,"of":400}` + "\n"
)

func end(text string) string { return `{"end":` + text + "}\n" }

func TestAuditReportsCoverageAndDifferences(t *testing.T) {
	f := newFake(t, 200, someProgress+end(balanced))
	runLine(f.environ, "audit").Want(t, 0, balancedText, "")
	runLine(f.environ, "audit", "--json").Want(t, 0, balanced+"\n", "")
	here := must(os.Getwd())
	runLine(f.environ, "audit", "--archive", "some/../archive").Want(t, 0, balancedText, "")
	f.wantAsked(`POST /operator/v1/audit {}`, `POST /operator/v1/audit {}`,
		fmt.Sprintf(`POST /operator/v1/audit {"archive":%q}`, filepath.Join(here, "archive")))

	differs := strings.Replace(balanced, `"differences":[]`,
		`"differences":["account a, BTC: \u001b[2J1","there are more"]`, 1)
	f = newFake(t, 200, end(differs))
	text := strings.NewReplacer("\nThe books balance: no difference was found.\n", "",
		"differences                    -\n", "differences                    account a, BTC: "+
			"\ufffd[2J1\n                               there are more\n").Replace(balancedText)
	runLine(f.environ, "audit").Want(t, cli.ExitBroken, text,
		"exchange: the books do not balance: 2 differences\n")
	runLine(f.environ, "audit", "--json").Want(t, cli.ExitBroken, differs+"\n",
		`{"error":"the books do not balance: 2 differences"}`+"\n")
	f = newFake(t, 200, end(strings.Replace(differs, `,"there are more"`, "", 1)))
	if r := runLine(f.environ, "audit"); r.Code != cli.ExitBroken ||
		r.ErrOut != "exchange: the books do not balance: 1 difference\n" {
		t.Errorf("%+v", r)
	}
}

const (
	lineFee     = `{"time":"2026-01-02T03:04:05.000006Z","currency":"BTC","change":"-0.0000000000000001","balance":100000000000000000.0000000000000001,"cause":"fee","id":18446744073709551615,"pair":"BTC_USDT"}`
	lineDeposit = `{"time":"2026-01-01T03:04:05.000006Z","currency":"USDT","change":"5","balance":7,"cause":"deposit","id":3}`
	lineForward = `{"time":"","currency":"USDT","change":"2","balance":2,"cause":"brought forward","id":0}`
)

func TestAStatementIsShownAsItComes(t *testing.T) {
	f := newFake(t, 200, lineFee+"\n"+lineDeposit+"\n"+lineForward+"\n"+end("3"))
	runLine(f.environ, "statement", "alice").Want(t, 0,
		"TIME                         CURRENCY  CHANGE               BALANCE                     "+
			"         CAUSE            ID                    PAIR      REASON\n"+
			"2026-01-02T03:04:05.000006Z  BTC       -0.0000000000000001  "+
			"100000000000000000.0000000000000001  fee              18446744073709551615  "+
			"BTC_USDT  -\n"+
			"2026-01-01T03:04:05.000006Z  USDT      5                    7                       "+
			"             deposit          3                     -         -\n"+
			"-                            USDT      2                    2                       "+
			"             brought forward  0                     -         -\n", "")
	runLine(f.environ, "statement", "alice", "--json").Want(t, 0,
		lineFee+"\n"+lineDeposit+"\n"+lineForward+"\n", "")
	asked := `GET /operator/v1/statement?account=alice`
	f.wantAsked(asked, asked)

	f = newFake(t, 200, end("0"))
	runLine(f.environ, "statement", "bob", "--currency", "BTC").Want(t, 0,
		"TIME  CURRENCY  CHANGE  BALANCE  CAUSE  ID  PAIR  REASON\n", "")
	f.wantAsked(`GET /operator/v1/statement?account=bob&currency=BTC`)
	runLine(f.environ, "statement", "bob", "--json").Want(t, 0, "", "")

	n := 2*statementBlock + 1
	f = newFake(t, 200, strings.Repeat(lineDeposit+"\n", n)+end(fmt.Sprint(n)))
	if r := runLine(f.environ, "statement", "bob"); r.Code != 0 ||
		strings.Count(r.Out, "\n") != n+1 || strings.Count(r.Out, "TIME") != 1 {
		t.Errorf("of %d lines there are %d; %d %s", n, strings.Count(r.Out, "\n"), r.Code, r.ErrOut)
	}
}

const (
	trade1   = `{"id":1,"time":"2026-01-01T03:04:05.000006Z","pair":"BTC_USDT","type":"buy","price":50000,"amount":0.00000001,"taker_order":3,"maker_order":2,"taker":"alice","maker":"bob","taker_fee":0.0000000000000001,"maker_fee":0}`
	trade2   = `{"id":18446744073709551615,"time":"2026-01-02T03:04:05.000006Z","pair":"BTC_USDT","type":"sell","price":0.00000001,"amount":5,"taker_order":5,"maker_order":4,"taker":"a","maker":"a","taker_fee":0,"maker_fee":0}`
	tradeCSV = "id,time,pair,type,price,amount,taker_order,maker_order,taker,maker,taker_fee," +
		"maker_fee\n1,2026-01-01T03:04:05.000006Z,BTC_USDT,buy,50000,0.00000001,3,2,alice,bob," +
		"0.0000000000000001,0\n" +
		"18446744073709551615,2026-01-02T03:04:05.000006Z,BTC_USDT,sell,0.00000001,5,5,4,a,a,0,0\n"
)

func TestTradesAreExported(t *testing.T) {
	f := newFake(t, 200, trade1+"\n"+trade2+"\n"+end("2"))
	runLine(f.environ, words("export trades --pair BTC_USDT")...).Want(t, 0, tradeCSV, "")
	for _, line := range []string{"export trades --json --format csv",
		"export trades --format ndjson"} {
		want := map[bool]string{true: tradeCSV, false: trade1 + "\n" + trade2 + "\n"}
		runLine(f.environ, words(line)...).Want(t, 0, want[strings.HasSuffix(line, "csv")], "")
	}
	file := filepath.Join(t.TempDir(), "trades.csv")
	runLine(f.environ, append(words(
		"export trades --pair BTC_USDT --from 2026-01-01 --to 2026-01-02T05:00:00+01:00 --output"),
		file)...).
		Want(t, 0, "2 trades are in "+file+".\n", "")
	f.wantAsked(`GET /operator/v1/trades?pair=BTC_USDT`, `GET /operator/v1/trades`,
		`GET /operator/v1/trades`,
		`GET /operator/v1/trades?from=2026-01-01&pair=BTC_USDT&to=2026-01-02T05%3A00%3A00%2B01%3A00`)
	wantFile(t, file, tradeCSV)
	runLine(f.environ, "export", "trades", "--pair", "BTC_USDT", "--json", "--output", file).Want(t,
		0, fmt.Sprintf(`{"trades":2,"file":%q}`+"\n", file), "")
	wantFile(t, file, trade1+"\n"+trade2+"\n")

	f = newFake(t, 200, trade1+"\n"+end("1"))
	runLine(f.environ, "export", "trades", "--pair", "BTC_USDT", "--output", file).Want(t, 0,
		"1 trade is in "+file+".\n", "")
	f = newFake(t, 200, trade1+"\n") // it breaks off: the earlier file stays
	runLine(f.environ, "export", "trades", "--pair", "BTC_USDT", "--output", file).WantError(t,
		cli.ExitUnavailable, "last line is missing")
	wantFile(t, file, tradeCSV[:strings.Index(tradeCSV, "\n1844")+1])
	runLine(f.environ, "export", "trades", "--pair", "BTC_USDT", "--output",
		filepath.Join(file, "x")).WantError(t, cli.ExitUsage, file)
}

const (
	deposit1 = `{"deposit":1,"time":"2026-01-01T03:04:05.000006Z","account":"alice","currency":"BTC","amount":0.00000001,"reference":"a, \"b\""}`
	deposit2 = `{"deposit":2,"time":"2026-01-02T03:04:05.000006Z","account":"bob","currency":"USDT","amount":5,"reference":"c"}`
)

func TestEachKindOfRowIsExported(t *testing.T) {
	for _, x := range []struct{ line, asked, rows, csv string }{
		{
			"export orders --from 2026-01-01", "GET /operator/v1/export/orders?from=2026-01-01",
			`{"order":7,"pair":"BTC_USDT","type":"buy","price":50000,"amount":1,"remaining":0.5,"time":"T7","account":"alice","waiting":false,"status":"open"}` +
				"\n" +
				`{"order":3,"pair":"BTC_USDT","type":"sell","price":2,"amount":1,"remaining":1,"time":"T3","account":"bob","client_order_id":"=x","waiting":false,"order_type":"limit","time_in_force":"ioc","trigger_price":9.5,"status":"cancelled","closed":"T4","cancel_reason":"ioc"}` +
				"\n",
			"order,time,account,pair,type,status,price,amount,remaining,closed,cancel_reason," +
				"client_order_id,order_type,time_in_force,trigger_price\n" +
				"7,T7,alice,BTC_USDT,buy,open,50000,1,0.5,,,,,,\n" +
				"3,T3,bob,BTC_USDT,sell,cancelled,2,1,1,T4,ioc,=x,limit,ioc,9.5\n",
		},
		{
			"export withdraws --to 2026-01-03", "GET /operator/v1/export/withdraws?to=2026-01-03",
			withdrawal7 + "\n" +
				`{"withdraw":3,"account":"bob","currency":"USDT","amount":120,"status":40,"state":"refused","address":"T9","details":"Who, \"me\"?","time":"T","closed":"U","client_id":"w-1"}` +
				"\n",
			"withdraw,time,account,currency,amount,state,closed,address,details,client_id\n" +
				"7,2026-01-02T03:04:05.000006Z,alice,BTC,0.00000001,verified,,bc1q,,\n" +
				"3,T,bob,USDT,120,refused,U,T9,\"Who, \"\"me\"\"?\",w-1\n",
		},
	} {
		f := newFake(t, 200, x.rows+end("2"))
		runLine(f.environ, words(x.line)...).Want(t, 0, x.csv, "")
		runLine(f.environ, words(x.line+" --format ndjson")...).Want(t, 0, x.rows, "")
		runLine(f.environ, words(x.line+" --json --format csv")...).Want(t, 0, x.csv, "")
		f.wantAsked(x.asked, x.asked, x.asked)
	}
}

const (
	balanceRows = `{"sequence":41,"account":"alice","currency":"BTC","balance":0.5,"reserve":0.25,"available":0.25}` +
		"\n" +
		`{"sequence":41,"account":"bob","currency":"BTC","balance":100000000000000000.0000000000000001,"reserve":0,"available":100000000000000000.0000000000000001}` +
		"\n"
	balanceTotals = `[{"currency":"BTC","balances":100000000000000000.5000000000000001,"reserved":0.25},` +
		`{"currency":"USDT","balances":0,"reserved":0}]`
	balanceEnd = `{"rows":2,"sequence":41,"totals":` + balanceTotals + `}`
	balanceCSV = "sequence,account,currency,balance,reserve,available\n" +
		"41,alice,BTC,0.5,0.25,0.25\n" +
		"41,bob,BTC,100000000000000000.0000000000000001,0,100000000000000000.0000000000000001\n"
)

func TestExportedBalancesAddUpToTheSumsOfTheExchange(t *testing.T) {
	f := newFake(t, 200, balanceRows+end(balanceEnd))
	runLine(f.environ, "export", "balances").Want(t, 0, balanceCSV, "")
	runLine(f.environ, "export", "balances", "--json").Want(t, 0, balanceRows, "")
	file := filepath.Join(t.TempDir(), "balances.csv")
	runLine(f.environ, "export", "balances", "--output", file).Want(t, 0,
		"2 balances are in "+file+" at sequence 41.\n\n"+
			"CURRENCY  BALANCES                             RESERVED\n"+
			"BTC       100000000000000000.5000000000000001  0.25\n"+
			"USDT      0                                    0\n", "")
	wantFile(t, file, balanceCSV)
	runLine(f.environ, "export", "balances", "--json", "--format", "csv", "--output",
		file).Want(t, 0, fmt.Sprintf(`{"balances":2,"file":%q,"sequence":41,"totals":%s}`+"\n",
		file, balanceTotals), "")

	for _, x := range []struct {
		old, now string
		code     int
		want     string
	}{
		{`.5000000000000001,`, `.5000000000000002,`, cli.ExitBroken,
			"and the exchange has 100000000000000000.5000000000000002"},
		{`"reserved":0.25`, `"reserved":0`, cli.ExitBroken, "of which 0.25 are reserved"},
		{`{"currency":"BTC","balances":1`, `{"currency":"ETH","balances":1`, cli.ExitBroken,
			"the rows have 0 ETH"},
		{`"rows":2`, `"rows":3`, cli.ExitUnavailable,
			"2 balances were received, the exchange reports 3"},
		{`"balance":0.5`, `"balance":"x"`, cli.ExitUnavailable,
			"is not one of an exchange's operator"},
		{`"sequence":41,"totals"`, `"totals"`, cli.ExitUnavailable, "is not one of an exchange's"},
	} {
		text := balanceRows + end(balanceEnd)
		if strings.Count(text, x.old) != 1 {
			t.Fatalf("%s is there %d times", x.old, strings.Count(text, x.old))
		}
		f := newFake(t, 200, strings.Replace(text, x.old, x.now, 1))
		other := filepath.Join(t.TempDir(), "balances.csv")
		runLine(f.environ, "export", "balances", "--output", other).WantError(t, x.code, x.want)
		clitest.WantFiles(t, filepath.Dir(other))
	}
}

// wantFile wants a file that only its owner may read, with nothing beside it.
func wantFile(t *testing.T, file, content string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil || string(b) != content {
		t.Errorf("%s has\n%s\n(%v), want\n%s", file, b, err, content)
	}
	clitest.WantFiles(t, filepath.Dir(file), filepath.Base(file))
}

// The commands whose answers come line by line, each with a whole answer.
var streaming = []struct{ line, lines, end string }{
	{"audit", someProgress, balanced},
	{"statement alice", lineFee + "\n" + lineDeposit + "\n", "2"},
	{"export trades --pair BTC_USDT", trade1 + "\n" + trade2 + "\n", "2"},
	{"export deposits", deposit1 + "\n" + deposit2 + "\n", "2"},
}

func TestAnAnswerThatIsNotWholeIsAnError(t *testing.T) {
	for _, x := range streaming {
		whole := x.lines + end(x.end)
		if r := runLine(newFake(t, 200, whole).environ, words(x.line)...); r.Code != 0 {
			t.Fatalf("%s: %+v", x.line, r)
		}
		for _, y := range []struct {
			answer string
			code   int
			want   string
		}{
			{"", cli.ExitUnavailable, "is incomplete: its last line is missing"},
			{x.lines, cli.ExitUnavailable, "is incomplete: its last line is missing"},
			{strings.TrimSuffix(x.lines, "}\n"), cli.ExitUnavailable,
				"is incomplete: line 2 is cut off"},
			{whole[:len(whole)-3], cli.ExitUnavailable,
				"is incomplete: line 3 is cut off"},
			{whole + x.lines, cli.ExitUnavailable, "there is data after its end"},
			{x.lines + end("{}"), cli.ExitUnavailable, "its last line is not one of an exchange's"},
			{x.lines + end(`"x"`), cli.ExitUnavailable,
				"its last line is not one of an exchange's"},
			{x.lines + `{"error":""}` + "\n", cli.ExitUnavailable, "its last line has no error text"},
			{x.lines + `{"error":"an audit is running already"}` + "\n", cli.ExitUnavailable,
				"exchange: an audit is running already\n"},
			{x.lines + `{"error":"record 7 does not fit","damaged":true}` + "\n", cli.ExitBroken,
				"exchange: record 7 does not fit\n"},
			{"<html>\n", cli.ExitUnavailable,
				`the answer is not one of an exchange's operator listener: "<html>"`},
		} {
			r := runLine(newFake(t, 200, y.answer).environ, words(x.line)...)
			if r.Code != y.code || !strings.Contains(r.ErrOut, y.want) ||
				strings.Count(r.ErrOut, "\n") != 1 {
				t.Errorf("%s, answered %q: %d %s, want %d %s", x.line, y.answer, r.Code, r.ErrOut,
					y.code, y.want)
			}
			r = runLine(newFake(t, 200, y.answer).environ, words(x.line+" --json")...)
			if r.Code != y.code || !strings.HasPrefix(r.ErrOut, `{"error":`) {
				t.Errorf("%s --json, answered %q: %d %s", x.line, y.answer, r.Code, r.ErrOut)
			}
		}
		f := newFake(t, 200, "")
		f.before = func(w http.ResponseWriter) error { // a connection that breaks
			w.Header().Set("Content-Length", "100000")
			_, _ = io.WriteString(w, x.lines)
			_ = http.NewResponseController(w).Flush()
			return hangUp(w)
		}
		if r := runLine(f.environ, words(x.line)...); r.Code != cli.ExitUnavailable ||
			!strings.Contains(r.ErrOut, "is incomplete: unexpected EOF") {
			t.Errorf("%s: %+v", x.line, r)
		}
	}
	for _, x := range streaming[1:] {
		r := runLine(newFake(t, 200, x.lines+end("3")).environ, words(x.line)...)
		if r.Code != cli.ExitUnavailable || !strings.Contains(r.ErrOut,
			"the exchange reports 3") {
			t.Errorf("%s with a line missing: %+v", x.line, r)
		}
		r = runLine(newFake(t, 200, `{}`+"\n"+end("1")).environ, words(x.line)...)
		if r.Code != cli.ExitUnavailable ||
			!strings.Contains(r.ErrOut, "is not one of an exchange's operator listener") {
			t.Errorf("%s with an empty line: %+v", x.line, r)
		}
	}
}

func TestATerminalShowsTheProgress(t *testing.T) {
	old := cli.IsTerminal
	t.Cleanup(func() { cli.IsTerminal = old })
	if cli.IsTerminal(&bytes.Buffer{}) {
		t.Error("a buffer is a terminal")
	}
	for _, name := range []string{os.DevNull, filepath.Join(t.TempDir(), "file")} {
		f := must(os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o600))
		defer f.Close()
		if cli.IsTerminal(f) {
			t.Errorf("%s is a terminal", name)
		}
	}
	cli.IsTerminal = func(io.Writer) bool { return true }
	dir := t.TempDir()
	for _, x := range []struct{ line, answer, want string }{
		{"audit", someProgress + end(balanced), "\rreplayed 100 of 400 records (25 %)\r"},
		{"export trades --pair BTC_USDT --output " + dir + "/trades.csv",
			trade1 + "\n" + trade2 + "\n" + end("2"), "\r1 trades\r"},
		// it would stand between the trades
		{"export trades --pair BTC_USDT", trade1 + "\n" + end("1"), ""},
		{"backup " + dir, string(clitest.Backup(t, state.New(), "alice")), "\r0.0 MB\r"},
	} {
		f := newFake(t, 200, x.answer)
		r := runLine(f.environ, words(x.line)...)
		shown, clear, _ := strings.Cut(r.ErrOut, x.want)
		if r.Code != 0 || shown != "" ||
			strings.Trim(clear, " ") != strings.Repeat("\r", min(len(x.want), 1)) {
			t.Errorf("%s: %d %q, want %q and its end", x.line, r.Code, r.ErrOut, x.want)
		}
		if r = runLine(f.environ, words(x.line+" --json")...); r.Code != 0 || r.ErrOut != "" {
			t.Errorf("%s --json: %+v", x.line, r)
		}
	}
}

func TestABackupGetsItsNameWhenItIsVerified(t *testing.T) {
	good := clitest.Backup(t, state.New(), "alice", "bob")
	above := filepath.Join(t.TempDir(), "a")
	dir := filepath.Join(above, "b")
	file := filepath.Join(dir, "exchange-4.backup")
	f := newFake(t, 200, string(good))
	runLine(f.environ, "backup", dir).WantError(t, cli.ExitUsage, "the folder "+above)
	if _, err := os.Stat(above); err == nil {
		t.Error("the folder above was made")
	}
	f.wantAsked()
	worked(t, os.Mkdir(above, 0o700))
	text := fmt.Sprintf(
		"backup    %s\nsequence  4\naccounts  2\nrows      1\nbytes     %d\n\nKeep the server's "+
			"secret key (exchange.key) with it, but in another place: "+
			"without the key the API secrets in\nthe backup are lost, and with both anybody can "+
			"use them.\n", file, len(good))
	runLine(f.environ, "backup", dir).Want(t, 0, text, "")
	clitest.WantFiles(t, dir, "exchange-4.backup")
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder: %v, %v", info, err)
	}
	if b, err := os.ReadFile(file); err != nil || !bytes.Equal(b, good) {
		t.Errorf("the file is another: %v", err)
	}
	runLine(f.environ, "backup", dir, "--json").Want(t, 0,
		fmt.Sprintf(`{"file":%q,"sequence":4,"accounts":2,"rows":1,"bytes":%d}`+"\n", file,
			len(good)), "")
	f.wantAsked("GET /operator/v1/backup", "GET /operator/v1/backup")

	dir = t.TempDir()
	for _, bad := range []string{"", "<html>", string(good[:len(good)-1]),
		string(good[:len(good)/2]), string(good) + "x"} {
		f = newFake(t, 200, bad)
		runLine(f.environ, "backup", dir).WantError(t, cli.ExitUnavailable,
			"is incomplete and was discarded: the backup is damaged")
	}
	f.before = func(w http.ResponseWriter) error {
		w.Header().Set("Content-Length", fmt.Sprint(len(good)))
		_, _ = w.Write(good[:len(good)-10])
		_ = http.NewResponseController(w).Flush()
		return hangUp(w)
	}
	runLine(f.environ, "backup", dir).WantError(t, cli.ExitUnavailable,
		"is incomplete: unexpected EOF")
	clitest.WantFiles(t, dir)
	notFolder := filepath.Join(dir, "file")
	worked(t, os.WriteFile(notFolder, nil, 0o600))
	runLine(f.environ, "backup", notFolder).WantError(t, cli.ExitUsage,
		"the folder for the backup cannot be made")
}
