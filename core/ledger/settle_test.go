package ledger

import (
	"fmt"
	"slices"
	"testing"

	"github.com/shopspring/decimal"
	"pgregory.net/rapid"

	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/trading"
)

// The pair of these tests: currency 1 is the base, 2 the quote.
const (
	base  uint16 = 1
	quote uint16 = 2
)

func units(n int64) money.Balance { return money.Amount(n).Balance() }

func price(s string) money.Price {
	p, err := money.ParsePrice(s)
	if err != nil {
		panic(err)
	}
	return p
}

func amount(s string) money.Amount {
	a, err := money.ParseAmount(s)
	if err != nil {
		panic(err)
	}
	return a
}

// text formats settlements readably: "3: base +1 -0.5 lock 2 unlock 1; closed [7]".
func text(list []Settlement) (lines []string) {
	for i := range list {
		s := fmt.Sprintf("%d:", list[i].Account)
		for _, c := range list[i].Changes() {
			s += map[uint16]string{base: " base", quote: " quote", 0: " none"}[c.Currency]
			for _, part := range []struct {
				word string
				b    money.Balance
			}{{" +", c.Credit}, {" -", c.Debit}, {" lock ", c.Lock}, {" unlock ", c.Unlock}} {
				if !part.b.IsZero() {
					s += part.word + part.b.String()
				}
			}
		}
		if len(list[i].Closed) > 0 {
			s += fmt.Sprint(" closed ", list[i].Closed)
		}
		lines = append(lines, s)
	}
	return lines
}

func TestSettlementsOfOtherRecords(t *testing.T) {
	var s Settler
	f := func(r event.Record, want ...string) {
		t.Helper()
		if got := text(s.Settle(&r, base, quote)); !slices.Equal(got, want) {
			t.Errorf("%v: got %q, want %q", r.Kind, got, want)
		}
	}
	f(event.Record{Kind: event.KindDeposit,
		Deposit: event.Deposit{Account: 4, Currency: base, Amount: amount("1.5")}}, "4: base +1.5")
	f(event.Record{Kind: event.KindCancel,
		Cancel: event.Cancel{ID: 9, Order: 7, Account: 4, Side: trading.Buy, Price: price("2"),
			Remaining: amount("3")}}, "4: quote unlock 6 closed [7]")
	f(event.Record{Kind: event.KindCancel,
		Cancel: event.Cancel{ID: 9, Order: 7, Account: 4, Side: trading.Sell, Price: price("2"),
			Remaining: amount("3")}}, "4: base unlock 3 closed [7]")
	f(event.Record{Kind: event.KindRefusal, Refusal: event.Refusal{Account: 4}}, "4:")
	f(event.Record{Kind: event.KindAdjusted, Adjusted: event.Adjusted{Account: 4, Currency: base,
		Amount: amount("2")}}, "4: base -2")
	f(event.Record{Kind: event.KindFreeze, Freeze: event.Freeze{Account: 4}}, "4:")
	f(event.Record{Kind: event.KindCodeRefused,
		CodeRefused: event.CodeRefused{Withdrawal: 1, Account: 4}}, "4:")
	f(event.Record{Kind: event.KindCodeRefused,
		CodeRefused: event.CodeRefused{Withdrawal: 1, Account: 4, Expired: true}}, "4:")
	f(event.Record{Kind: event.KindExpired, Expired: []event.Expired{
		{Order: 5, Account: 3, Side: trading.Buy, Price: price("2"), Open: amount("3")},
		{Order: 6, Account: 2, Side: trading.Sell, Price: price("9"), Open: amount("1")},
		{Order: 7, Account: 3, Side: trading.Sell, Price: price("2"), Open: amount("4")}}},
		"3: quote unlock 6 base unlock 4 closed [5 7]", "2: base unlock 1 closed [6]")
	f(event.Record{Kind: event.KindSwitch, Switch: event.Switch{Account: 4}}, "4:")
	f(event.Record{Kind: event.KindSettings, Settings: event.Settings{Account: 4}}, "4:")
	for _, kind := range []event.Kind{event.KindCurrency, event.KindPair, event.KindAccount,
		event.KindKey, event.KindKeyRevoked,
		event.KindMailed, event.KindHalt, event.KindMaintenance, event.KindFees,
		event.KindHistory, event.KindNote} {
		f(event.Record{Kind: kind, Pair: 1})
	}
}

func withdrawal(account uint32, currency uint16, a money.Amount) *event.Record {
	return &event.Record{Kind: event.KindWithdrawal,
		Withdrawal: event.Withdrawal{ID: 1, Account: account, Currency: currency, Amount: a}}
}

func moved(account uint32, currency uint16, a money.Amount, to uint8) *event.Record {
	return &event.Record{Kind: event.KindWithdrawalStatus,
		WithdrawalStatus: event.WithdrawalStatus{ID: 1, Account: account, Currency: currency,
			Amount: a,
			To:     to}}
}

func TestSettlementsOfAWithdrawal(t *testing.T) {
	var s Settler
	f := func(name string, r *event.Record, want string) {
		t.Helper()
		// a withdrawal is of no pair
		for _, pair := range [][2]uint16{{0, 0}, {base, quote}, {quote, base}} {
			if got := text(s.Settle(r, pair[0], pair[1])); !slices.Equal(got, []string{want}) {
				t.Errorf("%s: got %q, want %q", name, got, want)
			}
		}
	}
	f("asked for, it reserves its amount", withdrawal(4, quote, amount("1.5")), "4: quote lock 1.5")
	f("one unit is reserved exactly", withdrawal(4, base, 1), "4: base lock 0.00000001")
	f("the largest amount is reserved exactly", withdrawal(4, base, money.MaxAmount),
		"4: base lock 92233720368.54775807")
	f("verified, it stays reserved", moved(4, quote, amount("1.5"), event.WithdrawalVerified), "4:")
	f("approved, it leaves the balance and the reserve at once",
		moved(4, quote, amount("1.5"), event.WithdrawalApproved), "4: quote -1.5 unlock 1.5")
	f("refused, it is released", moved(4, quote, amount("1.5"), event.WithdrawalRefused),
		"4: quote unlock 1.5")
	f("cancelled, it is released", moved(4, quote, amount("1.5"), event.WithdrawalCancelled),
		"4: quote unlock 1.5")
	f("the largest amount leaves exactly", moved(4, base, money.MaxAmount,
		event.WithdrawalApproved),
		"4: base -92233720368.54775807 unlock 92233720368.54775807")
}

// sums is one account's holding of one currency, in the obvious implementation.
type sums struct{ credit, debit, lock, unlock decimal.Decimal }

func (s *sums) none() bool {
	return s.credit.IsZero() && s.debit.IsZero() && s.lock.IsZero() && s.unlock.IsZero()
}

type oracle map[uint32]map[uint16]*sums

func (o oracle) at(account uint32, currency uint16) *sums {
	if o[account] == nil {
		o[account] = map[uint16]*sums{}
	}
	if o[account][currency] == nil {
		o[account][currency] = &sums{}
	}
	return o[account][currency]
}

func (o oracle) move(from, to uint32, currency uint16, d decimal.Decimal) {
	f, t := o.at(from, currency), o.at(to, currency)
	f.debit = f.debit.Add(d)
	t.credit = t.credit.Add(d)
}

func drawOrder(t *rapid.T) event.Order {
	most := rapid.SampledFrom([]int{0, 3, longList, 200}).Draw(t, "most trades")
	accounts := rapid.Uint32Range(1,
		rapid.SampledFrom([]uint32{2, longList, 300}).Draw(t, "accounts"))
	units := rapid.OneOf(rapid.Int64Range(1, 1e12), rapid.Int64Range(1, 10))
	sides := rapid.SampledFrom([]trading.Side{trading.Buy, trading.Sell})
	o := event.Order{Account: accounts.Draw(t, "taker"), Side: sides.Draw(t, "side"),
		RestCancelled: rapid.Bool().Draw(t, "cut"), Price: money.Price(units.Draw(t, "limit")),
		Remaining: money.Amount(units.Draw(t, "rest") - 1)}
	if rapid.Bool().Draw(t, "fees") {
		o.FeeAccount = accounts.Draw(t, "fee account")
	}
	for i := range rapid.IntRange(most/2, most).Draw(t, "trades") {
		tr := event.Trade{Maker: uint64(i + 1), MakerAccount: accounts.Draw(t, "maker"),
			Price:          money.Price(units.Draw(t, "price")),
			Amount:         money.Amount(units.Draw(t, "amount")),
			MakerRemaining: money.Amount(rapid.Int64Range(0, 1).Draw(t, "left"))}
		if o.FeeAccount != 0 {
			tr.TakerFee, tr.MakerFee = money.BalanceFromBits(0,
				rapid.Uint64().Draw(t, "taker fee")),
				money.BalanceFromBits(0, rapid.Uint64().Draw(t, "maker fee"))
		}
		o.Trades = append(o.Trades, tr)
	}
	return o
}

// obvious returns the sums of an order's settlements, and the makers' orders that it closes.
func obvious(o *event.Order) (want oracle, closed map[uint32][]uint64) {
	want, closed = oracle{}, map[uint32][]uint64{}
	if o.Remaining > 0 && !o.RestCancelled {
		currency, held := base, o.Remaining.Decimal()
		if o.Side == trading.Buy {
			currency, held = quote, held.Mul(o.Price.Decimal())
		}
		want.at(o.Account, currency).lock = held
	}
	for _, tr := range o.Trades {
		amount, value := tr.Amount.Decimal(), tr.Amount.Decimal().Mul(tr.Price.Decimal())
		paid, got, payCurrency, gotCurrency := value, amount, quote, base // the taker's view
		if o.Side == trading.Sell {
			paid, got, payCurrency, gotCurrency = amount, value, base, quote
		}
		want.move(o.Account, tr.MakerAccount, payCurrency, paid)
		want.move(tr.MakerAccount, o.Account, gotCurrency, got)
		reserve := want.at(tr.MakerAccount, gotCurrency)
		reserve.unlock = reserve.unlock.Add(got)
		if o.FeeAccount != 0 {
			want.move(o.Account, o.FeeAccount, gotCurrency, tr.TakerFee.Decimal())
			want.move(tr.MakerAccount, o.FeeAccount, payCurrency, tr.MakerFee.Decimal())
		}
		if tr.MakerRemaining == 0 {
			closed[tr.MakerAccount] = append(closed[tr.MakerAccount], tr.Maker)
		}
	}
	return want, closed
}

// inOrder returns the accounts of an order's settlements: the taker, then those of the trades.
func inOrder(o *event.Order) []uint32 {
	list := []uint32{o.Account}
	for _, tr := range o.Trades {
		fees := o.FeeAccount
		if tr.TakerFee.IsZero() && tr.MakerFee.IsZero() {
			fees = 0
		}
		for _, a := range []uint32{tr.MakerAccount, fees} {
			if a != 0 && !slices.Contains(list, a) {
				list = append(list, a)
			}
		}
	}
	return list
}

func TestSettleAgreesWithTheObviousSums(t *testing.T) {
	var s Settler
	rapid.Check(t, func(t *rapid.T) {
		o := drawOrder(t)
		want, closed := obvious(&o)
		list := s.Settle(&event.Record{Kind: event.KindOrder, Order: o}, base, quote)
		if want := inOrder(&o); !slices.EqualFunc(list, want, func(s Settlement, a uint32) bool {
			return s.Account == a
		}) {
			t.Fatalf("of accounts %v, in this order, there are %q", want, text(list))
		}
		totals := map[uint16]*sums{base: {}, quote: {}}
		for i := range list {
			a := list[i].Account
			if !slices.Equal(list[i].Closed, closed[a]) {
				t.Fatalf("account %d: %v closed, want %v", a, list[i].Closed, closed[a])
			}
			done := map[uint16]bool{}
			for _, c := range list[i].Changes() {
				if done[c.Currency] {
					t.Fatalf("account %d has two changes of currency %d", a, c.Currency)
				}
				done[c.Currency] = true
				w := want.at(a, c.Currency)
				if !c.Credit.Decimal().Equal(w.credit) || !c.Debit.Decimal().Equal(w.debit) ||
					!c.Lock.Decimal().Equal(w.lock) || !c.Unlock.Decimal().Equal(w.unlock) {
					t.Fatalf("account %d: %+v, want %+v", a, c, *w)
				}
				totals[c.Currency].credit = totals[c.Currency].credit.Add(c.Credit.Decimal())
				totals[c.Currency].debit = totals[c.Currency].debit.Add(c.Debit.Decimal())
			}
			for currency, w := range want[a] {
				if !done[currency] && !w.none() {
					t.Fatalf("account %d lacks %+v of currency %d", a, *w, currency)
				}
			}
		}
		for currency, sum := range totals {
			if !sum.credit.Equal(sum.debit) {
				t.Fatalf("of currency %d %v is credited and %v debited", currency, sum.credit,
					sum.debit)
			}
		}
	})
}

func TestACopyOfASettlementSurvivesTheNextRecord(t *testing.T) {
	var s Settler
	cancel := event.Record{Kind: event.KindCancel,
		Cancel: event.Cancel{Order: 7, Account: 4, Side: trading.Buy, Price: price("2"),
			Remaining: amount("3")}}
	var kept Settlement
	s.Settle(&cancel, base, quote)[0].CopyTo(&kept)
	cancel.Cancel.Order, cancel.Cancel.Account = 8, 5
	s.Settle(&cancel, base, quote)
	if got := text([]Settlement{kept})[0]; got != "4: quote unlock 6 closed [7]" {
		t.Errorf("the copy is %q", got)
	}
}

func crossing(trades, accounts int) *event.Record {
	r := &event.Record{Kind: event.KindOrder, Pair: 1,
		Order: event.Order{ID: 1 << 20, Account: 1, Side: trading.Buy, Price: 100, Amount: 1 << 30,
			Remaining: 5}}
	for i := range trades {
		r.Order.Trades = append(r.Order.Trades,
			event.Trade{ID: uint64(i + 1), Maker: uint64(i + 1),
				MakerAccount: uint32(2 + i%accounts), Price: 90, Amount: 1000})
	}
	return r
}

func TestSettleAllocatesNothingOnceWarm(t *testing.T) {
	for _, r := range []*event.Record{crossing(0, 1), crossing(3, 3), crossing(500, 100),
		{Kind: event.KindCancel, Cancel: event.Cancel{Order: 7, Account: 4, Side: trading.Buy,
			Price: 2, Remaining: 3}},
		{Kind: event.KindRefusal, Refusal: event.Refusal{Account: 3}}, withdrawal(3, 1, 5),
		moved(3, 1, 5, event.WithdrawalApproved),
		{Kind: event.KindCodeRefused, CodeRefused: event.CodeRefused{Account: 3}}} {
		var s Settler
		s.Settle(r, base, quote)
		if n := testing.AllocsPerRun(50, func() { s.Settle(r, base, quote) }); n != 0 {
			t.Errorf("%v with %d trades: %v allocations", r.Kind, len(r.Order.Trades), n)
		}
	}
}

func TestWalletApplyRefusesImpossibleChangesAndStaysUnchanged(t *testing.T) {
	f := func(what string, c Change) {
		t.Helper()
		var w Wallet
		w.Put(Holding{Currency: 2, Balance: units(10), Reserve: units(4)})
		before := w.Clone()
		if err := w.Apply(&c); err == nil {
			t.Errorf("%s is accepted", what)
		}
		if !slices.Equal(w.Holdings(), before.Holdings()) {
			t.Errorf("%s: the wallet has %+v, it had %+v", what, w.Holdings(), before.Holdings())
		}
	}
	f("a debit above the balance", Change{Currency: 2, Debit: units(11)})
	f("a debit above the balance that would leave the reserve",
		Change{Currency: 2, Debit: units(11), Unlock: units(4)})
	f("a debit that releases more than is reserved",
		Change{Currency: 2, Debit: units(5), Unlock: units(5)})
	f("a debit above balance and credit", Change{Currency: 2, Debit: units(12), Credit: units(1)})
	f("a release above the reserve", Change{Currency: 2, Unlock: units(5)})
	f("a reserve above the balance", Change{Currency: 2, Lock: units(7)})
	f("a debit of reserved money", Change{Currency: 2, Debit: units(7)})
	f("a debit of a currency that was never touched", Change{Currency: 1, Debit: units(1)})
	f("a release of a currency that was never touched", Change{Currency: 3, Unlock: units(1)})
	f("a reserve of a currency that was never touched", Change{Currency: 3, Lock: units(1)})
}

func TestWalletAppliesChangesThatJustFit(t *testing.T) {
	f := func(c Change, balance, reserve int64) {
		t.Helper()
		var w Wallet
		w.Put(Holding{Currency: 2, Balance: units(10), Reserve: units(4)})
		if err := w.Apply(&c); err != nil {
			t.Error(err)
		}
		if h := w.Get(2); h.Balance != units(balance) || h.Reserve != units(reserve) ||
			h.Available() != units(balance-reserve) {
			t.Errorf("%+v makes %+v", c, h)
		}
	}
	f(Change{Currency: 2, Debit: units(6)}, 4, 4)
	f(Change{Currency: 2, Lock: units(6)}, 10, 10)
	f(Change{Currency: 2, Debit: units(10), Unlock: units(4)}, 0, 0)
	f(Change{Currency: 2, Debit: units(11), Credit: units(1), Unlock: units(4)}, 0, 0)
	f(Change{Currency: 2, Lock: units(1), Unlock: units(5)}, 10, 0)
}

func TestWalletsKeepTheirCurrenciesInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var w Wallet
		naive := map[uint16]money.Balance{}
		for _, c := range rapid.SliceOf(rapid.Uint16Range(1, 20)).Draw(t, "currencies") {
			if err := w.Apply(&Change{Currency: c, Credit: units(int64(c))}); err != nil {
				t.Fatal(err)
			}
			naive[c] = naive[c].Add(units(int64(c)))
		}
		if len(w.Holdings()) != len(naive) ||
			!slices.IsSortedFunc(w.Holdings(), func(a, b Holding) int {
				return int(a.Currency) - int(b.Currency)
			}) {
			t.Fatalf("%+v", w.Holdings())
		}
		for c, b := range naive {
			if w.Get(c).Balance != b {
				t.Fatalf("%+v, want %v", w.Get(c), b)
			}
		}
		clone := w.Clone()
		if err := w.Apply(&Change{Currency: 1, Credit: units(1)}); err != nil ||
			clone.Get(1).Balance != naive[1] {
			t.Fatal("a clone shares memory", err)
		}
	})
}

func BenchmarkSettle(b *testing.B) {
	for _, n := range []int{1, 100} {
		b.Run(fmt.Sprintf("%d trades with %[1]d accounts", n), func(b *testing.B) {
			var s Settler
			r := crossing(n, n)
			b.ReportAllocs()
			for b.Loop() {
				s.Settle(r, base, quote)
			}
		})
	}
}
