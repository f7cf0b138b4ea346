package api_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"exchange/actors"
	"exchange/core/event"
	"exchange/prove/harness"
)

// The lists are compared with the sums of the answers to orders and cancels, filtered in the
// obvious way.

type listedOrder struct {
	ID       uint64
	Pair     string
	Type     string
	Status   int
	Price    int
	Amount   int    // the remaining amount
	Filled   int    `json:"amount_filled"`
	Original int    `json:"amount_original"`
	ClientID string `json:"client_order_id"`
	Date     int64
	owner    string
}

type listedTrade struct {
	ID           uint64
	Price        int
	Pair         string
	Type         string
	Timestamp    float64
	Amount       int
	MySide       string `json:"my_side"`
	Fee          *int
	FeeCurrency  string `json:"fee_currency"`
	taker, maker string
}

// A model is everything that happened, by the answers.
type model struct {
	orders map[uint64]*listedOrder
	trades []listedTrade
}

func opposite(side string) string {
	if side == "buy" {
		return "sell"
	}
	return "buy"
}

func (m *model) place(t *testing.T, h *harness.Exchange, owner, side, pair string, amount,
	price int, clientID string) {
	t.Helper()
	p := "amount=" + strconv.Itoa(amount)
	if clientID != "" {
		p += "&client_order_id=" + clientID
	}
	p += fmt.Sprintf("&pair=%s&price=%d&type=%s", pair, price, side)
	got := harness.Decode[struct {
		OID, Amount int
		Date        float64
		Trades      []struct {
			TID, OID uint64
			Price    int
			Amount   int
			Maker    uint64 `json:"o_id"`
		}
	}](t, h.Post(owner, "/api/v1/order", p))
	o := &listedOrder{ID: uint64(got.OID), Pair: pair, Type: side, Status: 1, Price: price,
		Amount: amount, Original: amount, ClientID: clientID, owner: owner}
	m.orders[o.ID] = o
	for _, x := range got.Trades {
		maker := m.orders[x.Maker]
		for _, of := range []*listedOrder{o, maker} {
			of.Amount -= x.Amount
			of.Filled += x.Amount
			if of.Amount == 0 {
				of.Status = 3
			}
		}
		m.trades = append(m.trades, listedTrade{ID: x.TID, Price: x.Price, Pair: pair, Type: side,
			Amount: x.Amount, Timestamp: got.Date, taker: owner, maker: maker.owner})
	}
	if o.Amount != got.Amount {
		t.Fatalf("order %d has %d left, its trades leave %d", o.ID, got.Amount, o.Amount)
	}
}

// history makes some hundred orders of two accounts, a fifth of them cancelled, with trades of
// every kind.
func history(t *testing.T, h *harness.Exchange, random *rand.Rand) *model {
	m := &model{orders: map[uint64]*listedOrder{}}
	owners := []string{"alice", "bob"}
	for _, name := range append(owners, "carol") {
		h.Account(name)
		for _, c := range []string{"BTC", "ETH", "USDT"} {
			h.Deposit(name, "10000000", c, name+c)
		}
	}
	for i := range 400 {
		owner := owners[random.IntN(2)]
		id := ""
		if i%7 == 0 {
			id = "id-" + strconv.Itoa(i)
		}
		m.place(t, h, owner, []string{"buy", "sell"}[random.IntN(2)],
			harness.ListPairs[random.IntN(3)], 1+random.IntN(9), 10+random.IntN(12), id)
		if random.IntN(4) == 0 {
			var open []*listedOrder
			for _, o := range m.orders {
				if o.Status == 1 {
					open = append(open, o)
				}
			}
			if len(open) == 0 {
				continue
			}
			slices.SortFunc(open, func(a, b *listedOrder) int { return cmp.Compare(a.ID, b.ID) })
			o := open[random.IntN(len(open))]
			h.Post(o.owner, "/api/v1/order-cancel/",
				"order="+strconv.FormatUint(o.ID, 10)).Must(t, 200)
			o.Status = 2
		}
	}
	return m
}

// page cuts a filtered list as limit and offset do.
func page[T any](list []T, offset, limit int) []T {
	list = list[min(offset, len(list)):]
	return list[:min(limit, len(list))]
}

// A query is a random set of parameters, as text and as their meaning.
type query struct {
	text                    []string
	pair, side, mine, id    string
	status, offset, limit   int
	before, after           uint64
	since, until            float64
	ascending               bool
	random                  *rand.Rand
	defaultLimit, mostLimit int
}

func (q *query) flip() bool { return q.random.IntN(3) == 0 }

func (q *query) add(name string, value any) {
	q.text = append(q.text, fmt.Sprintf("%s=%v", name, value))
}

// common draws the common parameters of the lists of orders and trades.
func (q *query) common(last uint64) {
	if q.flip() {
		q.pair = harness.ListPairs[q.random.IntN(3)]
		q.add("pair", q.pair)
	}
	q.page(last)
}

// page draws the parameters that all id lists have.
func (q *query) page(last uint64) {
	q.limit = q.defaultLimit
	if q.flip() {
		n := []int{1, 2, 7, 50, q.mostLimit, q.mostLimit + 1, 1 << 40}[q.random.IntN(7)]
		q.limit = min(n, q.mostLimit)
		q.add("limit", n)
	}
	if q.flip() {
		q.offset = []int{0, 1, 3, 40, 100_000}[q.random.IntN(5)]
		q.add("offset", q.offset)
	}
	if q.flip() {
		q.before = 1 + q.random.Uint64N(last+2)
		q.add("before", q.before)
	}
}

// follow draws the parameters of a client that follows the trades of a pair. The list ascends if it
// begins after an id.
func (q *query) follow(trades []listedTrade) {
	if q.pair == "" {
		return
	}
	some := trades[q.random.IntN(len(trades))]
	if q.flip() {
		q.after, q.ascending = some.ID-uint64(q.random.IntN(2)), true
		q.add("after", q.after)
	}
	if q.flip() {
		q.since = some.Timestamp
		q.add("since", strconv.FormatFloat(q.since, 'f', 6, 64))
	}
	if q.flip() {
		q.until = trades[q.random.IntN(len(trades))].Timestamp
		q.add("until", strconv.FormatFloat(q.until, 'f', 6, 64))
	}
}

func (q *query) drawSide(name string) string {
	if !q.flip() {
		return ""
	}
	side := []string{"buy", "sell"}[q.random.IntN(2)]
	q.add(name, side)
	return side
}

func (q *query) String() string {
	q.random.Shuffle(len(q.text), func(i, j int) { q.text[i], q.text[j] = q.text[j], q.text[i] })
	return "?" + strings.Join(q.text, "&")
}

func TestListsMatchNaiveFilter(t *testing.T) {
	random := harness.Seeded(t)
	h := harness.New(t, nil)
	m := history(t, h, random)
	check := func() {
		t.Helper()
		for _, owner := range []string{"alice", "bob"} {
			m.checkOrders(t, h, owner, random)
			m.checkOwnTrades(t, h, owner, random)
		}
		m.checkTrades(t, h, random)
		for _, list := range []string{"orders/own", "exchanges/own"} {
			harness.Want(t, "carol's "+list, h.Get("carol", "/api/v1/"+list+"/"), 200, "[]")
		}
		for id, o := range m.orders {
			if id%10 == 0 {
				got := harness.Decode[listedOrder](t, h.Get(o.owner,
					"/api/v1/order/"+strconv.FormatUint(id, 10)))
				if got.Date = 0; got.ID != id || got.Status != o.Status || got.Amount != o.Amount ||
					got.Filled != o.Filled {
					t.Errorf("order %d: got %+v, want %+v", id, got, *o)
				}
				harness.Want(t, "of another",
					h.Get("carol", "/api/v1/order/"+strconv.FormatUint(id, 10)),
					404, harness.Detail("Not found."))
			}
		}
	}
	check()
	h.Crash()
	h.Start()
	check()
}

func (m *model) checkOrders(t *testing.T, h *harness.Exchange, owner string, random *rand.Rand) {
	t.Helper()
	var all []*listedOrder
	for _, o := range m.orders {
		if o.owner == owner {
			all = append(all, o)
		}
	}
	slices.SortFunc(all, func(a, b *listedOrder) int { return cmp.Compare(b.ID, a.ID) })
	for i := range 100 {
		q := &query{random: random, defaultLimit: 2000, mostLimit: 2000}
		if q.common(all[0].ID); i == 0 {
			*q = query{random: random, limit: 2000}
		} else {
			q.side = q.drawSide("type")
			if q.flip() {
				q.status = 1 + random.IntN(3)
				q.add("status", q.status)
			}
			if random.IntN(8) == 0 {
				q.id = "id-" + strconv.Itoa(7*random.IntN(40))
				q.add("client_order_id", q.id)
			}
		}
		var expected []*listedOrder
		for _, o := range all {
			if (q.pair == "" || o.Pair == q.pair) && (q.side == "" || o.Type == q.side) &&
				(q.status == 0 || o.Status == q.status) &&
				(q.id == "" || o.ClientID == q.id) && (q.before == 0 || o.ID < q.before) {
				expected = append(expected, o)
			}
		}
		expected = page(expected, q.offset, q.limit)
		path := "/api/v1/orders/own/" + q.String()
		a := h.Get(owner, path)
		harness.WellFormed(t, path, a)
		got := harness.Decode[[]listedOrder](t, a)
		if len(got) != len(expected) {
			t.Fatalf("%s of %s: %d orders, want %d", path, owner, len(got), len(expected))
		}
		for i, o := range got {
			if o.Date == 0 {
				t.Errorf("%s: order %d has no date", path, o.ID)
			}
			o.Date, o.owner = 0, owner
			if o != *expected[i] {
				t.Fatalf("%s of %s: got %+v, want %+v", path, owner, o, *expected[i])
			}
		}
	}
}

func (m *model) checkTrades(t *testing.T, h *harness.Exchange, random *rand.Rand) {
	t.Helper()
	for range 80 {
		q := &query{random: random, defaultLimit: 100, mostLimit: 1000}
		q.common(m.trades[len(m.trades)-1].ID)
		q.follow(m.trades)
		m.compare(t, q, "/api/v1/exchanges/",
			func(path string) harness.Answer { return h.Do("GET", path, "", "") },
			func(listedTrade) (string, bool) { return "", true })
	}
}

func (m *model) checkOwnTrades(t *testing.T, h *harness.Exchange, owner string, random *rand.Rand) {
	t.Helper()
	for range 80 {
		q := &query{random: random, defaultLimit: 100, mostLimit: 1000}
		q.common(m.trades[len(m.trades)-1].ID)
		q.follow(m.trades)
		q.side, q.mine = q.drawSide("type"), q.drawSide("my_side")
		m.compare(t, q, "/api/v1/exchanges/own/",
			func(path string) harness.Answer { return h.Get(owner, path) },
			func(x listedTrade) (string, bool) {
				mine := x.Type
				if x.taker != owner {
					mine = opposite(mine)
				}
				return mine, (x.taker == owner || x.maker == owner) &&
					(q.mine == "" || q.mine == mine)
			})
	}
}

// compare requests a list of trades. side gives one's own side in a trade, and whether it is
// listed.
func (m *model) compare(t *testing.T, q *query, path string, ask func(string) harness.Answer,
	side func(listedTrade) (string, bool)) {
	t.Helper()
	if q.flip() {
		q.ascending = q.flip()
		q.add("ordering", map[bool]string{true: "id", false: "-id"}[q.ascending])
	}
	var expected []listedTrade
	for _, x := range m.trades {
		mine, listed := side(x)
		if !listed || q.pair != "" && x.Pair != q.pair || q.side != "" && x.Type != q.side ||
			q.before != 0 && x.ID >= q.before || x.ID <= q.after || x.Timestamp < q.since ||
			q.until != 0 && x.Timestamp > q.until {
			continue
		}
		if x.MySide = mine; mine != "" {
			base, quote, _ := strings.Cut(x.Pair, "_")
			x.FeeCurrency = map[string]string{"buy": base, "sell": quote}[mine]
		}
		x.taker, x.maker = "", ""
		expected = append(expected, x)
	}
	if !q.ascending {
		slices.Reverse(expected)
	}
	expected = page(expected, q.offset, q.limit)
	path += q.String()
	a := ask(path)
	harness.WellFormed(t, path, a)
	got := harness.Decode[[]listedTrade](t, a)
	if len(got) != len(expected) {
		t.Fatalf("%s: %d trades, want %d", path, len(got), len(expected))
	}
	for i, x := range got {
		if (x.Fee != nil) != (x.MySide != "") || x.Fee != nil && *x.Fee != 0 {
			t.Errorf("%s: trade %d has a wrong fee", path, x.ID)
		}
		if x.Fee = nil; x != expected[i] {
			t.Fatalf("%s: got %+v, want %+v", path, x, expected[i])
		}
	}
}

// A listedTransfer is a deposit, or a withdrawal, which has a status.
type listedTransfer struct {
	ID               uint64
	Timestamp        float64
	Currency         string
	Amount           json.Number
	Status           int
	Address, Details string
	Adjustment       bool
	owner            string
}

// transfers makes deposits and withdrawals of two accounts, the latter with every status, and gives
// both, oldest first.
func transfers(t *testing.T, h *harness.Exchange,
	random *rand.Rand) (deposits, withdrawals []*listedTransfer) {
	t.Helper()
	owners, codes := []string{"alice", "bob"}, []string{"BTC", "ETH", "USDT"}
	for _, name := range append(owners, "carol") {
		h.AccountAt(name, name+"@example.org")
	}
	for i := range 60 {
		x := &listedTransfer{ID: uint64(i + 1), Currency: codes[random.IntN(3)],
			Amount: json.Number(strconv.Itoa(1 + random.IntN(9))), owner: owners[random.IntN(2)]}
		if i < 6 {
			x.owner, x.Currency, x.Amount = owners[i%2], codes[i/2], "1000"
		}
		h.Deposit(x.owner, x.Amount.String(), x.Currency, strconv.Itoa(i))
		deposits = append(deposits, x)
	}
	for i := range 60 {
		x := &listedTransfer{ID: uint64(i + 1), Status: 10, Currency: codes[random.IntN(3)],
			Amount: "0.5", Address: fmt.Sprint("to-", i), owner: owners[random.IntN(2)]}
		got := harness.Decode[listedTransfer](t,
			h.Post(x.owner, "/api/v1/withdraw",
				"address="+x.Address+"&amount=0.5&currency="+x.Currency))
		if got.Timestamp == 0 {
			t.Fatalf("a withdrawal without a time: %+v", got)
		}
		x.Timestamp = got.Timestamp
		withdrawals = append(withdrawals, x)
	}
	for _, x := range withdrawals {
		step := func(path, params string, status int) {
			t.Helper()
			if got := harness.Decode[listedTransfer](t,
				h.Post(x.owner, path, params)); got.Status != status || got.ID != x.ID ||
				got.Timestamp != x.Timestamp || got.Address != x.Address || got.Amount != x.Amount {
				t.Fatalf("%s: %+v, the withdrawal is %+v", path, got, *x)
			}
			x.Status = status
		}
		end := random.IntN(6)
		if end < 4 {
			step("/api/v1/withdraw-confirm",
				fmt.Sprintf("code=%s&withdraw=%d", h.Code(x.ID), x.ID), 20)
		}
		switch end {
		case 0, 1:
			x.Status = 30 + 10*end
			if end == 1 {
				x.Details = fmt.Sprint("because ", x.ID)
			}
			c, err := h.Engine.SetWithdrawalStatus("test", x.ID, uint8(x.Status), x.Details)
			if err != nil || c.Outcome() != actors.Accepted {
				t.Fatalf("withdraw %d: %v", x.ID, err)
			}
			c.Free()
		case 2, 4:
			step("/api/v1/withdraw-cancel", fmt.Sprintf("withdraw=%d", x.ID), 50)
		}
	}
	return deposits, append(withdrawals, adjustments(t, h, uint64(len(withdrawals)))...)
}

// adjustments takes some of each currency from two accounts, and returns the listed rows.
func adjustments(t *testing.T, h *harness.Exchange, last uint64) (list []*listedTransfer) {
	t.Helper()
	for i, code := range []string{"BTC", "ETH", "USDT", "BTC", "ETH", "USDT"} {
		x := &listedTransfer{ID: last + uint64(i+1), Status: 30, Currency: code, Amount: "0.25",
			Details: "twice", Adjustment: true, owner: []string{"alice", "bob"}[i%2]}
		reference := harness.Must(event.NewClientID(fmt.Sprint("wire-", i)))
		c, err := h.Engine.Adjust("test", h.Engine.Key([]byte("key-"+x.owner)).Account.ID,
			h.Engine.Currency([]byte(code)).Number, 25_000_000, x.Details, reference)
		if err != nil || c.Outcome() != actors.Accepted {
			t.Fatalf("adjustment %d: %v", x.ID, err)
		}
		x.Timestamp = float64(c.Withdrawal().TimeUs) / 1e6
		c.Free()
		list = append(list, x)
	}
	return list
}

func TestTransfersMatchNaiveFilter(t *testing.T) {
	random := harness.Seeded(t)
	most := 100
	h := harness.New(t, func(o *actors.Options) { o.Limits.PendingWithdrawals = most })
	deposits, withdrawals := transfers(t, h, random)
	f := func(owner, path string, all []*listedTransfer, withStatus bool) {
		t.Helper()
		q := &query{random: random, defaultLimit: 100, mostLimit: 1000}
		q.page(uint64(len(all)))
		currency := ""
		if q.flip() {
			currency = []string{"BTC", "ETH", "USDT"}[random.IntN(3)]
			q.add("currency_id", currency)
		}
		if withStatus && q.flip() {
			q.status = 10 + 10*random.IntN(5)
			q.add("status", q.status)
		}
		var expected []*listedTransfer
		for _, x := range slices.Backward(all) {
			if x.owner == owner && (currency == "" || x.Currency == currency) &&
				(q.status == 0 || x.Status == q.status) && (q.before == 0 || x.ID < q.before) {
				expected = append(expected, x)
			}
		}
		expected = page(expected, q.offset, q.limit)
		path += q.String()
		a := h.Get(owner, path)
		harness.WellFormed(t, path, a)
		got := harness.Decode[[]listedTransfer](t, a)
		if len(got) != len(expected) {
			t.Fatalf("%s of %s: %d rows, want %d", path, owner, len(got), len(expected))
		}
		for i, x := range got {
			if x.owner = owner; !withStatus { // the answer to a deposit lacks its time
				x.Timestamp = 0
			}
			if x != *expected[i] {
				t.Fatalf("%s of %s: got %+v, want %+v", path, owner, x, *expected[i])
			}
		}
	}
	check := func() {
		t.Helper()
		for range 60 {
			for _, owner := range []string{"alice", "bob", "carol"} {
				f(owner, "/api/v1/deposits/", deposits, false)
				f(owner, "/api/v1/withdraws/", withdrawals, true)
			}
		}
		if a := h.Do("GET", "/api/v1/deposits/?limit=1", "", "",
			harness.Signed("alice", h.NextNonce("alice"), "")...); strings.Contains(a.Body,
			`"timestamp":0`) {
			t.Errorf("a deposit without its time: %s", a.Body)
		}
	}
	check()
	h.Crash()
	most = 1 // pending withdrawals stay, and are listed
	h.Start()
	check()
	h.Stop()
	h.Start()
	check()
}

func TestAnOrderBookIsCutByItsLimitsAndGrouped(t *testing.T) {
	h := harness.New(t, nil)
	h.Account("alice")
	for _, c := range []string{"BTC", "USDT"} {
		h.Deposit("alice", "1000", c, c)
	}
	// The order's number is its amount.
	for i, o := range []struct{ side, price string }{{"sell", "20"}, {"sell", "21"}, {"sell", "20"},
		{"sell", "20.5"}, {"buy", "10"}, {"buy", "9.5"}, {"buy", "10"}, {"buy", "11"},
		{"buy", "9.5"}} {
		h.Post("alice", "/api/v1/order",
			harness.Order(o.side, "BTC_USDT", strconv.Itoa(i+1), o.price)).Must(t, 201)
	}
	f := func(query, sell, buy string) {
		t.Helper()
		a := h.Do("GET", "/api/v1/orderbook/BTC_USDT/?"+query, "", "")
		harness.WellFormed(t, query, a)
		type entry struct {
			ID            uint64
			Timestamp     float64
			Price, Amount json.Number
		}
		side := func(list []entry) string {
			var b []string
			for _, o := range list {
				text := o.Amount.String() + "@" + o.Price.String()
				if grouped := strings.Contains(query, "group=1"); grouped != (o.ID == 0) ||
					grouped != (o.Timestamp == 0) ||
					!grouped && strconv.FormatUint(o.ID, 10) != o.Amount.String() {
					t.Errorf("%s: %+v", query, o)
				}
				b = append(b, text)
			}
			return strings.Join(b, " ")
		}
		got := harness.Decode[struct{ Sell, Buy []entry }](t, a)
		if s, b := side(got.Sell), side(got.Buy); s != sell || b != buy {
			t.Errorf("%s:\n got %s | %s\nwant %s | %s", query, s, b, sell, buy)
		}
		if id := string(a.Header.Peek("X-Update-Id")); id != "9" {
			t.Errorf("%s: X-Update-Id %s after 9 changes", query, id)
		}
	}
	const sells, buys = "1@20 3@20 4@20.5 2@21", "8@11 5@10 7@10 6@9.5 9@9.5"
	f("", sells, buys)
	f("group=0", sells, buys)
	f("limit_sell=9999999999999999999&limit_buy=4", sells, "8@11 5@10 7@10 6@9.5")
	f("limit_sell=1", "1@20", buys)
	f("limit_buy=2", sells, "8@11 5@10")
	f("limit_sell=2&limit_buy=1&group=0", "1@20 3@20", "8@11")
	f("limit_asks=1&limit_bids=3", "1@20", "8@11 5@10 7@10")
	f("limit_asks=1&limit_sell=3&limit_bids=1&limit_buy=2", "1@20 3@20 4@20.5", "8@11 5@10")
	f("limit_buy=1&limit_bids=2", sells, "8@11")
	f("limit_sell=3&limit_sell=1", "1@20", buys)
	f("group=1", "4@20 4@20.5 2@21", "8@11 12@10 15@9.5")
	f("group=1&limit_sell=1&limit_buy=2", "4@20", "8@11 12@10")
	f("group=1&limit_asks=2&limit_bids=1", "4@20 4@20.5", "8@11")
	f("group=1&limit_sell=100&limit_buy=9999999999", "4@20 4@20.5 2@21", "8@11 12@10 15@9.5")
}
