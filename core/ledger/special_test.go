package ledger

import (
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

// For each amount that may have been filled meanwhile an amend reserves enough money, and for one
// of them just enough.
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
		{Kind: event.KindSwitchCancel, Cancel: event.Cancel{Account: 1, Side: trading.Buy}},
	} {
		var s Settler
		s.Settle(&r, base, quote)
		if n := testing.AllocsPerRun(50, func() { s.Settle(&r, base, quote) }); n != 0 {
			t.Errorf("%v: %v allocations", r.Kind, n)
		}
	}
}
