package actors

import (
	"context"
	"testing"

	"exchange/actors/committed"
	"exchange/core/money"
	"exchange/core/trading"
	"exchange/persistence"
	"exchange/persistence/memory"
)

// The orders of all accounts come in pieces of whole accounts: each order once, each account's
// newest first, open and closed ones.
func TestEveryOrderIsListedOnce(t *testing.T) {
	e := start(t, testOptions(memory.Open(memory.NewDisk(), persistence.Retention{})))
	defer stop(t, e)
	const each = 1100 // two accounts have more than one piece
	want := map[uint64]uint32{}
	for _, name := range []string{"ann", "ben", "cat", "dan"} {
		key := fund(t, e, name, map[string]money.Amount{"BTC": each * coin})
		if name == "cat" { // has none
			continue
		}
		for i := range uint64(each) {
			c := must[*Command](t)(e.Place(key, 2*i+1, requestOf(e, trading.Sell, 100e8, coin)))
			id := c.Record().Order.ID
			c.Free()
			want[id] = key.Account.ID
			if i%3 == 0 {
				must[*Command](t)(e.Cancel(key, 2*i+2, id)).Free()
			}
		}
	}
	var last committed.Order
	closed := 0
	err := e.EveryOrder(context.Background(), func(o *committed.Order) bool {
		if want[o.ID] != o.Account || o.Account < last.Account ||
			o.Account == last.Account && o.ID > last.ID {
			t.Fatalf("order %d of account %d comes after order %d of account %d", o.ID, o.Account,
				last.ID, last.Account)
		}
		delete(want, o.ID)
		if last = *o; o.Status != trading.StatusActive {
			closed++
		}
		return true
	})
	if err != nil || len(want) > 0 || closed != 3*((each+2)/3) {
		t.Errorf("%d orders are missing, %d are closed, %v", len(want), closed, err)
	}
	seen := 0
	if err := e.EveryOrder(context.Background(), func(*committed.Order) bool {
		seen++
		return seen < 5
	}); err != nil || seen != 5 {
		t.Errorf("a caller that has seen enough has seen %d, %v", seen, err)
	}
}

// Balances add up to the totals of the same sequence. Accounts without money have no row.
func TestBalancesAreThoseOfTheirTotals(t *testing.T) {
	e := start(t, testOptions(memory.Open(memory.NewDisk(), persistence.Retention{})))
	defer stop(t, e)
	ann := fund(t, e, "ann", map[string]money.Amount{"BTC": 10 * coin, "USD": 5 * coin})
	fund(t, e, "ben", nil)
	fund(t, e, "cat", map[string]money.Amount{"USD": 7 * coin})
	must[*Command](t)(e.Place(ann, 1, requestOf(e, trading.Sell, 100e8, 2*coin))).Free()
	b := must[*committed.Totals](t)(e.Balances(context.Background()))
	var sums [3]committed.CurrencyTotal
	for _, h := range b.Holdings {
		s := &sums[h.Currency-1]
		s.Balance, s.Reserve = s.Balance.Add(h.Balance), s.Reserve.Add(h.Reserve)
	}
	for i, s := range sums {
		if s.Balance != b.Currencies[i].Balance || s.Reserve != b.Currencies[i].Reserve {
			t.Errorf("currency %d: the rows have %v, the totals %v", i+1, s, b.Currencies[i])
		}
	}
	if len(b.Holdings) != 3 || b.Holdings[0].Reserve != (2*coin).Balance() {
		t.Errorf("the rows are %v", b.Holdings)
	}
	if again := must[*committed.Totals](t)(e.Totals(context.Background())); again.Seq != b.Seq ||
		again.Holdings != nil {
		t.Errorf("the totals have %d rows, at sequence %d", len(again.Holdings), again.Seq)
	}
}
