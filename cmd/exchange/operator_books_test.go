package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"exchange/actors/seal"
	"exchange/core/event"
	"exchange/core/state"
	"exchange/persistence"
	"exchange/persistence/backup"
	"exchange/persistence/memory"
	"exchange/persistence/pebble"
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

func TestAuditSaysWhatWasComparedAndWhatDiffers(t *testing.T) {
	f := newFake(t, 200, someProgress+end(balanced))
	runLine(f.environ, "audit").want(t, 0, balancedText, "")
	runLine(f.environ, "audit", "--json").want(t, 0, balanced+"\n", "")
	here := must(os.Getwd())
	runLine(f.environ, "audit", "--archive", "some/../archive").want(t, 0, balancedText, "")
	f.wantAsked(`POST /operator/v1/audit {}`, `POST /operator/v1/audit {}`,
		fmt.Sprintf(`POST /operator/v1/audit {"archive":%q}`, filepath.Join(here, "archive")))

	differs := strings.Replace(balanced, `"differences":[]`,
		`"differences":["account a, BTC: \u001b[2J1","there are more"]`, 1)
	f = newFake(t, 200, end(differs))
	text := strings.NewReplacer("\nThe books balance: no difference was found.\n", "",
		"differences                    -\n", "differences                    account a, BTC: "+
			"\ufffd[2J1\n                               there are more\n").Replace(balancedText)
	runLine(f.environ, "audit").want(t, exitBroken, text,
		"exchange: the books do not balance: 2 differences\n")
	runLine(f.environ, "audit", "--json").want(t, exitBroken, differs+"\n",
		`{"error":"the books do not balance: 2 differences"}`+"\n")
	f = newFake(t, 200, end(strings.Replace(differs, `,"there are more"`, "", 1)))
	if r := runLine(f.environ, "audit"); r.code != exitBroken ||
		r.errOut != "exchange: the books do not balance: 1 difference\n" {
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
	runLine(f.environ, "statement", "alice").want(t, 0,
		"TIME                         CURRENCY  CHANGE               BALANCE                     "+
			"         CAUSE            ID                    PAIR      REASON\n"+
			"2026-01-02T03:04:05.000006Z  BTC       -0.0000000000000001  "+
			"100000000000000000.0000000000000001  fee              18446744073709551615  "+
			"BTC_USDT  -\n"+
			"2026-01-01T03:04:05.000006Z  USDT      5                    7                       "+
			"             deposit          3                     -         -\n"+
			"-                            USDT      2                    2                       "+
			"             brought forward  0                     -         -\n", "")
	runLine(f.environ, "statement", "alice", "--json").want(t, 0,
		lineFee+"\n"+lineDeposit+"\n"+lineForward+"\n", "")
	asked := `GET /operator/v1/statement?account=alice`
	f.wantAsked(asked, asked)

	f = newFake(t, 200, end("0"))
	runLine(f.environ, "statement", "bob", "--currency", "BTC").want(t, 0,
		"TIME  CURRENCY  CHANGE  BALANCE  CAUSE  ID  PAIR  REASON\n", "")
	f.wantAsked(`GET /operator/v1/statement?account=bob&currency=BTC`)
	runLine(f.environ, "statement", "bob", "--json").want(t, 0, "", "")

	n := 2*statementBlock + 1
	f = newFake(t, 200, strings.Repeat(lineDeposit+"\n", n)+end(fmt.Sprint(n)))
	if r := runLine(f.environ, "statement", "bob"); r.code != 0 ||
		strings.Count(r.out, "\n") != n+1 || strings.Count(r.out, "TIME") != 1 {
		t.Errorf("of %d lines there are %d; %d %s", n, strings.Count(r.out, "\n"), r.code, r.errOut)
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
	runLine(f.environ, words("export trades --pair BTC_USDT")...).want(t, 0, tradeCSV, "")
	for _, line := range []string{"export trades --json --format csv",
		"export trades --format ndjson"} {
		want := map[bool]string{true: tradeCSV, false: trade1 + "\n" + trade2 + "\n"}
		runLine(f.environ, words(line)...).want(t, 0, want[strings.HasSuffix(line, "csv")], "")
	}
	file := filepath.Join(t.TempDir(), "trades.csv")
	runLine(f.environ, append(words(
		"export trades --pair BTC_USDT --from 2026-01-01 --to 2026-01-02T05:00:00+01:00 --output"),
		file)...).
		want(t, 0, "2 trades are in "+file+".\n", "")
	f.wantAsked(`GET /operator/v1/trades?pair=BTC_USDT`, `GET /operator/v1/trades`,
		`GET /operator/v1/trades`,
		`GET /operator/v1/trades?from=2026-01-01&pair=BTC_USDT&to=2026-01-02T05%3A00%3A00%2B01%3A00`)
	wantFile(t, file, tradeCSV)
	runLine(f.environ, "export", "trades", "--pair", "BTC_USDT", "--json", "--output", file).want(t,
		0, fmt.Sprintf(`{"trades":2,"file":%q}`+"\n", file), "")
	wantFile(t, file, trade1+"\n"+trade2+"\n")

	f = newFake(t, 200, trade1+"\n"+end("1"))
	runLine(f.environ, "export", "trades", "--pair", "BTC_USDT", "--output", file).want(t, 0,
		"1 trade is in "+file+".\n", "")
	f = newFake(t, 200, trade1+"\n") // it breaks off: the earlier file stays
	runLine(f.environ, "export", "trades", "--pair", "BTC_USDT", "--output", file).wantError(t,
		exitUnavailable, "last line is missing")
	wantFile(t, file, tradeCSV[:strings.Index(tradeCSV, "\n1844")+1])
	runLine(f.environ, "export", "trades", "--pair", "BTC_USDT", "--output",
		filepath.Join(file, "x")).wantError(t, exitUsage, file)
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
		runLine(f.environ, words(x.line)...).want(t, 0, x.csv, "")
		runLine(f.environ, words(x.line+" --format ndjson")...).want(t, 0, x.rows, "")
		runLine(f.environ, words(x.line+" --json --format csv")...).want(t, 0, x.csv, "")
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
	runLine(f.environ, "export", "balances").want(t, 0, balanceCSV, "")
	runLine(f.environ, "export", "balances", "--json").want(t, 0, balanceRows, "")
	file := filepath.Join(t.TempDir(), "balances.csv")
	runLine(f.environ, "export", "balances", "--output", file).want(t, 0,
		"2 balances are in "+file+" at sequence 41.\n\n"+
			"CURRENCY  BALANCES                             RESERVED\n"+
			"BTC       100000000000000000.5000000000000001  0.25\n"+
			"USDT      0                                    0\n", "")
	wantFile(t, file, balanceCSV)
	runLine(f.environ, "export", "balances", "--json", "--format", "csv", "--output",
		file).want(t, 0, fmt.Sprintf(`{"balances":2,"file":%q,"sequence":41,"totals":%s}`+"\n",
		file, balanceTotals), "")

	for _, x := range []struct {
		old, now string
		code     int
		want     string
	}{
		{`.5000000000000001,`, `.5000000000000002,`, exitBroken,
			"and the exchange has 100000000000000000.5000000000000002"},
		{`"reserved":0.25`, `"reserved":0`, exitBroken, "of which 0.25 are reserved"},
		{`{"currency":"BTC","balances":1`, `{"currency":"ETH","balances":1`, exitBroken,
			"the rows have 0 ETH"},
		{`"rows":2`, `"rows":3`, exitUnavailable, "2 balances have come, the exchange speaks of 3"},
		{`"balance":0.5`, `"balance":"x"`, exitUnavailable, "is not one of an exchange's operator"},
		{`"sequence":41,"totals"`, `"totals"`, exitUnavailable, "is not one of an exchange's"},
	} {
		text := balanceRows + end(balanceEnd)
		if strings.Count(text, x.old) != 1 {
			t.Fatalf("%s is there %d times", x.old, strings.Count(text, x.old))
		}
		f := newFake(t, 200, strings.Replace(text, x.old, x.now, 1))
		other := filepath.Join(t.TempDir(), "balances.csv")
		runLine(f.environ, "export", "balances", "--output", other).wantError(t, x.code, x.want)
		wantOnly(t, filepath.Dir(other))
	}
}

// wantFile wants a file that only its owner may read, with nothing beside it.
func wantFile(t *testing.T, file, content string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil || string(b) != content {
		t.Errorf("%s has\n%s\n(%v), want\n%s", file, b, err, content)
	}
	wantOnly(t, filepath.Dir(file), filepath.Base(file))
}

func wantOnly(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
		if info, err := e.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", e.Name(), info.Mode(), err)
		}
	}
	if strings.Join(got, " ") != strings.Join(names, " ") {
		t.Errorf("there are %v, want %v", got, names)
	}
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
		if r := runLine(newFake(t, 200, whole).environ, words(x.line)...); r.code != 0 {
			t.Fatalf("%s: %+v", x.line, r)
		}
		for _, y := range []struct {
			answer string
			code   int
			want   string
		}{
			{"", exitUnavailable, "broke off and is not whole: its last line is missing"},
			{x.lines, exitUnavailable, "broke off and is not whole: its last line is missing"},
			{strings.TrimSuffix(x.lines, "}\n"), exitUnavailable,
				"broke off and is not whole: line 2 is cut off"},
			{whole[:len(whole)-3], exitUnavailable,
				"broke off and is not whole: line 3 is cut off"},
			{whole + x.lines, exitUnavailable, "there is more behind its end"},
			{x.lines + end("{}"), exitUnavailable, "its last line is not one of an exchange's"},
			{x.lines + end(`"x"`), exitUnavailable, "its last line is not one of an exchange's"},
			{x.lines + `{"error":""}` + "\n", exitUnavailable, "its last line says nothing"},
			{x.lines + `{"error":"an audit is running already"}` + "\n", exitUnavailable,
				"exchange: an audit is running already\n"},
			{x.lines + `{"error":"record 7 does not fit","damaged":true}` + "\n", exitBroken,
				"exchange: record 7 does not fit\n"},
			{"<html>\n", exitUnavailable,
				`the answer is not one of an exchange's operator listener: "<html>"`},
		} {
			r := runLine(newFake(t, 200, y.answer).environ, words(x.line)...)
			if r.code != y.code || !strings.Contains(r.errOut, y.want) ||
				strings.Count(r.errOut, "\n") != 1 {
				t.Errorf("%s, answered %q: %d %s, want %d %s", x.line, y.answer, r.code, r.errOut,
					y.code, y.want)
			}
			r = runLine(newFake(t, 200, y.answer).environ, words(x.line+" --json")...)
			if r.code != y.code || !strings.HasPrefix(r.errOut, `{"error":`) {
				t.Errorf("%s --json, answered %q: %d %s", x.line, y.answer, r.code, r.errOut)
			}
		}
		f := newFake(t, 200, "")
		f.before = func(w http.ResponseWriter) error { // a connection that breaks
			w.Header().Set("Content-Length", "100000")
			_, _ = io.WriteString(w, x.lines)
			_ = http.NewResponseController(w).Flush()
			return hangUp(w)
		}
		if r := runLine(f.environ, words(x.line)...); r.code != exitUnavailable ||
			!strings.Contains(r.errOut, "broke off and is not whole: unexpected EOF") {
			t.Errorf("%s: %+v", x.line, r)
		}
	}
	for _, x := range streaming[1:] {
		r := runLine(newFake(t, 200, x.lines+end("3")).environ, words(x.line)...)
		if r.code != exitUnavailable || !strings.Contains(r.errOut, "the exchange speaks of 3") {
			t.Errorf("%s with a line missing: %+v", x.line, r)
		}
		r = runLine(newFake(t, 200, `{}`+"\n"+end("1")).environ, words(x.line)...)
		if r.code != exitUnavailable ||
			!strings.Contains(r.errOut, "is not one of an exchange's operator listener") {
			t.Errorf("%s with an empty line: %+v", x.line, r)
		}
	}
}

func TestATerminalShowsTheProgress(t *testing.T) {
	old := isTerminal
	t.Cleanup(func() { isTerminal = old })
	if isTerminal(&bytes.Buffer{}) {
		t.Error("a buffer is a terminal")
	}
	for _, name := range []string{os.DevNull, filepath.Join(t.TempDir(), "file")} {
		f := must(os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o600))
		defer f.Close()
		if isTerminal(f) {
			t.Errorf("%s is a terminal", name)
		}
	}
	isTerminal = func(io.Writer) bool { return true }
	dir := t.TempDir()
	for _, x := range []struct{ line, answer, want string }{
		{"audit", someProgress + end(balanced), "\rreplayed 100 of 400 records (25 %)\r"},
		{"export trades --pair BTC_USDT --output " + dir + "/trades.csv",
			trade1 + "\n" + trade2 + "\n" + end("2"), "\r1 trades\r"},
		// it would stand between the trades
		{"export trades --pair BTC_USDT", trade1 + "\n" + end("1"), ""},
		{"backup " + dir, string(testBackup(t, "alice")), "\r0.0 MB\r"},
	} {
		f := newFake(t, 200, x.answer)
		r := runLine(f.environ, words(x.line)...)
		shown, clear, _ := strings.Cut(r.errOut, x.want)
		if r.code != 0 || shown != "" ||
			strings.Trim(clear, " ") != strings.Repeat("\r", min(len(x.want), 1)) {
			t.Errorf("%s: %d %q, want %q and its end", x.line, r.code, r.errOut, x.want)
		}
		if r = runLine(f.environ, words(x.line+" --json")...); r.code != 0 || r.errOut != "" {
			t.Errorf("%s --json: %+v", x.line, r)
		}
	}
}

// withZeroKey is the environment of a command that has the key of zeroKey.
var withZeroKey = "EXCHANGE_SECRET_KEY=" + strings.Repeat("00", seal.KeyBytes)

// zeroKey authenticates the backups of these tests.
func zeroKey() *seal.Sealer { return must(seal.New(make([]byte, seal.KeyBytes))) }

// testBackup returns a backup of an exchange with these accounts and a key.
func testBackup(t *testing.T, accounts ...string) []byte {
	t.Helper()
	return backupOf(t, state.New(), accounts...)
}

// backupOf is testBackup of an exchange that begins with a state.
func backupOf(t *testing.T, s *state.State, accounts ...string) []byte {
	t.Helper()
	store, e := memory.Open(memory.NewDisk(), persistence.Retention{}), state.Effects{}
	for i, name := range accounts {
		id := uint32(i + 1)
		worked(t, s.Apply(
			&event.Record{Kind: event.KindAccount, Account: event.Account{ID: id, Name: name}}, &e))
		worked(t, s.Apply(&event.Record{Kind: event.KindKey,
			Key: event.Key{Number: id, Account: id, Key: "key of " + name, SealedBy: 5,
				Sealed: []byte("x")}}, &e))
	}
	token, _, err := store.Acquire(t.Context(), persistence.Claim{Owner: "test"})
	worked(t, err)
	worked(t, store.Apply(t.Context(), token, 0, s.Seq(),
		&persistence.Writes{Actions: []persistence.Action{{Seq: 1, Operator: "a", What: "b"}}}))
	var b bytes.Buffer
	worked(t, backup.Write(t.Context(), &b, store, s.AppendTo(nil), zeroKey(), func(int) {}))
	return b.Bytes()
}

func TestABackupGetsItsNameWhenItIsVerified(t *testing.T) {
	good := testBackup(t, "alice", "bob")
	above := filepath.Join(t.TempDir(), "a")
	dir := filepath.Join(above, "b")
	file := filepath.Join(dir, "exchange-4.backup")
	f := newFake(t, 200, string(good))
	runLine(f.environ, "backup", dir).wantError(t, exitUsage, "there is no folder "+above)
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
	runLine(f.environ, "backup", dir).want(t, 0, text, "")
	wantOnly(t, dir, "exchange-4.backup")
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder: %v, %v", info, err)
	}
	if b, err := os.ReadFile(file); err != nil || !bytes.Equal(b, good) {
		t.Errorf("the file is another: %v", err)
	}
	runLine(f.environ, "backup", dir, "--json").want(t, 0,
		fmt.Sprintf(`{"file":%q,"sequence":4,"accounts":2,"rows":1,"bytes":%d}`+"\n", file,
			len(good)), "")
	f.wantAsked("GET /operator/v1/backup", "GET /operator/v1/backup")

	dir = t.TempDir()
	for _, bad := range []string{"", "<html>", string(good[:len(good)-1]),
		string(good[:len(good)/2]), string(good) + "x"} {
		f = newFake(t, 200, bad)
		runLine(f.environ, "backup", dir).wantError(t, exitUnavailable,
			"is not whole and is thrown away: the backup is damaged")
	}
	f.before = func(w http.ResponseWriter) error {
		w.Header().Set("Content-Length", fmt.Sprint(len(good)))
		_, _ = w.Write(good[:len(good)-10])
		_ = http.NewResponseController(w).Flush()
		return hangUp(w)
	}
	runLine(f.environ, "backup", dir).wantError(t, exitUnavailable,
		"broke off and is not whole: unexpected EOF")
	wantOnly(t, dir)
	notFolder := filepath.Join(dir, "file")
	worked(t, os.WriteFile(notFolder, nil, 0o600))
	runLine(f.environ, "backup", notFolder).wantError(t, exitUsage,
		"the folder for the backup cannot be made")
}

func TestARestoreTakesTheNewestBackupIntoAnEmptyStore(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, b []byte) string {
		t.Helper()
		name = filepath.Join(dir, name)
		worked(t, os.WriteFile(name, b, 0o600))
		return name
	}
	before := state.New() // a restore, in other histories
	for id := range byte(2) {
		if err := before.Apply(&event.Record{Kind: event.KindHistory,
			History: event.HistoryID{1 + id}}, new(state.Effects)); err != nil {
			t.Fatal(err)
		}
	}
	older := write("exchange-6.backup", backupOf(t, before, "alice", "bob"))
	newest := write("exchange-4.backup", testBackup(t, "alice", "bob"))
	write("notes.txt", []byte("not ours"))
	write("exchange-04.backup", []byte("not ours"))
	store, data := filepath.Join(t.TempDir(), "store"), t.TempDir()
	environ := []string{"EXCHANGE_STORE=pebble:" + store, "EXCHANGE_DATA=" + data, withZeroKey}
	restore := func(args ...string) result {
		return runLine(environ, append([]string{"restore", "--demo"}, args...)...)
	}
	r := restore(dir)
	want := regexp.MustCompile(`^restored +pebble:` + store + `
from +` + newest + `, the newest of 2
taken +2\d\d\d-\d\d-\d\dT.*Z
sequence +4
accounts +2
rows +1
authenticated +yes: written under the server's key, and unchanged; that it is the newest backup nothing proves

Next:
- tell your clients: what was acknowledged after 2\d\d\d-\d\d-\d\dT.*Z is gone
- the secret key in ` + data + `/exchange.key is another: ` + regexp.QuoteMeta(lostKeyHelp) + `
- start the exchange with this configuration: exchange serve
- compare its books: exchange audit
- codes that were mailed for withdraws before have expired then: an owner's first try has a new one mailed, and costs no try
$`)
	if r.code != 0 || r.errOut != "" || !want.MatchString(r.out) {
		t.Fatalf("%d %s\n%s\nwant\n%s", r.code, r.errOut, r.out, want)
	}
	s := must(pebble.Open(store, pebble.Options{}))
	if _, last, err := s.Acquire(t.Context(), persistence.Claim{Owner: "test"}); err != nil ||
		last != 4 {
		t.Errorf("the journal ends at %d, %v", last, err)
	}
	restore(dir).wantError(t, exitUnavailable, "in use by another process")
	worked(t, s.Close())
	restore(dir).wantError(t, exitUsage,
		"the store is not empty: it has a history up to sequence 4; nothing was written to pebble:"+
			store)

	restoresChosen(t, data, older, newest)
	restoreRefuses(t, newest)
	restoreMakesItsFolders(t, newest)
}

func restoreMakesItsFolders(t *testing.T, good string) {
	t.Helper()
	dir := t.TempDir()
	in := func(names ...string) string { return filepath.Join(append([]string{dir}, names...)...) }
	restore := func(data, store string) result {
		return runLine([]string{withZeroKey}, "restore", "--demo", "--data", data, "--store",
			"pebble:"+store, good)
	}
	for _, x := range [][2]string{{in("none", "data"), in("store")},
		{in("data"), in("none", "store")}, {in("none", "data"), in("none", "data", "store")}} {
		restore(x[0], x[1]).wantError(t, exitUsage,
			"there is no folder "+in("none")+", in which ")
		wantOnly(t, dir)
	}
	for _, x := range [][2]string{{in("data"), in("store")}, {in("with"), in("with", "store")}} {
		if r := restore(x[0], x[1]); r.code != 0 {
			t.Errorf("%+v", r)
		}
		if info, err := os.Stat(x[0]); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("the folder has the mode %v, %v", info, err)
		}
	}
}

// restoresChosen restores backups by their names.
func restoresChosen(t *testing.T, data, older, newest string) {
	t.Helper()
	environ := []string{"EXCHANGE_STORE=pebble:" + filepath.Join(t.TempDir(), "second"),
		"EXCHANGE_DATA=" + data, withZeroKey}
	environ = append(environ, "EXCHANGE_SOMETHING=x")
	before := t.TempDir()
	worked(t, os.WriteFile(filepath.Join(before, "part"), nil, 0o600))
	r := runLine(environ, "restore", "--demo", older, "--archive", before)
	for _, word := range []string{older + "\n", "sequence       6",
		"is another: bring exchange.key back", "name an empty folder as archive",
		"that in " + before + " belongs to what was before; keep it"} {
		if r.code != 0 || !strings.Contains(r.out, word) {
			t.Errorf("%q is not said: %+v", word, r)
		}
	}
	if r.errOut !=
		"exchange: the environment variable EXCHANGE_SOMETHING names no option and is ignored\n" {
		t.Errorf("said is %q", r.errOut)
	}
	r = runLine([]string{"EXCHANGE_STORE=pebble:" + filepath.Join(t.TempDir(), "third"),
		"EXCHANGE_DATA=" + data},
		"restore", "--demo", "--json", "--without-authentication", newest)
	if r.code != 0 || !strings.Contains(r.out, `"of":1,"sequence":4,`) ||
		!strings.HasPrefix(r.errOut, "exchange: WITHOUT AUTHENTICATION: nothing proves that") ||
		!strings.HasSuffix(r.out,
			`"accounts":2,"rows":1,"authenticated":false,"secret_key":"missing"}`+"\n") {
		t.Errorf("%+v", r)
	}
}

// restoreRefuses looks at refusals that come before anything is written.
func restoreRefuses(t *testing.T, good string) {
	store, dir := filepath.Join(t.TempDir(), "store"), t.TempDir()
	f := func(code int, path, want string, more ...string) {
		t.Helper()
		args := append([]string{"restore", "--demo", "--store", "pebble:" + store, path}, more...)
		runLine([]string{withZeroKey}, args...).wantError(t, code, want)
		if _, err := os.Stat(store); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the store was made: %v", err)
		}
	}
	f(exitUsage, dir, "there is no backup in "+dir+": it would be called exchange-SEQUENCE.backup")
	f(exitUsage, filepath.Join(dir, "nothing"), "there is no backup: stat ")
	f(exitUsage, good, "listen is ", "--listen", "nowhere")
	b := must(os.ReadFile(good))
	bad := filepath.Join(dir, "exchange-9.backup")
	keyless := filepath.Join(dir, "exchange.key")
	other := []string{"EXCHANGE_SECRET_KEY=" + strings.Repeat("11", seal.KeyBytes)}
	for want, environ := range map[string][]string{
		"there is no secret key in " + keyless: {"EXCHANGE_DATA=" + dir},
		fmt.Sprintf(
			"authenticated under a secret key that is not at hand: %016x; there is secret key",
			zeroKey().ID()): other,
	} {
		r := runLine(environ, "restore", "--demo", "--store", "pebble:"+store, good)
		r.wantError(t, exitUsage, want)
		for _, word := range []string{"--without-authentication", "exchange.key.ID",
			"nothing was written"} {
			if !strings.Contains(r.errOut, word) {
				t.Errorf("%q is not said: %s", word, r.errOut)
			}
		}
	}
	forged := bytes.Clone(b)
	forged[len(forged)-1] ^= 1
	for what, b := range map[string][]byte{"authentication is wrong": forged,
		"does not end with the proof": append(bytes.Clone(b), 'x')} {
		worked(t, os.WriteFile(bad, b, 0o600))
		f(exitBroken, bad, what)
	}
	f(exitBroken, bad, bad+": the backup is damaged")
	f(exitBroken, dir, "nothing was written")
	if err := os.WriteFile(bad, b[:10], 0o600); err != nil { // how old is it?
		t.Fatal(err)
	}
	f(exitBroken, dir, "if it is not the one to restore, name the file that is")
	if r := runLine(nil, "restore", good); r.code != exitUsage ||
		!strings.Contains(r.errOut, "exchange config example") {
		t.Errorf("without a configuration: %+v", r)
	}
}
