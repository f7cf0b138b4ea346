package api_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"exchange/actors"
	"exchange/actors/committed"
	"exchange/core/money"
	"exchange/core/trading"
	"exchange/persistence"
	"exchange/persistence/memory"
	"exchange/prove/harness"
)

var (
	trialSeeds = flag.Int("trial.seeds", 12, "how many seeds of orders are tried and placed")
	trialFirst = flag.Uint64("trial.first", 1, "the first of these seeds")
)

// Orders are drawn at random, at the edges of all rules and limits. Each is tried first, and placed
// then, with nothing in between. Both answers are the same. They may differ only as described on
// the page of order types: a trial ignores restrictions by the last price and the prices in the
// book. It writes nothing, and its money and price are right.
//
// A failure names its seed: -trial.first=SEED -trial.seeds=1 runs it again.
func TestATrialAnswersAsPlacingTheOrderDoes(t *testing.T) {
	seen := map[string]int{}
	for seed := *trialFirst; seed < *trialFirst+uint64(*trialSeeds); seed++ {
		c := newTrials(t, seed, seen)
		for range 300 {
			c.between()
			c.tryAndPlace()
			if t.Failed() {
				t.Fatalf("seed %d, after %s", seed, strings.Join(c.last, "\n"))
			}
		}
		c.Stop()
	}
	t.Log(seen)
	if *trialSeeds < 12 {
		return
	}
	for _, what := range []string{"200 201", "200 would_trade", "200 would_trigger",
		"200 price_band", "no_liquidity", "price_band", "too_many_stops", "too_many_gtd", "funds",
		"fields", "halted", "frozen", "taken", "detail"} {
		if seen[what] < 5 {
			t.Errorf("of the orders only %d were answered with %s", seen[what], what)
		}
	}
}

// trials are orders of one seed on an exchange of their own.
type trials struct {
	*harness.Exchange
	rng    *rand.Rand
	seen   map[string]int // answers, of all seeds
	last   []string       // orders, the newest ones
	market edges
	form   map[string]string // of the order
}

// Edges are what the drawn values of an order are near to.
type edges struct {
	last, buy, sell money.Price
	available       map[string]money.Amount
}

var traders = []string{"alice", "bob", "carol"}

func newTrials(t *testing.T, seed uint64, seen map[string]int) *trials {
	c := &trials{rng: rand.New(rand.NewPCG(seed, 1)), seen: seen}
	disk := memory.NewDisk()
	c.Exchange = &harness.Exchange{T: t, Nonces: map[string]uint64{}}
	c.Open = func() persistence.Store { return memory.Open(disk, persistence.Retention{}) }
	c.Change = func(o *actors.Options) {
		p := &o.Pairs[0]
		p.PriceTick, p.AmountStep = 5_000_000, 100_000
		p.MinimumOrderSize, p.MaximumOrderSize = 1_000_000, 1_000e8
		p.MinimumOrderValue = money.Amount(1e8).Balance()
		p.PriceBand = oneOf(c.rng, money.Rate(0), 2_000_000, 10_000_000, 33_333_333)
		p.MarketCollar = oneOf(c.rng, money.Rate(5_000_000), 1_234_567)
		p.StopCollar = oneOf(c.rng, money.Rate(5_000_000), 12_345_678)
		l := &o.Limits
		l.OpenOrdersPerAccount, l.OpenOrdersPerAccountAndBook, l.OpenOrdersPerBook = 12, 11, 20
		l.StopsPerAccountAndBook, l.StopsPerBook = 3, 5
		l.GTDPerAccountAndBook, l.GTDPerBook = 2, 3
		l.MaxFills = 3
	}
	c.Start()
	for i, name := range traders {
		c.Account(name)
		for currency, amount := range map[string]string{
			"BTC":  []string{"100000", "30", "0.05"}[i],
			"USDT": []string{"10000000", "3000", "5"}[i]} {
			c.Deposit(name, amount, currency, name+currency)
		}
	}
	return c
}

func oneOf[T any](rng *rand.Rand, list ...T) T { return list[rng.IntN(len(list))] }

// in reports true once in n times.
func (c *trials) in(n int) bool { return c.rng.IntN(n) == 0 }

// rests waits until all triggered orders are done, and both sides are equal.
func (c *trials) rests() {
	harness.Worked(c.T, harness.AtRest(c.Engine))
}

// between sometimes makes a change before an order is tried.
func (c *trials) between() {
	name := oneOf(c.rng, traders...)
	switch c.rng.IntN(60) {
	case 0, 1:
		c.Post(name, "/api/v1/order-cancel-all/", "all=1")
	case 3, 4:
		c.Post(name, "/api/v1/trading-settings/", "self_trade="+oneOf(c.rng, "none",
			"cancel_newest", "cancel_oldest", "cancel_both"))
	case 5:
		c.operate(c.Engine.Halt("test", "BTC_USDT", true))
	case 6:
		c.operate(c.Engine.Freeze("test", name, true))
	case 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19:
		c.operate(c.Engine.Halt("test", "BTC_USDT", false))
		for _, name := range traders {
			c.operate(c.Engine.Freeze("test", name, false))
		}
	}
	c.rests()
}

func (c *trials) operate(_ actors.Admin, err error) {
	if err != nil {
		c.T.Fatal(err)
	}
}

// observe records the values that the edges of an account's order depend on.
func (c *trials) observe(account string) {
	v := harness.Must(c.Engine.View(committed.ViewTicker, c.Engine.PairNamed("BTC_USDT"), 0, 0, 0))
	c.market = edges{v.Ticker.Last, v.Ticker.Buy, v.Ticker.Sell, map[string]money.Amount{}}
	for currency, units := range c.wallet(account) {
		c.market.available[currency] = money.Amount(units.Int64() / 1e8)
	}
}

// wallet returns what an account may spend of each currency, in units of 1e-16.
func (c *trials) wallet(account string) map[string]*big.Int {
	all := map[string]*big.Int{}
	for _, currency := range []string{"BTC", "USDT"} {
		q := &committed.Means{Pair: c.Engine.PairNamed("BTC_USDT").Number,
			Currency: c.Engine.CurrencyNumber(currency)}
		err := c.Engine.Ask(q, c.Engine.Key([]byte("key-"+account)), 0)
		if err != nil && !errors.Is(err, committed.ErrFrozen) { // a frozen one may spend nothing
			c.T.Fatal(err)
		}
		hi, lo := q.Available.Bits()
		units := new(big.Int).Lsh(new(big.Int).SetUint64(hi), 64)
		all[currency] = units.Or(units, new(big.Int).SetUint64(lo))
	}
	return all
}

// price draws a price at an edge: around a reference, its bands and collars, and at the ends.
func (c *trials) price(references ...money.Price) string {
	rules := c.Engine.PairNamed("BTC_USDT").Rules()
	reference := oneOf(c.rng, references...)
	if reference == 0 {
		reference = 100e8
	}
	p := reference
	switch c.rng.IntN(30) {
	case 0, 1, 2, 6, 7:
		side := trading.Side(1 + c.rng.IntN(2))
		rate := oneOf(c.rng, rules.PriceBand, rules.MarketCollar, rules.StopCollar)
		p = trading.Furthest(side, reference, rate, rules.PriceTick)
	case 3:
		return oneOf(c.rng, "0.05", "0.1", "92233720368.5", "92233720368.55", "0", "0.01", "x",
			"-1", "1e2", "1e-1", "100.001", "+1", "")
	case 4, 5:
		p = 90e8 + 5e8*money.Price(c.rng.IntN(5))
	}
	p += money.Price(c.rng.IntN(5)-2) * rules.PriceTick
	return max(p, 0).String()
}

// amount draws an amount at an edge: of the sizes, of the value at a price, and of the money.
func (c *trials) amount(price string) string {
	const step = 100_000
	p, err := money.ParsePrice(price)
	if err != nil || p == 0 {
		p = 100e8
	}
	a := money.Amount(0)
	switch c.rng.IntN(24) {
	case 0:
		a = 1_000_000
	case 1:
		a = 1_000e8
	case 2: // of a value of 1
		a = money.Amount(new(big.Int).Div(big.NewInt(1e16), big.NewInt(int64(p))).Int64())
	case 3:
		a = c.market.available["BTC"]
	case 4:
		units := new(big.Int).Mul(big.NewInt(int64(c.market.available["USDT"])), big.NewInt(1e8))
		a = money.Amount(min(units.Div(units, big.NewInt(int64(p))).Int64(), 2_000e8))
	case 5:
		return oneOf(c.rng, "0", "0.0105", "x", "-1", "1e1", "0.123456789", "1e19", "")
	default:
		return oneOf(c.rng, "1", "0.5", "2", "0.1")
	}
	a = min(a-a%step, 1_000_000e8) + money.Amount(c.rng.IntN(3)-1)*step
	return max(a, 0).String()
}

// sum draws a sum to spend at an edge.
func (c *trials) sum() string {
	a := oneOf[money.Amount](c.rng, 1e8, 100e8, 10e8, c.market.available["USDT"],
		money.Amount(c.market.sell/100), 100_000e8)
	a = max(a+money.Amount(c.rng.IntN(3)-1)*oneOf[money.Amount](c.rng, 1, 1e6), 0)
	if c.in(8) {
		return oneOf(c.rng, "0", "x")
	}
	return a.String()
}

// end draws the end of an order.
func (c *trials) end() string {
	ahead := int64(1000)
	if c.in(6) {
		ahead = oneOf[int64](c.rng, 366*86400-100, 366*86400+100, 0, -1)
	}
	return strconv.FormatInt(time.Now().Unix()+ahead, 10)
}

// A kind of order is a set of instructions.
func (c *trials) kinds() []func() {
	says := func(fields ...string) func() {
		return func() {
			for i := 0; i < len(fields); i += 2 {
				c.form[fields[i]] = fields[i+1]
			}
		}
	}
	trigger := func(name string) {
		c.form[name] = c.price(c.market.last, c.market.last, 90e8, 110e8)
		at, _ := money.ParsePrice(c.form[name])
		c.form["price"] = c.price(at, at, c.market.last)
		c.form["amount"] = c.amount(c.form["price"])
	}
	market := func() {
		c.form["order_type"] = "market"
		if !c.in(4) {
			delete(c.form, "price")
		}
	}
	return []func(){
		says(), says(), says("self_trade", "cancel_oldest"), says("time_in_force", "ioc"),
		says("time_in_force", "fok"), says("time_in_force", "fok", "self_trade", "cancel_both"),
		says("post_only", "1"), says("post_only", "slide"), says("timeInForce", "PO"),
		says("post_only", "slide"),
		func() { says("time_in_force", "gtd", "expire_time", c.end())() },
		func() { says("time_in_force", "GTD", "expire_time", c.end())() },
		func() { says("time_in_force", "gtd", "expire_time", c.end(), "postOnly", "true")() },
		market, market,
		func() { market(); c.form["time_in_force"] = oneOf(c.rng, "fok", "ioc", "gtc") },
		func() { market(); delete(c.form, "amount"); c.form["quote_amount"] = c.sum() },
		func() {
			amount, _ := money.ParseAmount(c.form["amount"])
			c.form["display_amount"] = max(oneOf(c.rng, amount/20, amount/20+100_000,
				amount/20-100_000, 1_000_000, 900_000, amount, amount-100_000), 0).String()
		},
		func() { trigger("trigger_price") }, func() { trigger("stopPrice") },
		func() { trigger("stopLossPrice") }, func() { trigger("takeProfitPrice") },
		func() { trigger("trigger_price"); c.form["trigger_when"] = oneOf(c.rng, "rise", "fall") },
		func() { trigger("trigger_price"); market() },
		func() { trigger("trigger_price"); c.form["post_only"] = oneOf(c.rng, "1", "slide") },
		func() {
			trigger("trigger_price")
			says("time_in_force", "gtd", "expire_time", c.end())()
		},
		func() {
			trigger("oco_trigger_price")
			c.form["type"], c.form["price"] = "sell", c.price(c.market.last, 110e8, 120e8)
		},
		func() {
			trigger("oco_trigger_price")
			at, _ := money.ParsePrice(c.form["oco_trigger_price"])
			c.form["oco_price"] = c.price(at)
			c.form["type"], c.form["price"] = "sell", c.price(c.market.last, 110e8, 120e8)
		},
	}
}

// draw draws an order.
func (c *trials) draw() string {
	price := c.price(c.market.last, c.market.buy, c.market.sell, c.market.buy, c.market.sell)
	c.form = map[string]string{"pair": "BTC_USDT", "type": oneOf(c.rng, "buy", "sell"),
		"price": price, "amount": c.amount(price)}
	if c.in(20) {
		c.form["pair"], c.form["amount"] = oneOf(c.rng, "ETH_USDT", "ETH_BTC", "BTC_EUR"), "0.01"
	}
	if c.in(3) {
		c.form["client_order_id"] = "c" + strconv.Itoa(c.rng.IntN(60))
	}
	oneOf(c.rng, c.kinds()...)()
	if c.in(14) { // one more thing, which may not go together with the others
		x := allParameters[c.rng.IntN(len(allParameters))]
		c.form[x.name] = x.value
	}
	if c.in(30) {
		delete(c.form, oneOf(c.rng, slices.Sorted(maps.Keys(c.form))...))
	}
	var fields []string
	for _, name := range slices.Sorted(maps.Keys(c.form)) {
		fields = append(fields, name+"="+strings.ReplaceAll(c.form[name], "+", "%2B"))
	}
	return harness.Soon(strings.Join(fields, "&"))
}

// given reports whether the order names any of some parameters.
func (c *trials) given(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		_, there := c.form[name]
		return there
	})
}

// waits reports whether the order waits outside the book.
func (c *trials) waits() bool {
	return c.given("trigger_price", "triggerPrice", "stopPrice", "stopLossPrice", "takeProfitPrice")
}

// isPostOnly reports whether the order never takes.
func (c *trials) isPostOnly() (postOnly, slides bool) {
	word := strings.ToLower(c.form["post_only"] + c.form["postOnly"])
	force := strings.ToLower(c.form["time_in_force"] + c.form["timeInForce"])
	slides = word == "slide"
	return slides || word == "1" || word == "true" || force == "po", slides
}

// onlyPlacing reports whether only placing the order finds a refusal: by the last price, or by the
// prices in the book.
func (c *trials) onlyPlacing(code string) bool {
	postOnly, _ := c.isPostOnly()
	switch code {
	case "would_trade":
		return postOnly && !c.waits()
	case "would_trigger":
		return c.waits() || c.given("oco_trigger_price")
	case "price_band":
		return !c.waits()
	}
	return false
}

// An orderAnswer is an answer to an order, tried or placed.
type orderAnswer struct {
	Valid   bool
	Price   json.Number
	Reserve struct {
		Currency string
		Amount   json.Number
	}
	Available json.Number
	Would     *bool `json:"would_trade"`

	Asked     json.Number `json:"price_asked"`
	Status    int
	Amount    json.Number
	Trades    []struct{}
	Prevented []struct{}
	Reason    string `json:"cancel_reason"`

	Code, Error, Detail string
}

func (c *trials) read(a harness.Answer) (x orderAnswer) {
	if err := json.Unmarshal([]byte(a.Body), &x); err != nil && a.Status < 300 {
		c.T.Fatal(err, a.Body)
	}
	return x
}

// count counts an answer by its content.
func (c *trials) count(tried, placed harness.Answer, t, p *orderAnswer) {
	what := p.Code
	switch {
	case tried.Status == 200:
		what = "200 " + p.Code
		if placed.Status != 400 {
			what = "200 " + strconv.Itoa(placed.Status)
		}
	case strings.Contains(tried.Body, "halted"):
		what = "halted"
	case tried.Status == 403:
		what = "frozen"
	case strings.Contains(tried.Body, "Out of balance"):
		what = "funds"
	case strings.Contains(tried.Body, "Already used"):
		what = "taken"
	case t.Detail != "":
		what = "detail"
	case t.Code == "":
		what = "fields"
	}
	c.seen[what]++
}

// tryAndPlace tries an order, places it, and compares the answers.
func (c *trials) tryAndPlace() {
	name := oneOf(c.rng, "alice", "alice", "bob", "bob", "carol")
	c.observe(name)
	form := c.draw()
	c.last = append(c.last[max(0, len(c.last)-9):], fmt.Sprintf("%s: %s", name, form))
	before, state := c.wallet(name), c.Hash()
	tried := c.Post(name, "/api/v1/order-test/", form)
	if c.Hash() != state {
		c.T.Errorf("trying an order writes something")
	}
	placed := c.place(name, form)
	c.last = append(c.last, fmt.Sprintf("tried %d %s\nplaced %d %s", tried.Status, tried.Body,
		placed.Status, placed.Body))
	t, p := c.read(tried), c.read(placed)
	c.count(tried, placed, &t, &p)
	switch {
	case tried.Status == 200 && placed.Status == 201:
		c.compare(name, &t, &p, before)
	case tried.Status == 200 && placed.Status == 400 && c.onlyPlacing(p.Code):
		postOnly, slides := c.isPostOnly()
		if p.Code == "would_trade" && postOnly && *t.Would == slides {
			c.T.Errorf("would_trade is %v", *t.Would)
		}
	case tried.Status == 400 && placed.Status == 400 && c.onlyPlacing(p.Code) && isOfTheBook(&t):
		// the book checks the prices first
	case tried.Status != placed.Status ||
		harness.Dates.ReplaceAllString(tried.Body,
			"T") != harness.Dates.ReplaceAllString(placed.Body, "T"):
		c.T.Errorf("trying is answered otherwise than placing")
	case tried.Status == 400 && t.Code == "" && t.Error == "" && t.Detail == "" &&
		!strings.Contains(tried.Body, "Already used") && c.Hash() != state:
		c.T.Errorf("an order that is refused for its fields leaves something")
	}
}

// place places an order, sometimes in a batch: its answer is the same there.
func (c *trials) place(name, form string) harness.Answer {
	if !c.in(4) {
		return c.Post(name, "/api/v1/order/", form)
	}
	a := c.Batch(name, formItem("place", strings.ReplaceAll(form, "%2B", "+")))
	if a.Status != 200 {
		return a
	}
	one := harness.Results(c.T, a)[0]
	return harness.Answer{Status: one.Status, Body: string(one.Body)}
}

// isOfTheBook reports whether a refusal is one of the book's.
func isOfTheBook(x *orderAnswer) bool {
	return x.Code == "too_many_stops" || x.Code == "too_many_gtd" || x.Code == "price_band" ||
		strings.HasPrefix(x.Detail, "The order book of ")
}

// compare compares a trial's answer with the placed order.
func (c *trials) compare(name string, t, p *orderAnswer, before map[string]*big.Int) {
	price := p.Price
	if p.Asked != "" {
		price = p.Asked
	}
	if t.Price != price || !t.Valid || t.Would == nil {
		c.T.Errorf("the price is %s", price)
	}
	c.rests()
	currency := t.Reserve.Currency
	if available, known := before[currency]; known && units(t.Available).Cmp(available) != 0 {
		c.T.Errorf("%s of %v units is available", t.Available, available)
	}
	met := len(p.Trades) > 0 || len(p.Prevented) > 0
	if *t.Would && !met && p.Reason != "fok" && p.Reason != "max_fills" &&
		p.Reason != "self_trade" && !c.given("quote_amount", "cost") || !*t.Would && met {
		c.T.Errorf("it would trade: %v", *t.Would)
	}
	if available, known := before[currency]; known && !met && p.Reason == "" {
		held := available.Sub(available, c.wallet(name)[currency])
		diff := held.Cmp(units(t.Reserve.Amount))
		if diff > 0 || diff < 0 && p.Asked == "" {
			c.T.Errorf("it holds %v units", held)
		}
	}
}

// units returns a number in units of 1e-16.
func units(n json.Number) *big.Int {
	r, ok := new(big.Rat).SetString(n.String())
	if !ok {
		panic("no number: " + n.String())
	}
	r.Mul(r, new(big.Rat).SetInt64(1e16))
	return r.Num()
}
