package observing

import (
	"log/slog"
	"reflect"
	"slices"
	"testing"

	"exchange/core/money"
	"exchange/core/wire"
	"exchange/persistence"
	"exchange/persistence/line"
)

// Values that can be read can be written, and are read the same again.
func FuzzValue(f *testing.F) {
	f.Add(wire.AppendValue(nil, &persistence.Trade{ID: 7, Pair: 1, TakerSide: 1, Price: 5,
		TakerFee: money.BalanceFromBits(1, 2), TimeUs: -1}))
	f.Add(wire.AppendValue(nil, &persistence.Candle{Pair: 1, Volume: money.TotalFromBits(3, 4)}))
	f.Add(wire.AppendValue(nil, &persistence.Horizon{Seq: 9, Trades: []uint64{1, 2}}))
	f.Add(wire.AppendValue(nil, &status{Standing: persistence.Standing{Leader: "a",
		Peers: []persistence.Peer{{Name: "a", Address: "b", Role: "c"}}}}))
	f.Add(wire.AppendValue(nil, &persistence.TradeQuery{Pair: 1, Offset: 3, Ascending: true}))
	f.Add([]byte{255, 255, 255, 255, 255, 255, 255, 255, 255, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, v := range []any{new(persistence.Trade), new(persistence.Order),
			new(persistence.Withdrawal), new(persistence.Candle), new(persistence.Horizon),
			new(persistence.TradeQuery), new(persistence.OrderQuery),
			new(persistence.CandleQuery), new(status), new(market)} {
			p := wire.Read(b)
			if p.Value(v); p.Bad() {
				continue
			}
			again := reflect.New(reflect.TypeOf(v).Elem()).Interface()
			q := wire.Read(wire.AppendValue(nil, v))
			if q.Value(again); !q.End() || !reflect.DeepEqual(v, again) {
				t.Fatalf("%+v came as %+v", v, again)
			}
		}
	})
}

// No request of an observer stops a member.
func FuzzQuery(f *testing.F) {
	h := wire.AppendValue(nil, everything)
	for kind, q := range map[byte]any{askTrades: &persistence.TradeQuery{},
		askOrders: &persistence.OrderQuery{Account: 1}, askOrder: &orderQuery{1, 2},
		askWithdrawal: &idQuery{1}, askCandles: &persistence.CandleQuery{Pair: 1}} {
		f.Add(kind, wire.AppendValue(slices.Clone(h), q))
	}
	f.Fuzz(func(t *testing.T, kind byte, b []byte) {
		l := &cursor{observer: &observer{Server: &Server{store: &member{}}},
			q: &line.Question{Kind: kind, Body: b}}
		if run, err := l.parse(); err == nil && run == nil {
			t.Fatal("an accepted query has no answer")
		}
	})
}

// On any status or feed of a member, an observer continues, or treats the connection as broken.
func FuzzMemberSays(f *testing.F) {
	f.Add(wire.AppendValue(nil, &status{Standing: persistence.Standing{Leader: "a"}}), false)
	f.Add(wire.AppendValue(wire.AppendValue(nil, &status{}), &market{Next: []byte{7}}), false)
	f.Add([]byte{feedBegin, 0, 1, 1, feedPiece, 1, 7, feedImage}, true)
	f.Add([]byte{feedBegin, 0, 0, 0, feedImage, feedBatch, 0, 1, 1, 1, 7}, true)
	f.Fuzz(func(t *testing.T, b []byte, feed bool) {
		s := &Store{changed: make(chan struct{}), o: Options{buffer: 1 << 30,
			Log: slog.New(slog.DiscardHandler)}}
		l := &link{s: s, node: "b"}
		x := feeding{link: l}
		err := error(nil)
		if feed {
			err = x.take(t.Context(), b)
		} else {
			err = l.applyStatus(b, false)
		}
		if err != nil && (s.market.Next != nil || s.standing.Leader != "") {
			t.Fatalf("%x is both refused and accepted: %v", b, err)
		}
	})
}
