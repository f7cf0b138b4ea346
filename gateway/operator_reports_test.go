package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"exchange/actors"
	"exchange/actors/audit"
	"exchange/core/state"
	"exchange/persistence"
	"exchange/persistence/backup"
)

// streamed are the lines of a long answer but the last, which end must contain. The rest must be
// valid.
func streamed(t *testing.T, a answer) (list []string, end string) {
	t.Helper()
	list = strings.Split(strings.TrimSuffix(a.body, "\n"), "\n")
	last, ok := strings.CutPrefix(list[len(list)-1], `{"end":`)
	if a.status != 200 || string(a.header.ContentType()) != "application/x-ndjson" || !ok {
		t.Fatalf("%d %s", a.status, a.body)
	}
	return list[:len(list)-1], strings.TrimSuffix(last, "}")
}

// withFees is an exchange with fees where alice has sold to bob: 1 BTC at 100 three times.
func withFees(t *testing.T) *harness {
	h := newHarness(t, func(o *actors.Options) {
		for i := range o.Pairs {
			o.Pairs[i].Fees = state.FeeRates{Maker: 100_000, Taker: 200_000} // 0.1 % and 0.2 %
		}
	})
	h.accountAt("alice", "alice@example.org")
	h.accountAt("bob", "bob@example.org")
	for _, d := range [][3]string{{"alice", "10", "BTC"}, {"bob", "1000", "USDT"}} {
		h.deposit(d[0], d[1], d[2], "deposit of "+d[0])
	}
	h.post("alice", "/api/v1/order/", order("sell", "BTC_USDT", "3", "100"))
	for range 3 {
		h.post("bob", "/api/v1/order/", order("buy", "BTC_USDT", "1", "100")).must(t, 201)
	}
	return h
}

// statementOf returns each line as "CURRENCY CHANGE BALANCE CAUSE".
func statementOf(t *testing.T, ask func(method, path, body string, headers ...string) answer,
	account string) string {
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
	ask := asOperator(t, h.gateway)
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
	worked(t, json.Unmarshal([]byte(list[0]), &first))
	worked(t, json.Unmarshal([]byte(list[2]), &last))
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
	says(t, "a pair", ask("GET", "/operator/v1/trades?pair=BTC", ""), 400,
		refusal(`there is no pair "BTC"`))
	says(t, "a time", ask("GET", "/operator/v1/trades?pair=BTC_USDT&from=now", ""), 400,
		refusal(`from: "now" is no time such as 2026-11-21 or 2026-11-21T08:00:00Z`))
}

func TestAllRowsAreExported(t *testing.T) {
	h := withFees(t)
	ask := asOperator(t, h.gateway)
	h.post("alice", "/api/v1/order/", order("sell", "BTC_USDT", "1", "120"))
	h.post("bob", "/api/v1/order/", order("buy", "BTC_USDT", "1", "90")+"&time_in_force=ioc")
	h.post("bob", "/api/v1/withdraw/", "address=somewhere&amount=20&currency=USDT")
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
		says(t, "a time", ask("GET", "/operator/v1/"+x.path+"?from=now", ""), 400,
			refusal(`from: "now" is no time such as 2026-11-21 or 2026-11-21T08:00:00Z`))
	}
	list, end := streamed(t, ask("GET", "/operator/v1/export/balances", ""))
	if len(list) != 6 || !strings.Contains(end, `"rows":6,`) ||
		!strings.Contains(end, `{"currency":"USDT","balances":1000,"reserved":20}`) {
		t.Errorf("%q, %s", list, end)
	}
}

func TestTheAuditOfARunningExchangeIsClean(t *testing.T) {
	h := withFees(t)
	ask := asOperator(t, h.gateway)
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
	says(t, "needs archive", ask("POST", "/operator/v1/audit", `{"archive":"/a"}`), 400,
		refusal("the server runs without --archive: the first records may be gone"))
	says(t, "a slip", ask("POST", "/operator/v1/audit", `{"archives":"/a"}`), 400,
		refusal(`the body is not the JSON object that is expected: json: unknown field "archives"`))

	h.gateway.operators.Operator.SetArchive(damagedArchive{})
	says(t, "another archive", ask("POST", "/operator/v1/audit", `{"archive":"/a"}`), 400,
		refusal("the server archives to /archive, not to /a"))
	want := `{"error":"replaying the archive: corrupt: stored data fails its checks","damaged":true}` +
		"\n"
	says(t, "an archive without its key",
		ask("POST", "/operator/v1/audit", `{"archive":"/archive"}`), 400,
		refusal("the key 0123456789abcdef is missing"))
	if a := ask("POST", "/operator/v1/audit",
		`{"archive":"/archive","without_authentication":true}`); a.status != 200 || a.body != want {
		t.Errorf("a damaged archive: %d %s", a.status, a.body)
	}
	says(t, "no archive", ask("POST", "/operator/v1/audit", `{"without_authentication":true}`), 400,
		refusal("without_authentication needs archive"))
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
	h := newHarness(t, func(o *actors.Options) {
		j.Store = o.Store
		o.Store = j
	})
	h.account("bob")
	j.broken.Store(true)
	want := `{"error":"replaying the journal after sequence 0: corrupt: stored data fails its ` +
		`checks: a batch is missing","damaged":true}` + "\n"
	if a := asOperator(t, h.gateway)("POST", "/operator/v1/audit", "{}"); a.status != 200 ||
		a.body != want {
		t.Errorf("a broken journal: %d %s", a.status, a.body)
	}
	j.broken.Store(false)
	h.audit()
	h.post("bob", "/api/v1/order-cancel-all", "all=1").is(t, 200) // it resumes
}

type damagedArchive struct{}

func (damagedArchive) Dir() string { return "/archive" }

func (damagedArchive) Failures() uint64 { return 3 }

func (damagedArchive) Open(authenticated bool) (audit.Archive, error) {
	if !authenticated {
		return damagedArchive{}, nil
	}
	return nil, errors.New("the key 0123456789abcdef is missing")
}

func (damagedArchive) Histories() ([]persistence.HistoryID, error) { return nil, nil }

func (damagedArchive) Base(context.Context) (uint64, []byte, error) { return 0, nil, nil }

func (damagedArchive) Read(context.Context, uint64, func(prev, next uint64,
	batch []byte) error) error {
	return persistence.ErrCorrupt
}

func TestABackupIsStreamed(t *testing.T) {
	h := withFees(t)
	a := asOperator(t, h.gateway)("GET", "/operator/v1/backup", "")
	info, err := backup.Verify(strings.NewReader(a.body), h.engine.Authority())
	if err != nil || a.status != 200 || info.Accounts != 3 || info.Rows["trades"] != 3 ||
		info.Rows["deposits"] != 2 {
		t.Fatalf("%d %+v, %v", a.status, info, err)
	}
}
