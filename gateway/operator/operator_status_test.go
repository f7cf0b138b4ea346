package operator_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"exchange/gateway/api"
	"exchange/prove/harness"
)

func TestTheStatusShowsWhatOperatorsSet(t *testing.T) {
	h := harness.Moderated(t)
	ask := harness.AsOperator(t, h.Gateway)
	do := func(path, body string) {
		t.Helper()
		ask("POST", "/operator/v1/"+path, body).Must(t, 200, path, body)
	}
	page := func() harness.StatusPage {
		t.Helper()
		return harness.Decode[harness.StatusPage](t, ask("GET", "/operator/v1/status", ""))
	}
	p := page()
	if p.Version != api.Version || !harness.ClockText.MatchString(p.Started) ||
		!harness.ClockText.MatchString(p.Time) || p.Sequence == 0 || !p.Ready || p.Cluster != nil ||
		p.Maintenance.On || len(p.Halted) != 0 || p.Frozen.Accounts != 0 ||
		p.Pending.New != 1 || p.Pending.Verified != 1 ||
		!harness.ClockText.MatchString(p.Pending.Oldest) ||
		p.Switches != 0 || p.Open != 2 || p.Backup != nil || p.Audit != nil {
		t.Errorf("at first %+v", p)
	}
	h.Post("bob", "/api/v1/order-cancel-after/", "timeout=600").Must(t, 200)
	do("pairs/halt", `{"pair":"BTC_USDT","on":true}`)
	do("pairs/halt", `{"pair":"BTC_USDT","on":false}`)
	do("pairs/halt", `{"all":true,"on":true}`)
	do("maintenance", `{"on":true,"message":"Soon."}`)
	since := page().Maintenance.Since
	do("maintenance", `{"on":true,"message":"At 9."}`)
	for _, name := range []string{"carol", "alice"} {
		do("accounts/freeze", `{"account":"`+name+`","on":true}`)
	}
	do("audit", `{}`)
	ask("GET", "/operator/v1/backup", "").Must(t, 200)
	p = page()
	p.IsSet(h, "set", since)
	if p.Backup == nil || !p.Backup.OK || p.Audit == nil || !p.Audit.OK ||
		!strings.HasPrefix(p.Audit.Result, "no difference up to sequence ") {
		t.Errorf("a backup and an audit: %+v, %+v", p.Backup, p.Audit)
	}
	h.Crash()
	h.Start()
	ask = harness.AsOperator(t, h.Gateway)
	p = page()
	p.IsSet(h, "after a crash", since)
	if p.Audit != nil || p.Backup != nil {
		t.Errorf("another process remembers %+v, %+v", p.Backup, p.Audit)
	}
	harness.Says(t, "maintenance", ask("GET", "/operator/v1/maintenance", ""), 200,
		`{"on":true,"since":"`+since+`","message":"At 9."}`)
	do("maintenance", `{"on":false}`)
	harness.Says(t, "its end", ask("GET", "/operator/v1/maintenance", ""), 200,
		`{"on":false,"since":"","message":""}`)
	harness.Says(t, "all resume", ask("POST", "/operator/v1/pairs/halt", `{"all":true,"on":false}`),
		200, `{"pairs":[{"pair":"BTC_USDT","on":false},{"pair":"ETH_USDT","on":false},`+
			`{"pair":"ETH_BTC","on":false}]}`)
}

func TestStatusShowsMaintenanceWithCancels(t *testing.T) {
	h := harness.Traded(t)
	ask := harness.AsOperator(t, h.Gateway)
	harness.Says(t, "its begin", ask("POST", "/operator/v1/maintenance",
		`{"on":true,"message":"At 9.","cancels":true}`), 200,
		`{"on":true,"message":"At 9.","cancels":true}`)
	if a := ask("GET", "/operator/v1/maintenance", ""); !strings.Contains(a.Body,
		`"message":"At 9.","cancels":true}`) {
		t.Error(a.Body)
	}
	if a := ask("GET", "/operator/v1/status", ""); !strings.Contains(a.Body,
		`"message":"At 9.","cancels":true}`) {
		t.Error(a.Body)
	}
	harness.Says(t, "an end with cancels", ask("POST", "/operator/v1/maintenance",
		`{"on":false,"cancels":true}`), 400,
		`{"error":"cancels: with on true, for a maintenance in which clients may cancel"}`)
}

func TestOperatorsSeePairsAndFees(t *testing.T) {
	h := harness.Traded(t)
	ask := harness.AsOperator(t, h.Gateway)
	set := func(account, pair, maker string) {
		t.Helper()
		ask("POST", "/operator/v1/fees",
			fmt.Sprintf(`{"account":%q,"pair":%q,"maker":%s,"taker":0.5}`, account, pair,
				maker)).Must(t, 200)
	}
	set("bob", "ETH_USDT", "0.00000001")
	set("bob", "BTC_USDT", "0")
	set("alice", "BTC_USDT", "0.25")
	list := func(query string) (rows []string, next uint64) {
		t.Helper()
		a := harness.Decode[struct {
			Pairs    []struct{ Pair string }
			Accounts []struct {
				Account, Pair string
				Maker, Taker  float64
			}
			Next uint64
		}](t, ask("GET", "/operator/v1/fees"+query, ""))
		if (query != "?after=1&limit=1") != (len(a.Pairs) == len(h.Engine.Pairs())) {
			t.Errorf("%s: the usual rates of %+v", query, a.Pairs)
		}
		for _, x := range a.Accounts {
			rows = append(rows, fmt.Sprint(x.Account, " ", x.Pair, " ", x.Maker, " ", x.Taker))
		}
		return rows, a.Next
	}
	const alice = "alice BTC_USDT 0.25 0.5"
	bob := []string{"bob BTC_USDT 0 0.5", "bob ETH_USDT 1e-08 0.5"}
	if got, next := list(""); !slices.Equal(got, append([]string{alice}, bob...)) || next != 0 {
		t.Errorf("%q, %d", got, next)
	}
	if got, next := list("?limit=1"); !slices.Equal(got, []string{alice}) || next != 1 {
		t.Errorf("%q, %d", got, next)
	}
	if got, _ := list("?after=1&limit=1"); !slices.Equal(got, bob) {
		t.Errorf("%q", got)
	}
	ask("POST", "/operator/v1/pairs/halt", `{"pair":"ETH_BTC","on":true}`)
	a := harness.Decode[struct {
		Pairs []struct {
			Pair, Since string
			Last        float64
			Open        int `json:"open_orders"`
			Halted      bool
		}
	}](t, ask("GET", "/operator/v1/pairs", ""))
	if p := a.Pairs; len(p) != 3 || p[0].Pair != "BTC_USDT" || p[0].Last != 100.5 ||
		p[0].Open != 2 || p[0].Halted || p[0].Since != "" || p[1].Last != 0 || p[1].Open != 0 ||
		!p[2].Halted || !harness.ClockText.MatchString(p[2].Since) {
		t.Errorf("%+v", p)
	}
}

func TestFrozenAccountsAndTotalsAreListed(t *testing.T) {
	h := harness.Moderated(t)
	ask := harness.AsOperator(t, h.Gateway)
	f := func(query, body string) {
		t.Helper()
		harness.Says(t, query, ask("GET", "/operator/v1/accounts"+query, ""), 200, body)
	}
	f("?frozen=1", `{"accounts":[]}`)
	for _, name := range []string{"alice", "carol"} {
		ask("POST", "/operator/v1/accounts/freeze", `{"account":"`+name+`","on":true}`)
	}
	const (
		alice = `{"account":"alice","id":1,"email":"","frozen":true}`
		carol = `{"account":"carol","id":3,"email":"carol@example.org","frozen":true}`
	)
	f("?frozen=1", `{"accounts":[`+alice+`,`+carol+`]}`)
	f("?frozen=1&limit=1", `{"accounts":[`+alice+`],"next":1}`)
	f("?frozen=1&after=1", `{"accounts":[`+carol+`]}`)
	f("?after=1&limit=1", `{"accounts":[{"account":"bob","id":2,"email":"","frozen":false}],`+
		`"next":2}`)

	totals := harness.Decode[struct {
		Sequence uint64
		Totals   []map[string]any
	}](t, ask("GET", "/operator/v1/totals", ""))
	position := harness.Decode[harness.StatusPage](t,
		ask("GET", "/operator/v1/status", "")).Sequence
	if totals.Sequence != position || len(totals.Totals) != 3 ||
		totals.Totals[0]["balances"] != 12.0 || totals.Totals[0]["reserved"] != 2.5 ||
		totals.Totals[2]["balances"] != 1000.0 {
		t.Errorf("at %d: %+v", position, totals)
	}
}

func TestOrdersOfAllAccountsAreListedOnPages(t *testing.T) {
	h := harness.Traded(t)
	ask := harness.AsOperator(t, h.Gateway)
	for _, o := range []string{harness.Order("buy", "ETH_USDT", "1", "2"),
		harness.Order("buy", "BTC_USDT", "1", "2"), harness.Order("buy", "ETH_USDT", "1", "3")} {
		h.Post("bob", "/api/v1/order/", o).Must(t, 201)
	}
	h.Post("alice", "/api/v1/order/", harness.Order("sell", "BTC_USDT", "0.1", "200")).Must(t, 201)
	walk := func(query string, limit int) (all []string) {
		t.Helper()
		for more := ""; ; {
			page := harness.Decode[struct {
				Orders []struct {
					Order         uint64
					Account, Pair string
				}
				Next  uint64
				After *uint64
			}](t, ask("GET", fmt.Sprintf("/operator/v1/orders?limit=%d%s%s", limit, query, more),
				""))
			for _, o := range page.Orders {
				all = append(all, fmt.Sprint(o.Account, " ", o.Order, " ", o.Pair))
			}
			if page.After == nil {
				return all
			}
			more = fmt.Sprintf("&after=%d", *page.After)
			if page.Next != 0 {
				more += fmt.Sprintf("&before=%d", page.Next)
			}
		}
	}
	all := []string{"alice 7 BTC_USDT", "alice 1 BTC_USDT", "bob 6 ETH_USDT", "bob 5 BTC_USDT",
		"bob 4 ETH_USDT", "bob 3 BTC_USDT"}
	for limit := 1; limit < 8; limit++ {
		if got := walk("", limit); !slices.Equal(got, all) {
			t.Errorf("pages of %d: %q", limit, got)
		}
		if got := walk("&pair=ETH_USDT", limit); !slices.Equal(got, []string{all[2], all[4]}) {
			t.Errorf("pages of %d of a pair: %q", limit, got)
		}
	}
}
