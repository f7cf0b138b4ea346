package actors

import (
	"testing"

	"exchange/core/state"
	"exchange/persistence"
)

func TestAPooledReadKeepsNoLongLists(t *testing.T) {
	const n = keptRows + 1
	r := NewRead(ReadAccount)
	r.Orders, r.Trades = make([]persistence.Order, n), make([]persistence.Trade, n)
	r.Withdraws, r.Holders = make([]state.Withdraw, n), make([]uint32, n)
	r.dropLongLists()
	if kept := max(cap(r.Orders), cap(r.Trades), cap(r.Withdraws),
		cap(r.Holders)); kept > keptRows {
		t.Errorf("%d rows are kept", kept)
	}
}
