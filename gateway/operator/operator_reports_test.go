package operator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"exchange/actors"
	"exchange/core/state"
	"exchange/persistence"
	"exchange/persistence/backup"
	"exchange/prove/harness"
)

// streamed are the lines of a long answer but the last, which end must contain. The rest must be
// valid.
func streamed(t *testing.T, a harness.Answer) (list []string, end string) {
	t.Helper()
	list = strings.Split(strings.TrimSuffix(a.Body, "\n"), "\n")
	last, ok := strings.CutPrefix(list[len(list)-1], `{"end":`)
	if a.Status != 200 || string(a.Header.ContentType()) != "application/x-ndjson" || !ok {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	return list[:len(list)-1], strings.TrimSuffix(last, "}")
}

// withFees is an exchange with fees where alice has sold to bob: 1 BTC at 100 three times.
func withFees(t *testing.T) *harness.Exchange {
	h := harness.New(t, func(o *actors.Options) {
		for i := range o.Pairs {
			o.Pairs[i].Fees = state.FeeRates{Maker: 100_000, Taker: 200_000} // 0.1 % and 0.2 %
		}
	})
	h.AccountAt("alice", "alice@example.org")
	h.AccountAt("bob", "bob@example.org")
	for _, d := range [][3]string{{"alice", "10", "BTC"}, {"bob", "1000", "USDT"}} {
		h.Deposit(d[0], d[1], d[2], "deposit of "+d[0])
	}
	h.Post("alice", "/api/v1/order/", harness.Order("sell", "BTC_USDT", "3", "100"))
	for range 3 {
		h.Post("bob", "/api/v1/order/", harness.Order("buy", "BTC_USDT", "1", "100")).Must(t, 201)
	}
	return h
}

// statementOf returns each line as "CURRENCY CHANGE BALANCE CAUSE".
func statementOf(t *testing.T,
	ask func(method, path, body string, headers ...string) harness.Answer, account string) string {
	t.Helper()
	list, end := streamed(t, ask("GET", "/operator/v1/statement?account="+account, ""))
	var text strings.Builder
	for _, line := range list {
		var l struct {
			Currency, Change, Cause string
			Balance                 json.Number
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		text.WriteString(l.Currency + " " + l.Change + " " + l.Balance.String() + " " + l.Cause +
			"\n")
	}
	var n int
	if err := json.Unmarshal([]byte(end), &n); err != nil || n != len(list) {
		t.Errorf("there are %d lines, the end reports %s", len(list), end)
	}
	return text.String()
}

func TestTradesAreExportedOldestFirst(t *testing.T) {
	h := withFees(t)
	ask := harness.AsOperator(t, h.Gateway)
	list, end := streamed(t, ask("GET", "/operator/v1/trades?pair=BTC_USDT", ""))
	if len(list) != 3 || end != "3" {
		t.Fatalf("%v, %s", list, end)
	}
	var first, last struct {
		ID           int
		Time         string
		Taker, Maker string
		Price        json.Number
		TakerFee     json.Number `json:"taker_fee"`
		MakerFee     json.Number `json:"maker_fee"`
	}
	harness.Worked(t, json.Unmarshal([]byte(list[0]), &first))
	harness.Worked(t, json.Unmarshal([]byte(list[2]), &last))
	if first.ID != 1 || last.ID != 3 || first.Taker != "bob" || first.Maker != "alice" ||
		first.Price != "100" || first.TakerFee != "0.002" || first.MakerFee != "0.1" {
		t.Errorf("%s", list)
	}
	f := func(query string, n int) {
		t.Helper()
		if got, _ := streamed(t, ask("GET", "/operator/v1/trades?pair=BTC_USDT&"+query,
			"")); len(got) != n {
			t.Errorf("%s: %d trades, want %d", query, len(got), n)
		}
	}
	f("from=2020-01-01", 3)
	f("to=2020-01-01", 0)
	f("from="+first.Time, 3)
	f("to="+first.Time, 0)
	f("from="+last.Time, 1)
	f("to="+last.Time, 2)
	harness.Says(t, "a pair", ask("GET", "/operator/v1/trades?pair=BTC", ""), 400,
		harness.Refusal(`there is no pair "BTC"`))
	harness.Says(t, "a time", ask("GET", "/operator/v1/trades?pair=BTC_USDT&from=now", ""), 400,
		harness.Refusal(`from: "now" is no time such as 2026-11-21 or 2026-11-21T08:00:00Z`))
}

func TestAllRowsAreExported(t *testing.T) {
	h := withFees(t)
	ask := harness.AsOperator(t, h.Gateway)
	h.Post("alice", "/api/v1/order/", harness.Order("sell", "BTC_USDT", "1", "120"))
	h.Post("bob", "/api/v1/order/",
		harness.Order("buy", "BTC_USDT", "1", "90")+"&time_in_force=ioc")
	h.Post("bob", "/api/v1/withdraw/", "address=somewhere&amount=20&currency=USDT")
	const whole = "2000-01-01T00:00:00Z"
	for _, x := range []struct {
		path  string
		lines []string // beginning or part of each
	}{
		{"trades", []string{`{"id":1,`, `{"id":2,`, `{"id":3,`}},
		{"export/orders", []string{`"price":120,"amount":1,"remaining":1,`, `"status":"done"`,
			`"status":"cancelled","closed":"2`, `"status":"done"`, `"status":"done"`,
			`"status":"done"`}},
		{"export/deposits", []string{`"reference":"deposit of alice"`,
			`"reference":"deposit of bob"`}},
		{"export/withdraws", []string{`{"withdraw":1,"account":"bob",`}},
	} {
		for query, n := range map[string]int{"": len(x.lines), "?from=" + whole: len(x.lines),
			"?to=" + whole: 0} {
			list, end := streamed(t, ask("GET", "/operator/v1/"+x.path+query, ""))
			if len(list) != n || end != strconv.Itoa(n) {
				t.Fatalf("%s%s: %d lines, want %d: %q, %s", x.path, query, len(list), n, list, end)
			}
			for i, line := range list {
				if !strings.Contains(line, x.lines[i]) {
					t.Errorf("%s: line %d is %s, want %s", x.path, i+1, line, x.lines[i])
				}
			}
		}
		harness.Says(t, "a time", ask("GET", "/operator/v1/"+x.path+"?from=now", ""), 400,
			harness.Refusal(`from: "now" is no time such as 2026-11-21 or 2026-11-21T08:00:00Z`))
	}
	list, end := streamed(t, ask("GET", "/operator/v1/export/balances", ""))
	if len(list) != 6 || !strings.Contains(end, `"rows":6,`) ||
		!strings.Contains(end, `{"currency":"USDT","balances":1000,"reserved":20}`) {
		t.Errorf("%q, %s", list, end)
	}
}

func TestTheAuditOfARunningExchangeIsClean(t *testing.T) {
	h := withFees(t)
	ask := harness.AsOperator(t, h.Gateway)
	_, end := streamed(t, ask("POST", "/operator/v1/audit", "{}"))
	var a struct {
		Sequence, Records uint64
		Differences       []string
		Totals            []struct {
			Currency            string
			Deposited, Balances json.Number
		}
	}
	if err := json.Unmarshal([]byte(end), &a); err != nil || a.Differences == nil ||
		len(a.Differences) > 0 || a.Records != a.Sequence || a.Sequence == 0 {
		t.Fatalf("%s: %v", end, err)
	}
	if len(a.Totals) != 3 || a.Totals[0].Currency != "BTC" || a.Totals[0].Deposited != "10" ||
		a.Totals[0].Balances != "10" {
		t.Errorf("totals are %+v", a.Totals)
	}
	harness.Says(t, "needs archive", ask("POST", "/operator/v1/audit", `{"archive":"/a"}`), 400,
		harness.Refusal("the server runs without --archive: the first records may be gone"))
	harness.Says(t, "a slip", ask("POST", "/operator/v1/audit", `{"archives":"/a"}`), 400,
		harness.Refusal(
			`the body is not the JSON object that is expected: json: unknown field "archives"`))

	h.Gateway.Operators().Operator.SetArchive(harness.DamagedArchive{})
	harness.Says(t, "another archive", ask("POST", "/operator/v1/audit", `{"archive":"/a"}`), 400,
		harness.Refusal("the server archives to /archive, not to /a"))
	want := `{"error":"replaying the archive: corrupt: stored data fails its checks","damaged":true}` +
		"\n"
	harness.Says(t, "an archive without its key",
		ask("POST", "/operator/v1/audit", `{"archive":"/archive"}`), 400,
		harness.Refusal("the key 0123456789abcdef is missing"))
	if a := ask("POST", "/operator/v1/audit",
		`{"archive":"/archive","without_authentication":true}`); a.Status != 200 || a.Body != want {
		t.Errorf("a damaged archive: %d %s", a.Status, a.Body)
	}
	harness.Says(t, "no archive",
		ask("POST", "/operator/v1/audit", `{"without_authentication":true}`), 400,
		harness.Refusal("without_authentication needs archive"))
}

// A brokenJournal cannot be read while it is broken.
type brokenJournal struct {
	persistence.Store
	broken atomic.Bool
}

func (j *brokenJournal) Read(ctx context.Context, after uint64,
	f func(prev, next uint64, batch []byte) error) error {
	if j.broken.Load() {
		return fmt.Errorf("%w: a batch is missing", persistence.ErrCorrupt)
	}
	return j.Store.Read(ctx, after, f)
}

func TestAnAuditOfABrokenJournalSaysSo(t *testing.T) {
	j := new(brokenJournal)
	h := harness.New(t, func(o *actors.Options) {
		j.Store = o.Store
		o.Store = j
	})
	h.Account("bob")
	j.broken.Store(true)
	want := `{"error":"replaying the journal after sequence 0: corrupt: stored data fails its ` +
		`checks: a batch is missing","damaged":true}` + "\n"
	if a := harness.AsOperator(t, h.Gateway)("POST", "/operator/v1/audit", "{}"); a.Status != 200 ||
		a.Body != want {
		t.Errorf("a broken journal: %d %s", a.Status, a.Body)
	}
	j.broken.Store(false)
	h.Audit()
	h.Post("bob", "/api/v1/order-cancel-all", "all=1").Is(t, 200) // it resumes
}

func TestABackupIsStreamed(t *testing.T) {
	h := withFees(t)
	a := harness.AsOperator(t, h.Gateway)("GET", "/operator/v1/backup", "")
	info, err := backup.Verify(strings.NewReader(a.Body), h.Engine.Authority())
	if err != nil || a.Status != 200 || info.Accounts != 3 || info.Rows["trades"] != 3 ||
		info.Rows["deposits"] != 2 {
		t.Fatalf("%d %+v, %v", a.Status, info, err)
	}
}
