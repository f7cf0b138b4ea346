package operate

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exchange/cmd/exchange/cli"
)

// A bank answers a command that credits a file: it has two accounts and two currencies, and credits
// a reference once.
type bank struct {
	*fakeServer
	deposits map[string]string // the request of each reference
	fail     func(reference string) (status int, text string)
}

func newBank(t *testing.T) *bank {
	b := &bank{fakeServer: newFake(t, 0, ""), deposits: map[string]string{}}
	b.answer = func(n int) (int, string) {
		asked := b.asked[n]
		switch {
		case asked == "GET /operator/v1/totals":
			sums := `"deposited":0,"withdrawn":0,"adjusted":0,"balances":0,"reserved":0}`
			return 200, `{"sequence":9,"totals":[{"currency":"BTC",` + sums +
				`,{"currency":"USDT",` + sums + `]}`
		case asked == "GET /operator/v1/accounts":
			return 200, `{"accounts":[{"account":"alice","id":1,"email":"","frozen":false},` +
				`{"account":"bob","id":2,"email":"","frozen":false}]}`
		}
		body, ok := strings.CutPrefix(asked, "POST /operator/v1/deposits ")
		var d struct{ Account, Currency, Amount, Reference string }
		if err := json.Unmarshal([]byte(body), &d); err != nil || !ok {
			t.Errorf("asked %s: %v", asked, err)
		}
		if b.fail != nil {
			if status, text := b.fail(d.Reference); status != 0 {
				return status, text
			}
		}
		known, there := b.deposits[d.Reference]
		if there && known != body {
			return 400, fmt.Sprintf(`{"error":"reference \"%s\" belongs to deposit 1"}`,
				d.Reference)
		}
		b.deposits[d.Reference] = body
		return 200, fmt.Sprintf(`{"deposit":%d,"account":%q,"currency":%q,"amount":%s,`+
			`"balance":1,"reference":%q,"repeated":%v}`, len(b.deposits), d.Account, d.Currency,
			d.Amount, d.Reference, there)
	}
	return b
}

func depositsIn(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "deposits.csv")
	worked(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

func TestTheDepositsOfAFileAreCreditedOnce(t *testing.T) {
	noPauses(t)
	b := newBank(t)
	file := depositsIn(t, "account,currency,amount,reference\nalice,BTC,0.5,r1\n"+
		"bob,USDT,1000,\"r, 2\"\nalice,BTC,0.25,r3\n")
	r := runLine(b.environ, "deposit", "--csv", file)
	r.Want(t, 0, "lines            3\ncredited now     3\ncredited before  0\n"+
		"refused          0\n\nCURRENCY  CREDITED NOW\nBTC       0.75\nUSDT      1000\n", "")
	b.wantAsked("GET /operator/v1/totals", "GET /operator/v1/accounts",
		`POST /operator/v1/deposits {"account":"alice","currency":"BTC","reference":"r1","amount":"0.5"}`,
		`POST /operator/v1/deposits {"account":"bob","currency":"USDT","reference":"r, 2","amount":"1000"}`,
		`POST /operator/v1/deposits {"account":"alice","currency":"BTC","reference":"r3","amount":"0.25"}`)
	runLine(b.environ, "deposit", "--csv", file, "--json").Want(t, 0,
		`{"lines":3,"credited":0,"repeated":3,"refused":[],"totals":[]}`+"\n", "")

	// Another order of the columns, a byte order mark, line ends of Windows, one more line.
	file = depositsIn(t, "\ufeffreference,amount,currency,account\r\nr3,0.25,BTC,alice\r\n"+
		"\r\nr4,2,BTC,bob\r\n")
	runLine(b.environ, "deposit", "--csv", file, "--json").Want(t, 0,
		`{"lines":2,"credited":1,"repeated":1,"refused":[],`+
			`"totals":[{"currency":"BTC","amount":2}]}`+"\n", "")
	if len(b.deposits) != 4 {
		t.Errorf("there are %d deposits", len(b.deposits))
	}
}

func TestAFileWithAWrongLineCreditsNothing(t *testing.T) {
	const head = "account,currency,amount,reference\n"
	many := head + strings.Repeat("x\n", 25)
	for _, x := range []struct{ text, want string }{
		{"", "it is empty; nothing was credited"},
		{"account,currency,amount\n", "must have the columns account,currency,amount,reference"},
		{"account,currency,amount,amount\n", "must have the columns"},
		{"account,currency,amount,reference,note\n", "must have the columns"},
		{"alice,BTC,1,r\n", `and has "alice,BTC,1,r"`},
		{head + "alice,BTC,1\n", "line 2: it has 3 columns, and not 4"},
		{head + "alice,BTC,1,r\nAlice,BTC,1,s\n", `line 3: the account name "Alice" must be`},
		{head + "alice,btc,1,r\n", `line 2: the currency "btc" must be`},
		{head + "alice,BTC,0,r\n", `line 2: the amount "0" must be a number above 0`},
		{head + "alice,BTC,\"1,5\",r\n", `line 2: the amount "1,5" must be`},
		{head + "alice,BTC,1,\n", `line 2: the reference "" must be`},
		{head + "alice,BTC,1,r\n\nbob,BTC,1,r\n", `line 4: the reference "r" is that of line 2`},
		{head + "alice,BTC,1,\"r\n", "extraneous or missing"},
		{head + "carol,BTC,1,r\nalice,BTC,1,s\n", `line 2: there is no account "carol"`},
		{head + "alice,ETH,1,r\n", `line 2: there is no currency "ETH"`},
		{many, "line 21: it has 1 columns, and not 4\n  and 5 further lines\n"},
	} {
		b := newBank(t)
		file := depositsIn(t, x.text)
		r := runLine(b.environ, "deposit", "--csv", file)
		if r.Code != cli.ExitUsage || r.Out != "" || !strings.Contains(r.ErrOut, x.want) ||
			!strings.Contains(r.ErrOut, "nothing was credited") ||
			!strings.Contains(r.ErrOut, file) {
			t.Errorf("%q: %+v, want %q", x.text, r, x.want)
		}
		runLine(b.environ, "deposit", "--csv", file, "--json").WantJSONError(t, cli.ExitUsage,
			"nothing was credited")
		for _, asked := range b.requests() {
			if strings.HasPrefix(asked, "POST") {
				t.Errorf("%q: asked %s", x.text, asked)
			}
		}
	}
	b := newBank(t)
	for _, x := range []struct{ line, want string }{
		{"deposit --csv ''", "--csv is empty"},
		{"deposit --csv /nowhere/file", "/nowhere/file cannot be read"},
		{"deposit --csv " + t.TempDir(), "it is no ordinary file"},
		{"deposit --csv x alice", `"alice" is one argument too many for deposit`},
		{"deposit --csv x --reference r", "--reference applies to a single deposit"},
	} {
		runLine(b.environ, words(x.line)...).WantError(t, cli.ExitUsage, x.want)
	}
	b.wantAsked()
}

func TestRefusedLinesAreNamedAndTheOthersCredited(t *testing.T) {
	b := newBank(t)
	b.deposits["r2"] = "another one"
	file := depositsIn(t, "account,currency,amount,reference\nalice,BTC,1,r1\nbob,BTC,1,r2\n"+
		"bob,BTC,2,r3\n")
	r := runLine(b.environ, "deposit", "--csv", file, "--json")
	r.Want(t, cli.ExitUsage, `{"lines":3,"credited":2,"repeated":0,"refused":[{"line":3,"error":`+
		`"reference \"r2\" belongs to deposit 1"}],"totals":[{"currency":"BTC","amount":3}]}`+"\n",
		fmt.Sprintf(`{"error":"%s: the exchange has refused lines, and credited the others\n  `+
			`line 3: reference \"r2\" belongs to deposit 1"}`+"\n", file))
}

// After an unknown outcome of a line, the command stops there. Repeating the command resumes.
func TestDepositFileResumesAfterAFailure(t *testing.T) {
	noPauses(t)
	b := newBank(t)
	file := depositsIn(t, "account,currency,amount,reference\nalice,BTC,1,r1\nbob,BTC,1,r2\n"+
		"bob,BTC,2,r3\n")
	b.fail = func(reference string) (int, string) {
		if reference == "r2" {
			return 503, `{"error":"outcome unknown"}`
		}
		return 0, ""
	}
	r := runLine(b.environ, "deposit", "--csv", file)
	if r.Code != cli.ExitUnavailable || !strings.Contains(r.Out, "credited now     1\n") ||
		!strings.Contains(r.ErrOut, "line 3: outcome unknown; whether it was done is unknown") ||
		!strings.Contains(r.ErrOut, "again credits no line twice") {
		t.Errorf("%+v", r)
	}
	b.fail = nil
	r = runLine(b.environ, "deposit", "--csv", file, "--json")
	r.Want(t, 0, `{"lines":3,"credited":2,"repeated":1,"refused":[],`+
		`"totals":[{"currency":"BTC","amount":3}]}`+"\n", "")
}
