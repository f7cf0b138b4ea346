package committed

import (
	"fmt"
	"slices"
	"testing"

	"exchange/core/event"
	"exchange/core/ledger"
	"exchange/core/state"
	"exchange/core/trading"
)

// folded is the state after some records.
func folded(t *testing.T, records ...event.Record) *state.State {
	t.Helper()
	s := state.New()
	for i := range records {
		if err := s.Apply(&records[i], new(state.Effects)); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// All orders here but one are only in the account's list, and in no book: looking one of them up
// breaks an invariant.
func TestSkippedOpenOrdersAreNotLookedUp(t *testing.T) {
	pair := func(n uint16) event.Record {
		return event.Record{Kind: event.KindPair,
			NewPair: event.Pair{Number: n, Name: fmt.Sprint("PAIR_", n), Base: 1, Quote: 2}}
	}
	const id = 500
	s := folded(t,
		event.Record{Kind: event.KindCurrency, Currency: event.Currency{Number: 1, Code: "BTC"}},
		event.Record{Kind: event.KindCurrency, Currency: event.Currency{Number: 2, Code: "USD"}},
		pair(1), pair(2),
		event.Record{Kind: event.KindAccount, Account: event.Account{ID: 1, Name: "ann"}},
		event.Record{Kind: event.KindDeposit,
			Deposit: event.Deposit{ID: 1, Account: 1, Currency: 1, Amount: 1e8, Reference: "1"}},
		event.Record{Kind: event.KindOrder, Pair: 1,
			Order: event.Order{ID: id, Account: 1, Side: trading.Sell, Price: 1e8, Amount: 1e8,
				Remaining: 1e8}})
	a := s.Account(1)
	for other := uint64(1); other <= 1000; other++ {
		if other%2 == 0 && other != id {
			a.Open.Add(other, 1, trading.Buy)
		} else if other != id {
			a.Open.Add(other, 2, trading.Sell)
		}
	}
	c := &Side{state: s}
	for what, q := range map[string]OpenOrders{
		"by pair and side": {OpenFilter: ledger.OpenFilter{Pair: 1, Side: trading.Sell}, Limit: 10},
		"by offset":        {offset: 1000 - id, Limit: 1},
		"by both": {OpenFilter: ledger.OpenFilter{Side: trading.Sell}, offset: (1000 - id) / 2,
			Limit: 1},
		"by id": {OpenFilter: ledger.OpenFilter{Before: id + 1}, Limit: 1},
	} {
		q.Account = 1
		if q.from(c); len(q.Orders) != 1 || q.Orders[0].ID != id {
			t.Errorf("%s: %+v", what, q.Orders)
		}
	}
	for what, x := range map[string]struct {
		q    openIDs
		want []uint64
	}{
		"the newest": {openIDs{limit: 3}, []uint64{1000, 999, 998}},
		"of a side": {openIDs{OpenFilter: ledger.OpenFilter{Side: trading.Sell, Before: 502},
			limit: 3}, []uint64{501, 500, 499}},
		"of a pair": {openIDs{OpenFilter: ledger.OpenFilter{Pair: 2, Before: 6}, limit: 10},
			[]uint64{5, 3, 1}},
		"of the oldest": {openIDs{OpenFilter: ledger.OpenFilter{Before: 1}, limit: 10}, nil},
	} {
		x.q.account = 1
		if x.q.from(c); !slices.Equal(x.q.ids, x.want) {
			t.Errorf("ids %s: %v, want %v", what, x.q.ids, x.want)
		}
	}
}
