package committed

import (
	"fmt"
	"slices"
	"testing"

	"exchange/core/event"
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

// All orders here but one are in the account's list alone, and in no book: to look one of them up
// breaks an invariant.
func TestOpenOrdersThatAreSkippedOrFilteredOutAreNotLookedUp(t *testing.T) {
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
			a.Open.AddSide(other, 1, trading.Buy)
		} else if other != id {
			a.Open.AddSide(other, 2, trading.Sell)
		}
	}
	for what, ask := range map[string]func(r *Read){
		"by pair and side": func(r *Read) { r.Pair, r.Side, r.Limit = 1, trading.Sell, 10 },
		"by offset":        func(r *Read) { r.Offset, r.Limit = 1000-id, 1 },
		"by both": func(r *Read) {
			r.Side, r.Offset, r.Limit = trading.Sell, (1000-id)/2, 1
		},
		"by id": func(r *Read) { r.Before, r.Limit = id+1, 1 },
	} {
		r := NewRead(ReadOrders)
		r.Account = 1
		ask(r)
		if r.from(&Side{state: s}); len(r.Orders) != 1 || r.Orders[0].ID != id {
			t.Errorf("%s: %+v", what, r.Orders)
		}
	}
	for what, c := range map[string]struct {
		ask  func(r *Read)
		want []uint64
	}{
		"the newest": {func(r *Read) { r.Limit = 3 }, []uint64{1000, 999, 998}},
		"of a side": {func(r *Read) { r.Limit, r.Side, r.Before = 3, trading.Sell, 502 },
			[]uint64{501, 500, 499}},
		"of a pair": {func(r *Read) { r.Limit, r.Pair, r.Before = 10, 2, 6 },
			[]uint64{5, 3, 1}},
		"of the oldest": {func(r *Read) { r.Limit, r.Before = 10, 1 }, nil},
	} {
		r := NewRead(ReadOpenIDs)
		r.Account = 1
		c.ask(r)
		if r.from(&Side{state: s}); !slices.Equal(r.IDs, c.want) {
			t.Errorf("ids %s: %v, want %v", what, r.IDs, c.want)
		}
	}
}
