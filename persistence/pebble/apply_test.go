package pebble

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"exchange/core/trading"
	"exchange/persistence"
)

// The cached values of an Apply equal the folder's, however many of them were dropped.
func TestMemoEqualsFolder(t *testing.T) {
	dir := t.TempDir()
	keep := persistence.Retention{Trades: 30, Orders: 20, Candles: 10}
	s, tok, _ := mustOpen(t, dir, Options{Retention: keep})
	check := func() {
		t.Helper()
		for list, cached := range s.memo.counters {
			if c, err := s.counter(s.db, []byte(list)); err != nil || c != *cached {
				t.Fatalf("counter of %q is %+v, cached as %+v (%v)", list, c, *cached, err)
			}
		}
		for key, cached := range s.memo.buckets {
			v, err := s.row(s.db, []byte(key))
			c, err2 := decodeCount(v)
			if err := errors.Join(err, err2); err != nil || c != cached {
				t.Fatalf("count %q is %+v, cached as %+v (%v)", key, c, cached, err)
			}
		}
		for key, cached := range s.memo.nonces {
			v, err := s.row(s.db, append(s.key(kindNonce), key...))
			if err != nil || cached.there != (v != nil) ||
				cached.there && binary.BigEndian.Uint64(v[1:]) != cached.value {
				t.Fatalf("nonce of %s is %x, cached as %+v (%v)", key, v, cached, err)
			}
		}
	}
	for i := range uint64(60) {
		w := &persistence.Writes{Nonces: []persistence.Nonce{
			{Key: fmt.Sprint(i % 7), Nonce: 100 - i}, {Key: fmt.Sprint(i % 5), Nonce: i}}}
		for j := range uint64(10) {
			id := i*997 + j*400
			account := uint32(1 + id%3)
			w.Trades = append(w.Trades, persistence.Trade{ID: 1 + id*10 + i%10,
				Pair: uint16(1 + id%2), TakerSide: 1, Taker: account, Maker: 4})
			w.Orders = append(w.Orders, persistence.Order{ID: 1 + id*10 + i%10, Account: account,
				Pair: 1, Side: 1, Status: trading.StatusDone})
			w.Candles = append(w.Candles, persistence.Candle{Pair: 1, Frame: uint8(j % 2),
				Time: int64(i/3 + j%3)})
		}
		succeeds(t, s.Apply(t.Context(), tok, i, i+1, w))
		check()
		if n := len(s.memo.counters); n < 8 {
			t.Fatalf("only %d counters are cached: this proves nothing", n)
		}
		switch i % 20 {
		case 9:
			s.memo.reset()
		case 19: // an Apply that fails in the middle leaves no wrong value cached
			key := s.counterKey(s.pairTrades(2))
			good, err := s.get(s.db, key)
			err = errors.Join(err, s.db.Set(key, []byte("damaged"), pebble.NoSync))
			delete(s.memo.counters, string(s.pairTrades(2)))
			for j := range w.Trades {
				w.Trades[j].ID += 1e9
			}
			if failed := s.Apply(t.Context(), tok, i+1, i+2, w); !errors.Is(failed,
				persistence.ErrCorrupt) {
				t.Fatalf("error is %v, want ErrCorrupt", failed)
			}
			succeeds(t, err, s.db.Set(key, good, pebble.NoSync))
			check()
		}
	}
}

func TestLateRetentionTakesEffectStepByStep(t *testing.T) {
	dir := t.TempDir()
	s, tok, _ := mustOpen(t, dir, Options{})
	const rows, limit = 2*trimAhead + 500, 100
	id := uint64(0)
	add := func(n int) {
		t.Helper()
		w := &persistence.Writes{}
		for range n {
			id++
			w.Trades = append(w.Trades, persistence.Trade{ID: id, Pair: 1, TakerSide: 1, Taker: 1,
				Maker: 1})
		}
		watermark, err := s.Watermark(t.Context())
		if err == nil {
			err = s.Apply(t.Context(), tok, watermark, watermark+1, w)
		}
		succeeds(t, err)
	}
	add(rows)
	s.Close()
	s, tok, _ = mustOpen(t, dir, Options{Retention: persistence.Retention{Trades: limit}})
	for _, want := range []int{rows - trimAhead, rows - 2*trimAhead, limit, limit} {
		add(1)
		for _, q := range []persistence.TradeQuery{{}, {Pair: 1}, {Account: 1},
			{Account: 1, Pair: 1}} {
			n := 0
			if err := s.Trades(t.Context(),
				q, func(*persistence.Trade) bool { n++; return true }); err != nil || n != want {
				t.Fatalf("%+v: %d trades, want %d (%v)", q, n, want, err)
			}
		}
	}
}
