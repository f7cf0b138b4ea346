package matching

import (
	"testing"

	"exchange/core/money"
	"exchange/core/trading"
)

func TestALevelIsFoundByItsPrice(t *testing.T) {
	b := New()
	b.Add(trading.Order{ID: 1, Account: 1, Side: trading.Buy, Price: 10, Amount: 5, Remaining: 3})
	b.Add(trading.Order{ID: 2, Account: 1, Side: trading.Buy, Price: 10, Amount: 5, Remaining: 5})
	if l, ok := b.At(trading.Buy, 10); !ok || l.Orders != 2 || l.Price != 10 ||
		l.Amount.String() != "0.00000008" {
		t.Error(l, ok)
	}
	for _, none := range []struct {
		side  trading.Side
		price money.Price
	}{{trading.Buy, 9}, {trading.Buy, 11}, {trading.Sell, 10}, {trading.Buy, 0}} {
		if l, ok := b.At(none.side, none.price); ok || !l.Amount.IsZero() {
			t.Error(none, l)
		}
	}
}
