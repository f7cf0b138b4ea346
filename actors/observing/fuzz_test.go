package observing

import (
	"bytes"
	"context"
	"reflect"
	"testing"

	"exchange/core/money"
	"exchange/persistence"
)

// Values that can be read can be written, and are read the same again.
func FuzzValue(f *testing.F) {
	f.Add(appendValue(nil, &persistence.Trade{ID: 7, Pair: 1, TakerSide: 1, Price: 5,
		TakerFee: money.BalanceFromBits(1, 2), TimeUs: -1}))
	f.Add(appendValue(nil, &persistence.Candle{Pair: 1, Volume: money.TotalFromBits(3, 4)}))
	f.Add(appendValue(nil, &persistence.Horizon{Seq: 9, Trades: []uint64{1, 2}}))
	f.Add(appendValue(nil, &status{Leader: "a", Peers: []peer{{"a", "b", "c"}}}))
	f.Add(appendValue(nil, &persistence.TradeQuery{Pair: 1, Offset: 3, Ascending: true}))
	f.Add([]byte{255, 255, 255, 255, 255, 255, 255, 255, 255, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, v := range []any{new(persistence.Trade), new(persistence.Order),
			new(persistence.Deposit), new(persistence.Withdrawal), new(persistence.Candle),
			new(persistence.Horizon), new(persistence.TradeQuery), new(persistence.OrderQuery),
			new(persistence.DepositQuery), new(persistence.WithdrawalQuery),
			new(persistence.CandleQuery), new(status), new(ordersQuery), new(clientQuery)} {
			p := parse(b)
			if p.value(v); p.Bad() {
				continue
			}
			again := reflect.New(reflect.TypeOf(v).Elem()).Interface()
			q := parse(appendValue(nil, v))
			if q.value(again); q.done() != nil || !reflect.DeepEqual(v, again) {
				t.Fatalf("%+v came as %+v", v, again)
			}
		}
	})
}

// Whatever an observer says, a member goes on.
func FuzzQuery(f *testing.F) {
	h := appendValue(nil, everything)
	for kind, q := range map[byte]any{askTrades: &persistence.TradeQuery{},
		askOrders: &persistence.OrderQuery{Account: 1}, askOrder: &orderQuery{1, 2},
		askOrdersByID: &ordersQuery{1, []uint64{1}}, askClientOrder: &clientQuery{1, 1, "c"},
		askDeposits:    &persistence.DepositQuery{Account: 1},
		askWithdrawals: &persistence.WithdrawalQuery{}, askWithdrawal: &idQuery{1},
		askCandles: &persistence.CandleQuery{Pair: 1}} {
		f.Add(appendValue(append([]byte{kind}, h...), q))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		l := &lender{Server: &Server{store: &member{}}, ctx: context.Background()}
		q, run, err := l.parse(parse(b), 1)
		if q.stop(); err == nil && run == nil {
			t.Fatal("a query that is taken has no answer")
		}
	})
}

// Whatever a member says on its feed, an observer takes no more memory than comes.
func FuzzFrame(f *testing.F) {
	f.Add(appendFrame(nil, feedBeat, 0))
	f.Add(append(appendFrame(nil, feedPiece, 3), 1, 2, 3))
	f.Add([]byte{feedBatch, 64, 0, 0, 0})
	f.Add([]byte{feedBatch, 3, 0, 0, 0, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		kind, payload, err := readFrame(bytes.NewReader(b), nil)
		if err != nil {
			if cap(payload) > max(4*len(b), 4*pieceBytes) {
				t.Fatalf("%d bytes for %d", cap(payload), len(b))
			}
			return
		}
		again := append(appendFrame(nil, kind, len(payload)), payload...)
		if !bytes.HasPrefix(b, again) {
			t.Fatalf("%x is read as %x", b, again)
		}
	})
}

// Whatever a member says on talk and rows, an observer goes on, or takes the connection for broken.
func FuzzMemberSays(f *testing.F) {
	f.Add(append([]byte{talkStatus}, appendValue(nil, &status{Leader: "a"})...), false)
	f.Add([]byte{talkMarket, 0, 1, 1, 7}, false)
	f.Add([]byte{talkReach, answerGood, 1, 0}, false)
	f.Add([]byte{rowsPage, 1, answerGood, 1, 0}, true)
	f.Fuzz(func(t *testing.T, b []byte, rows bool) {
		s := &Store{changed: make(chan struct{})}
		r := &round{done: make(chan struct{})}
		q := &query{1, make(chan page, 1), make(chan struct{})}
		l := &link{s: s, node: "b", queries: map[uint64]*query{1: q}}
		s.link, s.reaching = l, r
		var err error
		if rows {
			err = l.receiveRows(b)
		} else {
			err = l.receive(b, false)
		}
		if err != nil && len(q.pages) > 0 {
			t.Fatalf("%x is refused and taken: %v", b, err)
		}
	})
}
