package loadtest

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"exchange/core/money"
)

func aPair() *pair {
	return &pair{name: "BTC_USDT", tick: 1e6, lot: 1e5, maxLots: 100, mid: usualMid}
}

// Every instruction is sent, and its form is signed as is: names ascend.
func TestOrdersCarryEachInstructionInTheOrderOfTheirNames(t *testing.T) {
	p := aPair()
	m := newModel("random-walk", []*pair{p}, 1, 0)
	id := func(b []byte) []byte { return append(b, "run-1-1"...) }
	seen := map[instruction]int{}
	for range 5000 {
		w := m.next([]*pair{p})
		o := sentOrder{instruction: m.chooseInstruction(50, &w), buy: w.buy}
		o.price, o.amount = priceOf(w), amountOf(w)
		seen[o.instruction]++
		form := string(o.fields(nil, id, p))
		var names []string
		for field := range strings.SplitSeq(form, "&") {
			name, _, _ := strings.Cut(field, "=")
			names = append(names, name)
		}
		values, err := url.ParseQuery(form)
		if err != nil || !slices.IsSorted(names) || len(names) != len(values) {
			t.Fatalf("%v: %s, %v", o.instruction, form, err)
		}
		if o.instruction == oco && o.buy || o.instruction == iceberg && w.lots < 2 {
			t.Fatalf("%v: %s", o.instruction, form)
		}
	}
	for i := range instructions {
		if n := seen[i]; n < 50 || i == plain && (n < 2000 || n > 3000) {
			t.Errorf("%d orders of 5,000 are %v", n, i)
		}
	}
	w := m.next([]*pair{p})
	if i := m.chooseInstruction(0, &w); i != plain {
		t.Errorf("without a share an order is %v", i)
	}
}

func TestARowFitsItsInstruction(t *testing.T) {
	p := aPair()
	const at, of = money.Price(500e8), money.Amount(1e7)
	near := at + money.Price(p.tick)
	row := func(status int, price money.Price, filled money.Amount) *orderRow {
		return &orderRow{status: status, price: price, initial: of, filled: filled,
			amount: of - filled}
	}
	order := func(i instruction, change func(*sentOrder)) *sentOrder {
		o := &sentOrder{price: at, amount: of, instruction: i, outcome: done}
		if change != nil {
			change(o)
		}
		return o
	}
	f := func(what string, o *sentOrder, r *orderRow, price, end bool, fault string) {
		t.Helper()
		if got := o.mayHave(r.price, r.initial, p); got != price {
			t.Errorf("%s: it may have that price: %v", what, got)
		}
		if got := o.mayEnd(); got != end {
			t.Errorf("%s: it may end: %v", what, got)
		}
		if got := o.fault(r); got != fault {
			t.Errorf("%s: it %q, want %q", what, got, fault)
		}
	}
	buys := func(o *sentOrder) { o.buy = true }
	f("a plain order", order(plain, nil), row(statusActive, at, 0), true, false, "")
	f("at another price", order(plain, nil), row(statusActive, near, 0), false, false, "")
	f("ioc in part", order(ioc, nil), row(statusCancelled, at, 5), true, false, "")
	f("ioc that rests", order(ioc, nil), row(statusActive, at, 5), true, false, "rests")
	f("market that rests", order(market, nil), row(statusActive, at, 0), true, false, "rests")
	f("fok whole", order(fok, nil), row(statusDone, at, of), true, false, "")
	f("fok in part", order(fok, nil), row(statusCancelled, at, 1), true, false,
		"is filled in part")
	f("a sell that slid", order(slide, nil), row(statusActive, near, 0), true, false, "")
	f("a buy that slid up", order(slide, buys), row(statusActive, near, 0), false, false, "")
	f("post-only that traded", order(postOnly, func(o *sentOrder) { o.filled = 1 }),
		row(statusActive, at, 1), true, false, "has traded at once")
	f("a triggered oco", order(oco, nil), row(statusActive,
		at-money.Price(2*triggerTicks*p.tick), 0), true, true, "")
	f("an oco elsewhere", order(oco, nil), row(statusActive, near, 0), false, true, "")
	changed := func(o *sentOrder) { o.changed, o.newPrice, o.newAmount = true, near, of }
	f("a change without an outcome", order(noSelf, changed), row(statusActive, near, 0), true,
		true, "")
	f("the same, not done", order(noSelf, changed), row(statusActive, at, 0), true, true, "")
	f("a refused change", order(plain, func(o *sentOrder) { changed(o); o.change = refused }),
		row(statusActive, near, 0), false, false, "")
	over := order(overSelf, func(o *sentOrder) { o.outcome = unknown })
	if !over.endsOthers() || order(overSelf, nil).endsOthers() {
		t.Error("only an order without an outcome ends others unseen")
	}
}
