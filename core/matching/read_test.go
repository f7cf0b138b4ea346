package matching

import (
	"testing"

	"exchange/core/money"
)

func TestALevelIsFoundByItsPrice(t *testing.T) {
	b := New()
	b.Add(Order{ID: 1, Account: 1, Side: Buy, Price: 10, Amount: 5, Remaining: 3})
	b.Add(Order{ID: 2, Account: 1, Side: Buy, Price: 10, Amount: 5, Remaining: 5})
	if l, ok := b.At(Buy, 10); !ok || l.Orders != 2 || l.Price != 10 ||
		l.Amount.String() != "0.00000008" {
		t.Error(l, ok)
	}
	for _, none := range []struct {
		side  Side
		price money.Price
	}{{Buy, 9}, {Buy, 11}, {Sell, 10}, {Buy, 0}} {
		if l, ok := b.At(none.side, none.price); ok || !l.Amount.IsZero() {
			t.Error(none, l)
		}
	}
}
