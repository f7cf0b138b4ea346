package ledger

import (
	"fmt"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/trading"
)

func bits128(b money.Balance) *big.Int {
	hi, lo := b.Bits()
	n := new(big.Int).Lsh(new(big.Int).SetUint64(hi), 64)
	return n.Add(n, new(big.Int).SetUint64(lo))
}

// For each amount that may have been filled meanwhile the money that an amend reserves is enough,
// and for one of them it is just enough.
func TestTheNeedOfAnAmendIsTheLargestOfAllFills(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		side := rapid.SampledFrom([]trading.Side{trading.Buy, trading.Sell}).Draw(t, "side")
		high := rapid.SampledFrom([]int64{5, 60}).Draw(t, "highest")
		n := rapid.Int64Range(1, high)
		was := Terms{money.Price(n.Draw(t, "p")), money.Amount(n.Draw(t, "A"))}
		is := Terms{money.Price(n.Draw(t, "q")), money.Amount(n.Draw(t, "B"))}
		currency, got := NeedOfAmend(side, was, is, base, quote)
		want := money.Balance{}
		for f := range min(was.Amount, is.Amount) + 1 {
			c, held := Need(side, was.Price, was.Amount-f, base, quote)
			_, need := Need(side, is.Price, is.Amount-f, base, quote)
			if c != currency {
				t.Fatalf("of currency %d, want %d", currency, c)
			}
			if need.Cmp(held) > 0 && need.Sub(held).Cmp(want) > 0 {
				want = need.Sub(held)
			}
		}
		if got != want {
			t.Fatalf("%v, want %v", got, want)
		}
	})
	_, got := NeedOfAmend(trading.Buy, Terms{1, 1}, Terms{money.MaxPrice, money.MaxAmount}, base,
		quote)
	most := new(big.Int).Mul(big.NewInt(int64(money.MaxPrice)), big.NewInt(int64(money.MaxAmount)))
	if want := most.Sub(most, big.NewInt(1)); bits128(got).Cmp(want) != 0 {
		t.Errorf("from the least order to the largest: %v, want %v", bits128(got), want)
	}
}

// A bench settles random records of orders that it makes up itself, and keeps its own account of
// the open ones. It decides nothing about price and time, which settlements do not know.
type bench struct {
	t       *rapid.T
	s       Settler
	wallets map[uint32]*Wallet
	open    map[uint64]*benchOrder
	last    uint64
	gone    map[uint32][]uint64 // orders that the record under way closes, by account
}

type benchOrder struct {
	trading.Order
	waits bool
}

const feesOfBench = 5

func (b *bench) draw(name string, low, high int64) int64 {
	return rapid.Int64Range(low, high).Draw(b.t, name)
}

func (b *bench) yes(name string) bool { return rapid.Bool().Draw(b.t, name) }

// pick returns one of the open orders that pass, nil if none does.
func (b *bench) pick(passes func(*benchOrder) bool) *benchOrder {
	var list []*benchOrder
	for id := range b.last {
		if o := b.open[id+1]; o != nil && passes(o) {
			list = append(list, o)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return list[b.draw("which", 0, int64(len(list)-1))]
}

func (b *bench) end(o *benchOrder) {
	delete(b.open, o.ID)
	b.gone[o.Account] = append(b.gone[o.Account], o.ID)
}

// match lets an order trade with some of those that it crosses, prevents some of its own, and
// leaves the rest to the caller. An order by a sum has left what it may still spend.
func (b *bench) match(r *event.Record, o *event.Order, sum *money.Balance) {
	if b.yes("fees") {
		o.FeeAccount = feesOfBench
	}
	prevents := b.yes("prevents")
	for id := range b.last {
		m := b.open[id+1]
		if m == nil || m.waits || m.ID == o.ID || m.Side == o.Side || o.Remaining == 0 ||
			o.Side == trading.Buy && m.Price > o.Price ||
			o.Side == trading.Sell && m.Price < o.Price || b.yes("passed over") {
			continue
		}
		if m.Account == o.Account && prevents {
			r.Instructions.Prevented = append(r.Instructions.Prevented, trading.Prevented{
				Before: uint32(len(o.Trades)), Order: m.ID, Price: m.Price, Amount: m.Remaining})
			b.end(m)
			continue
		}
		taken := min(o.Remaining, m.Remaining)
		if sum != nil {
			for taken > 0 && m.Price.Times(taken).Balance().Cmp(*sum) > 0 {
				taken--
			}
			if taken == 0 {
				break
			}
			*sum = sum.Sub(m.Price.Times(taken).Balance())
		}
		o.Remaining, m.Remaining = o.Remaining-taken, m.Remaining-taken
		tr := event.Trade{Maker: m.ID, MakerAccount: m.Account, Price: m.Price, Amount: taken,
			MakerRemaining: m.Remaining}
		if o.FeeAccount != 0 {
			tr.TakerFee, tr.MakerFee = money.BalanceFromBits(0, uint64(b.draw("fee", 0, 1))),
				money.BalanceFromBits(0, uint64(b.draw("fee", 0, 1)))
		}
		o.Trades = append(o.Trades, tr)
		if m.Remaining == 0 {
			b.end(m)
		}
	}
}

// enter settles a record whose order has met the book. before is the order as it was, nil for a
// new one.
func (b *bench) enter(r *event.Record, before *benchOrder) {
	o := &r.Order
	waits := r.Kind == event.KindStop || before != nil && before.waits && r.Trigger.Price != 0
	o.RestCancelled = o.RestCancelled || o.Remaining > 0 && b.yes("cancelled")
	switch {
	case o.Rests():
		b.open[o.ID] = &benchOrder{trading.Order{ID: o.ID, Account: o.Account, Side: o.Side,
			Price: o.Price, Amount: o.Amount, Remaining: o.Remaining}, waits}
	case before != nil:
		b.end(before)
	}
	b.settle(r)
}

// settle applies a record's settlements to the wallets.
func (b *bench) settle(r *event.Record) {
	seen := map[uint32]bool{}
	for _, s := range b.s.Settle(r, base, quote) {
		w := b.wallets[s.Account]
		if seen[s.Account] {
			b.t.Fatalf("%v: account %d has two settlements", r.Kind, s.Account)
		}
		seen[s.Account] = true
		for i := range s.Changes() {
			if err := w.Apply(&s.Changes()[i]); err != nil {
				b.t.Fatalf("%v: account %d: %v", r.Kind, s.Account, err)
			}
		}
		if !slices.Equal(s.Closed, b.gone[s.Account]) {
			b.t.Fatalf("%v closes %v of account %d, want %v", r.Kind, s.Closed, s.Account,
				b.gone[s.Account])
		}
		delete(b.gone, s.Account)
	}
	if len(b.gone) > 0 {
		b.t.Fatalf("%v does not close %v", r.Kind, b.gone)
	}
}

func (b *bench) drawOrder() event.Order {
	b.last++
	o := event.Order{ID: b.last, Account: uint32(b.draw("account", 1, 3)),
		Side:  rapid.SampledFrom([]trading.Side{trading.Buy, trading.Sell}).Draw(b.t, "side"),
		Price: money.Price(b.draw("price", 1, 9)), Amount: money.Amount(b.draw("amount", 1, 40))}
	o.Remaining = o.Amount
	return o
}

// can skips an action for which an account has not the money.
func (b *bench) can(account uint32, currency uint16, need money.Balance) {
	if b.wallets[account].Get(currency).Available().Cmp(need) < 0 {
		b.t.Skip("not enough money")
	}
}

func (b *bench) place(kind event.Kind) {
	r := event.Record{Kind: kind, Order: b.drawOrder()}
	o := &r.Order
	currency, need := Need(o.Side, o.Price, o.Amount, base, quote)
	b.can(o.Account, currency, need)
	if kind == event.KindInstructed {
		b.match(&r, o, nil)
	}
	b.enter(&r, nil)
}

// spend places a buy that may spend a sum, and no more.
func (b *bench) spend() {
	r := event.Record{Kind: event.KindInstructed, Order: b.drawOrder(),
		Instructions: trading.Instructions{Quote: 1}}
	o := &r.Order
	o.Side, o.Remaining = trading.Buy, money.MaxAmount
	sum := money.BalanceFromBits(0, uint64(b.draw("sum", 1, 100)))
	left, before := sum, b.wallets[o.Account].Get(quote).Balance
	b.can(o.Account, quote, sum)
	b.match(&r, o, &left)
	o.Amount, o.Remaining, o.RestCancelled = money.MaxAmount-o.Remaining, 0, true
	b.enter(&r, nil)
	if after := b.wallets[o.Account].Get(quote).Balance; after.Add(sum).Cmp(before) < 0 {
		b.t.Fatalf("of %v %v are left, with %v to spend", before, after, sum)
	}
}

func (b *bench) trigger() {
	fromBook := b.yes("from the book")
	was := b.pick(func(o *benchOrder) bool {
		return o.waits != fromBook && (o.waits || o.Side == trading.Sell)
	})
	if was == nil {
		b.t.Skip("none waits")
	}
	r := event.Record{Kind: event.KindTriggered, Triggered: event.Triggered{FromBook: fromBook,
		Was: event.Was{Price: was.Price, Open: was.Remaining}},
		Order: event.Order{ID: was.ID, Account: was.Account, Side: was.Side, Price: was.Price,
			Amount: was.Amount, Remaining: was.Remaining}}
	if fromBook {
		r.Order.Price = money.Price(b.draw("other price", 1, int64(was.Price)))
	} else if was.Side == trading.Buy && b.yes("slides") {
		r.Order.Price = money.Price(b.draw("lower price", 1, int64(was.Price)))
	}
	delete(b.open, was.ID)
	b.match(&r, &r.Order, nil)
	b.enter(&r, was)
}

func (b *bench) amend() {
	was := b.pick(func(*benchOrder) bool { return true })
	if was == nil {
		b.t.Skip("none is open")
	}
	terms := Terms{was.Price, was.Amount}
	to := Terms{money.Price(b.draw("price", 1, 9)), money.Amount(b.draw("amount", 1, 40))}
	currency, need := NeedOfAmend(was.Side, terms, to, base, quote)
	b.can(was.Account, currency, need)
	filled := was.Amount - was.Remaining
	r := event.Record{Kind: event.KindAmended, Amended: event.Amended{
		Was: event.Was{Price: was.Price, Open: was.Remaining}},
		Order: event.Order{ID: was.ID, Account: was.Account, Side: was.Side, Price: was.Price,
			Amount: was.Amount, Remaining: was.Remaining}}
	o := &r.Order
	delete(b.open, was.ID)
	switch {
	case to.Amount <= filled:
		o.RestCancelled = true
	case was.waits:
		o.Price, o.Amount, o.Remaining = to.Price, to.Amount, to.Amount
		r.Trigger = trading.Trigger{Price: 1, When: trading.Rise}
	default:
		o.Price, o.Amount, o.Remaining = to.Price, to.Amount, to.Amount-filled
		b.match(&r, o, nil)
	}
	b.enter(&r, was)
}

func (b *bench) expire() {
	r := event.Record{Kind: event.KindExpired}
	for range b.draw("orders", 1, 4) {
		if o := b.pick(func(*benchOrder) bool { return true }); o != nil {
			r.Expired = append(r.Expired, event.Expired{Order: o.ID, Account: o.Account,
				Side: o.Side, Price: o.Price, Open: o.Remaining})
			b.end(o)
		}
	}
	if len(r.Expired) == 0 {
		b.t.Skip("none is open")
	}
	b.settle(&r)
}

func (b *bench) sweep() {
	o := b.pick(func(*benchOrder) bool { return true })
	if o == nil {
		b.t.Skip("none is open")
	}
	b.end(o)
	b.settle(&event.Record{Kind: event.KindSwept, Cancel: event.Cancel{Order: o.ID,
		Account: o.Account, Side: o.Side, Price: o.Price, Remaining: o.Remaining}})
}

// check compares the wallets with the open orders, and their sums with what there was.
func (b *bench) check(all map[uint16]money.Balance) {
	want, sums := map[string]money.Balance{}, map[uint16]money.Balance{}
	of := func(account uint32, currency uint16) string { return fmt.Sprint(account, " ", currency) }
	for _, o := range b.open {
		currency, need := Need(o.Side, o.Price, o.Remaining, base, quote)
		want[of(o.Account, currency)] = want[of(o.Account, currency)].Add(need)
	}
	for account, w := range b.wallets {
		for _, h := range w.Holdings() {
			if need := want[of(account, h.Currency)]; h.Reserve != need {
				b.t.Fatalf("account %d reserves %v of currency %d, its orders need %v", account,
					h.Reserve, h.Currency, need)
			}
			sums[h.Currency] = sums[h.Currency].Add(h.Balance)
		}
	}
	if sums[base] != all[base] || sums[quote] != all[quote] {
		b.t.Fatalf("there are %v, there were %v", sums, all)
	}
}

// Whatever becomes of orders with instructions, wallets reserve what the open ones need, and all
// money stays.
func TestOrdersWithInstructionsConserveMoneyAndReserves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := &bench{wallets: map[uint32]*Wallet{feesOfBench: {}}, open: map[uint64]*benchOrder{}}
		all := map[uint16]money.Balance{}
		for account := range uint32(3) {
			b.wallets[account+1] = new(Wallet)
			for _, h := range []Holding{{Currency: base, Balance: units(100)},
				{Currency: quote, Balance: money.BalanceFromBits(0, 700)}} {
				b.wallets[account+1].Put(h)
				all[h.Currency] = all[h.Currency].Add(h.Balance)
			}
		}
		do := func(f func()) func(*rapid.T) {
			return func(t *rapid.T) {
				b.t, b.gone = t, map[uint32][]uint64{}
				f()
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"place":       do(func() { b.place(event.KindInstructed) }),
			"place again": do(func() { b.place(event.KindInstructed) }),
			"wait":        do(func() { b.place(event.KindStop) }),
			"spend":       do(b.spend),
			"trigger":     do(b.trigger),
			"amend":       do(b.amend),
			"expire":      do(b.expire),
			"sweep":       do(b.sweep),
			"":            do(func() { b.check(all) }),
		})
	})
}

func TestSettlingOrdersWithInstructionsAllocatesNothingOnceWarm(t *testing.T) {
	o := event.Order{ID: 9, Account: 1, Side: trading.Buy, Price: 2, Amount: 5, Remaining: 5}
	prevented := trading.Instructions{Prevented: make([]trading.Prevented, 100)}
	for _, r := range []event.Record{
		{Kind: event.KindInstructed, Order: o, Instructions: prevented},
		{Kind: event.KindStop, Order: o},
		{Kind: event.KindTriggered, Order: o},
		{Kind: event.KindAmended, Order: o},
		{Kind: event.KindExpired, Expired: slices.Repeat([]event.Expired{{Order: 1, Account: 1,
			Side: trading.Buy}, {Order: 2, Account: 2, Side: trading.Sell}}, 100)},
		{Kind: event.KindSwept, Cancel: event.Cancel{Account: 1, Side: trading.Buy}},
	} {
		var s Settler
		s.Settle(&r, base, quote)
		if n := testing.AllocsPerRun(50, func() { s.Settle(&r, base, quote) }); n != 0 {
			t.Errorf("%v: %v allocations", r.Kind, n)
		}
	}
}
