package operator_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"

	"exchange/actors"
	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/state"
	"exchange/persistence"
	"exchange/prove/harness"
)

// Values that an operator may slip in, by kind of field, as JSON; "": the field is missing.
var (
	noSwitch = []string{"", "null", "1", `"true"`, `"on"`, "{}", "[true]"}
	noName   = []string{"", "null", `""`, "1", "true", "{}", `["alice"]`, `"nobody"`, `"ALICE"`,
		`"alice "`, `"alice\u0000"`, `"\ud83d\ude00"`, `"\n"`,
		harness.Quote(strings.Repeat("a", 5000))}
	noMarket = []string{"", "null", `""`, "1", "true", "{}", `["BTC_USDT"]`, `"BTC_EUR"`,
		`"btc_usdt"`, `"BTC_USDT "`, `"\u0000"`, harness.Quote(strings.Repeat("a", 5000))}
	noNumber = []string{"", "null", "0", "-1", "1.5", "1e3", `"1"`, "true", "{}", "[1]",
		"18446744073709551616", "99", "9007199254740993"}
	noRate = []string{"", "null", "-1", "-0.1", "1.00000001", "2", "1e-9", "0.123456789", "1e400",
		`"x"`, `""`, `" 0.1"`, `"0,1"`, "true", "{}", "[0.1]", `"NaN"`,
		harness.Quote(strings.Repeat("9", 5000))}
	noLine = []string{"1", "true", "{}", `["x"]`, `"a\nb"`, `"\u0000"`, `"\u001b[2J"`, `"\u007f"`,
		`"\u0085"`}
)

// The fields of operators' requests, with good values of all required ones.
var operatorFields = []struct {
	path string
	good map[string]string
	bad  map[string][]string
}{
	{"accounts/freeze", map[string]string{"account": `"alice"`, "on": "true"},
		map[string][]string{"account": noName, "on": noSwitch}},
	{"accounts/close", map[string]string{"account": `"alice"`},
		map[string][]string{"account": noName}},
	{"accounts/email", map[string]string{"account": `"alice"`, "email": `"a@new.example"`},
		map[string][]string{"account": noName, "email": {`""`, "1", "null", `"a b@new.example"`,
			`"new.example"`, `"A <a@new.example>"`, `"a@new.example\n"`,
			harness.Quote(strings.Repeat("x", 255) + "@new.example")}}},
	{"pairs/halt", map[string]string{"pair": `"BTC_USDT"`, "on": "true"},
		map[string][]string{"pair": noMarket, "on": noSwitch, "all": {"true", "1", `"yes"`}}},
	{"maintenance", map[string]string{"on": "true"},
		map[string][]string{"on": noSwitch, "cancels": {"1", `"yes"`, "{}"},
			"message": append(noLine, harness.Quote(strings.Repeat("x", 501)),
				harness.Quote(strings.Repeat("\u00e9", 251)))}},
	{"fees", map[string]string{"account": `"alice"`, "pair": `"BTC_USDT"`, "maker": "0.1",
		"taker": `"0.2"`},
		map[string][]string{"account": noName, "pair": noMarket, "maker": noRate, "taker": noRate,
			"usual": {"true", "1", `"yes"`, "{}"}}},
	{"orders/cancel", nil, map[string][]string{"order": noNumber}},
	{"orders/cancel-all", map[string]string{"pair": `"ETH_BTC"`},
		map[string][]string{"account": slices.DeleteFunc(slices.Clone(noName), nothing)}},
	{"orders/cancel-all", map[string]string{"account": `"alice"`},
		map[string][]string{"pair": slices.DeleteFunc(slices.Clone(noMarket), nothing)}},
	{"orders/cancel-all", nil, map[string][]string{"account": {"", "null", `""`},
		"pair": {"", "null", `""`}}},
	{"withdraws/approve", nil, map[string][]string{"withdraw": noNumber}},
	{"withdraws/approve", map[string]string{"withdraw": "2"},
		map[string][]string{"details": append(noLine, `"why"`),
			"reference": append(noLine, harness.Quote(strings.Repeat("x", 1025)))}},
	{"withdraws/refuse", map[string]string{"details": `"why"`},
		map[string][]string{"withdraw": noNumber}},
	{"withdraws/refuse", map[string]string{"withdraw": "2", "details": `"why"`},
		map[string][]string{"despite_freeze": {"true"}, "reference": {`"tx"`}}},
	{"withdraws/refuse", map[string]string{"withdraw": "2"},
		map[string][]string{"details": append(noLine, "", "null", `""`,
			harness.Quote(strings.Repeat("x", 1025)),
			harness.Quote(strings.Repeat("\u00e9", 513)))}},
	{"audit", nil, map[string][]string{
		"archive": {"1", "true", "{}", `"/no/such/folder"`, `"\u0000"`}}},
}

// nothing is a value equivalent to none.
func nothing(v string) bool { return v == "" || v == "null" || v == `""` }

func TestEachBadFieldOfAnOperatorIsNamedAndChangesNothing(t *testing.T) {
	h := harness.Moderated(t)
	ask := harness.AsOperator(t, h.Gateway)
	before := h.Hash()
	names := func(what, name string, a harness.Answer) {
		t.Helper()
		var got map[string]string
		if err := json.Unmarshal([]byte(a.Body), &got); err != nil || a.Status != 400 ||
			len(got) != 1 || !strings.Contains(strings.ToLower(got["error"]), name) {
			t.Errorf("%.200s: %d %.200s, want a word about %s", what, a.Status, a.Body, name)
		}
		if len(a.Body) > 500 {
			t.Errorf("%.200s: the answer has %d bytes", what, len(a.Body))
		}
	}
	for _, p := range operatorFields {
		for name, values := range p.bad {
			for _, v := range values {
				with := maps.Clone(p.good)
				if with == nil {
					with = map[string]string{}
				}
				with[name] = v
				var parts []string
				for _, n := range slices.Sorted(maps.Keys(with)) {
					if with[n] != "" {
						parts = append(parts, harness.Quote(n)+":"+with[n])
					}
				}
				body := "{" + strings.Join(parts, ",") + "}"
				names(p.path+" "+body, name, ask("POST", "/operator/v1/"+p.path, body))
			}
			twice := fmt.Sprintf(`{%q:null,%q:null}`, name, strings.ToUpper(name))
			harness.Says(t, p.path+" "+twice, ask("POST", "/operator/v1/"+p.path, twice), 400,
				harness.Refusal(fmt.Sprintf("%q appears more than once", name)))
		}
	}
	counts := []string{"0", "-1", "1.5", "1e-1", "x", "%201", "100001", "99999999999999999999"}
	times := []string{"x", "1", "2026", "2026-13-01", "2026-11-21T25:00:00Z", "2026-11-21T08:00:00",
		"21.11.2026", "%00", strings.Repeat("9", 5000)}
	noNames := []string{"nobody", "ALICE", "alice%20", "%00", "%F0%9F%98%80",
		strings.Repeat("a", 5000)}
	for _, q := range []struct {
		path, name string
		values     []string
	}{
		{"accounts?after=", "after", []string{"x", "-1", "1.5"}},
		{"accounts?frozen=", "frozen", []string{"2", "yes", "x"}},
		{"fees?after=", "after", []string{"x", "-1", "1.5"}}, {"fees?limit=", "limit", counts},
		{"orders?after=", "after", []string{"x", "-1"}}, {"orders?limit=", "limit", counts},
		{"orders?account=", "account", append(noNames, "")},
		{"withdraws?account=alice&limit=", "limit", counts},
		{"withdraws?account=", "account", noNames},
		{"account?name=", "account", append(noNames, "")},
		{"statement?account=", "account", append(noNames, "")},
		{"actions?limit=", "limit", counts},
		{"actions?before=", "before", append(
			slices.DeleteFunc(slices.Clone(counts), func(s string) bool { return s == "100001" }),
			"12345678901234567890")},
		{"trades?pair=", "pair", []string{"", "BTC", "btc_usdt", "%00", strings.Repeat("a", 5000)}},
		{"trades?pair=BTC_USDT&from=", "from", times}, {"trades?pair=BTC_USDT&to=", "to", times},
	} {
		for _, v := range q.values {
			names(q.path+v, q.name, ask("GET", "/operator/v1/"+q.path+v, ""))
		}
	}
	h.StillAt(before)
	if h.Engine.Writable() != nil || h.Engine.Pairs()[0].Halted() {
		t.Error("refused requests keep clients out")
	}
	// At their bounds, and strange but a text.
	for _, v := range []string{strings.Repeat("x", 500), strings.Repeat("\u00e9", 250), `<b>"&\`,
		"\U0001f600 "} {
		harness.Says(t, v,
			ask("POST", "/operator/v1/maintenance", `{"on":true,"message":`+harness.Quote(v)+`}`),
			200, `{"on":true,"message":`+harness.Quote(v)+`}`)
		harness.Want(t, v, h.Post("alice", "/api/v1/order-cancel-all", "all=1"), 503,
			harness.Detail("The exchange is in maintenance. "+v))
	}
	harness.Says(t, "over", ask("POST", "/operator/v1/maintenance", `{"on":false}`), 200,
		`{"on":false}`)
	a := ask("POST", "/operator/v1/withdraws/refuse",
		`{"withdraw":2,"details":`+harness.Quote(strings.Repeat("\u00e9", 512))+`}`)
	if a.Status != 200 || !strings.Contains(h.Get("carol", "/api/v1/withdraws").Body,
		strings.Repeat("\u00e9", 512)) {
		t.Errorf("%d %s", a.Status, a.Body)
	}
}

// The owner sees the transaction that pays a withdrawal, and nothing changes it.
func TestAnApprovalNamesTheTransactionThatPays(t *testing.T) {
	h := harness.Moderated(t)
	approve := func(reference string, status int, want string) {
		t.Helper()
		a := harness.AsOperator(t, h.Gateway)("POST", "/operator/v1/withdraws/approve",
			`{"withdraw":2`+reference+`}`)
		if a.Status != status || !strings.Contains(a.Body, want) {
			t.Errorf("%s: %d %s, want %d %s", reference, a.Status, a.Body, status, want)
		}
	}
	approve(`,"reference":"tx 7f"`, 200, `"state":"approved","address":"x","details":"tx 7f"`)
	approve(`,"reference":"tx 7f"`, 200, `"repeated":true`)
	approve("", 200, `"repeated":true`)
	approve(`,"reference":"tx 80"`, 400, "with the reference \\\"tx 7f\\\"")
	list := h.Get("carol", "/api/v1/withdraws/?status=30").Body
	if !strings.Contains(list, `"details":"tx 7f"`) {
		t.Error(list)
	}
}

func TestWithdrawalsAreListedForOperators(t *testing.T) {
	h := harness.Moderated(t)
	ask := harness.AsOperator(t, h.Gateway)
	ask("POST", "/operator/v1/withdraws/approve", `{"withdraw":2}`).Must(t, 200)
	h.Post("carol", "/api/v1/withdraw", "address=x&amount=1&currency=BTC")
	h.Post("carol", "/api/v1/withdraw-cancel", "withdraw=1")
	f := func(query string, want ...uint64) {
		t.Helper()
		got := harness.Decode[struct {
			Withdrawals []struct {
				Withdrawal uint64 `json:"withdraw"`
			} `json:"withdraws"`
		}](t, ask("GET", "/operator/v1/withdraws"+query, ""))
		var ids []uint64
		for _, w := range got.Withdrawals {
			ids = append(ids, w.Withdrawal)
		}
		if !slices.Equal(ids, want) {
			t.Errorf("%s: %v, want %v", query, ids, want)
		}
	}
	f("", 3) // the pending withdrawals
	f("?account=alice")
	f("?account=carol", 3, 2, 1)
	f("?account=carol&limit=2", 3, 2)
	f("?limit=1&account=carol", 3)
	h.Post("carol", "/api/v1/withdraw", "address=x&amount=1&currency=BTC")
	h.Post("carol", "/api/v1/withdraw-cancel", "withdraw=4")
	f("?account=carol", 3, 4, 2, 1) // the pending withdrawals come first
}

func TestAuditFindsTampering(t *testing.T) {
	p := &harness.Tampered{}
	h := harness.New(t, func(o *actors.Options) {
		p.Store = o.Store
		o.Store = p
	})
	h.Account("alice")
	h.Account("bob")
	plant := func(reference string, change func(w *persistence.Wallet)) {
		t.Helper()
		spoil := func(w *persistence.Writes) {
			for i := range w.Wallets {
				change(&w.Wallets[i])
			}
		}
		p.OnApply.Store(&spoil)
		h.Deposit("alice", "2", "BTC", reference)
		h.Get("alice", "/api/v1/deposits/") // the projections have it now
		p.OnApply.Store(nil)
	}
	plant("1", func(*persistence.Wallet) {})
	h.Post("alice", "/api/v1/order", harness.Order("sell", "BTC_USDT", "1", "100")).Must(t, 201)
	h.Audit()
	plant("2", func(w *persistence.Wallet) {
		w.Holdings[0].Balance = w.Holdings[0].Balance.Add(money.Amount(1).Balance())
	})
	h.Audit("account alice, BTC: projected are 4.00000001 with 1 reserved, committed 4 with 1")
	plant("3", func(w *persistence.Wallet) { w.Holdings[0].Reserve = money.Balance{} })
	h.Audit("account alice, BTC: projected are 6 with 0 reserved, committed 6 with 1")
	plant("4", func(w *persistence.Wallet) {
		w.Holdings = append(w.Holdings,
			persistence.Holding{Currency: "USDT", Balance: money.Amount(5).Balance()})
	})
	h.Audit("account alice, USDT: projected are 0.00000005, committed is nothing")
	plant("5", func(w *persistence.Wallet) { w.Holdings = nil })
	h.Audit("account alice, BTC: projected are 0 with 0 reserved, committed 10 with 1")
	plant("6", func(w *persistence.Wallet) { w.Name = "alison" })
	h.Audit("there is a projected wallet of account 1 alison, which does not exist")
	h.Crash() // the projection was wrong, and a restart does not check it
	h.Start()
	h.Audit("there is a projected wallet of account 1 alison, which does not exist")
	plant("7", func(*persistence.Wallet) {})
	h.Audit()
}

// The wallet's decision is answered even while the history hangs.
func TestAWithdrawalIsAnsweredWithoutTheHistory(t *testing.T) {
	p := &harness.Tampered{}
	h := harness.New(t, func(o *actors.Options) {
		p.Store = o.Store
		o.Store = p
	})
	h.AccountAt("carol", "carol@example.org")
	h.Deposit("carol", "10", "BTC", "r")
	type record struct {
		ID        uint64
		Timestamp json.Number
		Status    int
		Address   string
	}
	made := harness.Decode[record](t, h.Post("carol", "/api/v1/withdraw",
		"address=there&amount=1&currency=BTC"))
	harness.Decode[record](t,
		h.Post("carol", "/api/v1/withdraw", "address=there&amount=1&currency=BTC"))
	defer p.Hold()()
	f := func(path, params string, status int) {
		t.Helper()
		want := made
		want.Status = status
		if got := harness.Decode[record](t, h.Post("carol", path, params)); got != want {
			t.Errorf("%s: %+v, want %+v", path, got, want)
		}
	}
	f("/api/v1/withdraw-confirm", "code="+h.Code(1)+"&withdraw=1", 20)
	f("/api/v1/withdraw-cancel", "withdraw=1", 50)
	harness.Decode[record](t,
		h.Post("carol", "/api/v1/withdraw-confirm", "code="+h.Code(2)+"&withdraw=2"))
	a := harness.AsOperator(t, h.Gateway)("POST", "/operator/v1/withdraws/approve",
		`{"withdraw":2}`)
	if a.Status != 200 || !strings.Contains(a.Body,
		`"state":"approved","address":"there","time":`) || strings.Contains(a.Body, "repeated") {
		t.Errorf("%d %s", a.Status, a.Body)
	}
}

// A ledgerOf is one currency of a statement, read from the newest line to the oldest.
type ledgerOf struct {
	now, next *big.Rat // the newest balance, and the balance that the next line must have
	forward   bool     // the oldest line sums up the time before the history
}

func rational(t *testing.T, text string) *big.Rat {
	t.Helper()
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		t.Fatalf("%q is no number", text)
	}
	return r
}

// checkStatement adds up an account's statement, in every currency, and compares the sums with the
// account's balances.
func checkStatement(t *testing.T, h *harness.Exchange, account string) (causes map[string]int) {
	t.Helper()
	ask := harness.AsOperator(t, h.Gateway)
	lines, _ := streamed(t, ask("GET", "/operator/v1/statement?account="+account, ""))
	sums, causes := map[string]*ledgerOf{}, map[string]int{}
	for _, line := range lines {
		var l struct {
			Time, Currency, Change, Cause string
			Balance                       json.Number
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		causes[l.Cause]++
		balance, s := rational(t, l.Balance.String()), sums[l.Currency]
		if s == nil {
			s = &ledgerOf{now: balance, next: balance}
			sums[l.Currency] = s
		}
		if s.forward || balance.Cmp(s.next) != 0 || balance.Sign() < 0 {
			t.Fatalf("of %s: %s, the line after it begins with %s", account, line,
				s.next.FloatString(16))
		}
		s.next = new(big.Rat).Sub(balance, rational(t, l.Change))
		s.forward = l.Cause == "brought forward"
	}
	have := harness.Decode[struct {
		Holdings []struct {
			Currency string
			Balance  json.Number
		}
	}](t, ask("GET", "/operator/v1/account?name="+account, ""))
	for _, x := range have.Holdings {
		s := sums[x.Currency]
		switch balance := rational(t, x.Balance.String()); {
		case s == nil && balance.Sign() == 0:
		case s == nil || s.now.Cmp(balance) != 0:
			t.Errorf("%s has %s %s, its statement begins with %+v", account, x.Balance, x.Currency,
				s)
		case s.next.Sign() != 0:
			t.Errorf("%s: the statement of %s begins with %s, not with 0", account, x.Currency,
				s.next.FloatString(16))
		}
	}
	return causes
}

func TestStatementsAddUpToTheBalances(t *testing.T) {
	random := harness.Seeded(t)
	h := harness.New(t, func(o *actors.Options) {
		for i := range o.Pairs {
			o.Pairs[i].Fees = state.FeeRates{Maker: money.Rate(123_457 * i), Taker: 200_001}
		}
	})
	owners := []string{"alice", "bob", "carol", directory.FeeAccount}
	for _, name := range owners {
		if name == directory.FeeAccount { // it is an ordinary account, and may trade
			h.Key(name, name, event.AllPermissions)
		} else {
			h.AccountAt(name, name+"@example.org")
		}
		for _, currency := range []string{"BTC", "ETH", "USDT"} {
			h.Deposit(name, "100000.12345678", currency, name+currency)
		}
	}
	withdrawals := 0
	for i := range 120 {
		h.Happens(random, owners[random.IntN(4)], i, &withdrawals)
	}
	check := func() {
		t.Helper()
		all := map[string]int{}
		for _, owner := range owners {
			for cause, n := range checkStatement(t, h, owner) {
				all[cause] += n
			}
		}
		for _, cause := range []string{"deposit", "trade", "fee", "fee income", "withdraw"} {
			if all[cause] == 0 {
				t.Errorf("no statement has a %s, which proves little", cause)
			}
		}
		if all["brought forward"] > 0 {
			t.Error("the history is whole, and something is brought forward")
		}
	}
	check()
	h.Crash()
	h.Start()
	check()
}

// After the clock was set back, deposits seem to come later than their spending.
func TestAStatementAddsUpAlsoWhenTheClockWentBack(t *testing.T) {
	h := harness.New(t, nil)
	h.Account("alice")
	h.Account("bob")
	h.Deposit("bob", "100", "USDT", "r")
	const late, early = 2e15, 1e15
	h.Journal(
		event.Record{Kind: event.KindDeposit, TimeUs: late,
			Deposit: event.Deposit{ID: 2, Account: 1, Currency: 1, Amount: 3e8, Reference: "late"}},
		event.Record{Kind: event.KindOrder, Pair: 1, TimeUs: early,
			Order: event.Order{ID: 1, Account: 1, Side: 2, Price: 10e8, Amount: 3e8,
				Remaining: 3e8}},
		event.Record{Kind: event.KindOrder, Pair: 1, TimeUs: early,
			Order: event.Order{ID: 2, Account: 2, Side: 1, Price: 10e8, Amount: 3e8,
				Trades: []event.Trade{{ID: 1, Maker: 1, MakerAccount: 1, Price: 10e8,
					Amount: 3e8}}}},
		event.Record{Kind: event.KindDeposit, TimeUs: late,
			Deposit: event.Deposit{ID: 3, Account: 1, Currency: 1, Amount: 1e8,
				Reference: "later"}},
	)
	for _, name := range []string{"alice", "bob"} {
		if causes := checkStatement(t, h, name); causes["trade"] != 2 ||
			causes["brought forward"] != 0 {
			t.Errorf("%s: %v", name, causes)
		}
	}
}

func TestDepositIsUnavailableWithoutReferenceLookup(t *testing.T) {
	h, store := harness.NewStubborn(t, func(*actors.Options) {})
	ask := harness.AsOperator(t, h.Gateway)
	const body = `{"account":"bob","currency":"USDT","amount":"5","reference":"one"}`
	store.Silent.Store(true)
	a := ask("POST", "/operator/v1/deposits", body)
	if got := string(a.Header.Peek("Retry-After")); a.Status != 503 || got != "1" ||
		!strings.Contains(a.Body, "nothing was done, try again") {
		t.Errorf("%d %s, Retry-After %q", a.Status, a.Body, got)
	}
	store.Silent.Store(false)
	store.Broken.Store(true)
	a = ask("POST", "/operator/v1/deposits", body)
	if a.Status != 503 || len(a.Header.Peek("Retry-After")) > 0 ||
		!strings.Contains(a.Body, `"damaged":true`) ||
		!strings.Contains(a.Body, "nothing was done, and trying again does not help") {
		t.Errorf("a damaged entry: %d %s", a.Status, a.Body)
	}
	store.Broken.Store(false)
	for _, repeated := range []string{"", `,"repeated":true`} {
		harness.Says(t, "the deposit", ask("POST", "/operator/v1/deposits", body), 200,
			`{"deposit":3,"account":"bob","currency":"USDT","amount":5,"balance":100005,"reference":"one"`+
				repeated+
				`}`)
	}
}

func TestActionsAreListedNewestFirstWithTheirOperators(t *testing.T) {
	h := harness.New(t, nil)
	ask := harness.AsOperator(t, h.Gateway)
	auth := "Authorization: Bearer " + harness.OperatorToken
	for i, operator := range []string{"olga", "o.l-g_a+2@example.org", "", "no blanks",
		strings.Repeat("x", 65), "<b>", "ol\u00e9"} {
		a := ask("POST", "/operator/v1/accounts", fmt.Sprintf(`{"name":"account-%d"}`, i), auth,
			"X-Operator: "+operator)
		if a.Status != 200 {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
	}
	ask("POST", "/operator/v1/accounts", `{"name":"account-0"}`) // refused, so it is no action
	type action struct {
		Sequence  uint64
		Who, What string
	}
	list := func(query string) []action {
		t.Helper()
		return harness.Decode[struct{ Actions []action }](t,
			ask("GET", "/operator/v1/actions"+query, "")).Actions
	}
	all := list("")
	for i, operator := range []string{"operator", "operator", "operator", "operator", "operator",
		"o.l-g_a+2@example.org", "olga"} {
		if i >= len(all) || all[i].Who != operator+" from 127.0.0.1" ||
			all[i].What != fmt.Sprintf("opened account account-%d ()", 6-i) {
			t.Fatalf("action %d of %+v is not one of %s", i, all, operator)
		}
	}
	if len(all) != 7 {
		t.Errorf("%d actions", len(all))
	}
	for query, want := range map[string][]action{
		"?limit=2": all[:2], "?limit=100000": all,
		fmt.Sprintf("?before=%d", all[1].Sequence):         all[2:],
		fmt.Sprintf("?limit=1&before=%d", all[3].Sequence): all[4:5], "?before=1": {},
	} {
		if got := list(query); !slices.Equal(got, want) {
			t.Errorf("%s: %+v, want %+v", query, got, want)
		}
	}
	h.Crash()
	h.Start()
	ask = harness.AsOperator(t, h.Gateway)
	if got := list(""); !slices.Equal(got, all) {
		t.Errorf("after a crash: %+v", got)
	}
}

func TestAnAccountIsShownWithItsNewestOrders(t *testing.T) {
	h := harness.Traded(t)
	for i := range 25 {
		pair := []string{"BTC_USDT", "ETH_USDT"}[i%2]
		h.Post("bob", "/api/v1/order", harness.Order("buy", pair, "0.5", strconv.Itoa(i+1))).Must(t,
			201)
	}
	got := harness.Decode[struct {
		Account, Email string
		ID             int
		Frozen         bool
		Holdings       []struct {
			Currency                    string
			Balance, Reserve, Available json.Number
		}
		Open   int `json:"open_orders"`
		Orders []struct {
			Order      uint64
			Pair, Type string
		} `json:"newest_orders"`
		Withdrawals []struct{} `json:"pending_withdraws"`
	}](t, harness.AsOperator(t, h.Gateway)("GET", "/operator/v1/account?name=bob", ""))
	if got.Account != "bob" || got.ID != 2 || got.Frozen || got.Open != 26 ||
		len(got.Orders) != 20 || got.Orders[0].Order != 28 || got.Orders[19].Order != 9 ||
		got.Orders[0].Pair != "BTC_USDT" || got.Withdrawals == nil {
		t.Errorf("%+v", got)
	}
	if x := got.Holdings; len(x) != 2 || x[1].Currency != "USDT" || x[1].Balance != "899.5" ||
		x[1].Reserve != "162.5000001" || x[1].Available != "736.9999999" {
		t.Errorf("%+v", x)
	}
}
