//go:build prove

package redis

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"exchange/core/trading"
	"exchange/persistence"
	"exchange/persistence/internal/codec"
	"exchange/persistence/redistest"
)

// An Apply that a crash stops between two of its calls is repeated, also with another split.
func TestHalfWrittenApplyIsRepeated(t *testing.T) {
	server := redistest.Start(t)
	s, tok, _ := mustOpen(t, server.URL(), Options{})
	var w persistence.Writes
	for id := uint64(1); id <= 9000; id++ {
		w.Trades = append(w.Trades, persistence.Trade{ID: id, Pair: uint16(1 + id%3), TakerSide: 1,
			Taker: uint32(id % 7), Maker: uint32(id % 5), TimeUs: 1})
		w.Orders = append(w.Orders, persistence.Order{ID: id, Account: uint32(id % 7), Pair: 1,
			Side: 1, Status: trading.StatusDone, ClosedSeq: id,
			ClientID: strings.Repeat("c", int(id%3)*int(1+id%36)/2)})
	}
	var c cutter
	s.addTrades(&c, w.Trades)
	s.addOrders(&c, w.Orders)
	calls := c.calls()
	if len(calls) < 5 {
		t.Fatalf("only %d calls: this proves nothing", len(calls))
	}
	call := func(i int, from, to uint64, move string) int64 {
		t.Helper()
		head := []any{string(tok), dec(from), dec(to), move, "0", ""}
		code, _, err := s.run(t.Context(), s.projections, applyScript, "apply",
			[]string{s.head(), s.watermark(), s.sums()}, append(head, calls[i]...)...)
		succeeds(t, err)
		return code
	}
	for i := range len(calls) - 1 {
		if code := call(i, 0, 9000, "0"); code != codeDone {
			t.Fatalf("code %d", code)
		}
	}
	// A new process splits the same rows elsewhere.
	for from := uint64(0); from < 9000; from += 1500 {
		part := persistence.Writes{Trades: w.Trades[from : from+1500],
			Orders: append(w.Orders[from:from+1500:from+1500], w.Orders[from])} // one of them twice
		succeeds(t, s.Apply(t.Context(), tok, from, from+1500, &part))
	}
	// A call of the first try arrives late: it finds the watermark moved.
	if code := call(0, 0, 9000, "0"); code != codeThere {
		t.Fatalf("code %d", code)
	}
	if code := call(0, 0, 4000, "1"); code != codeGap {
		t.Fatalf("code %d", code)
	}
	for _, q := range []persistence.TradeQuery{{}, {Pair: 1}, {Account: 3}} {
		wantFalling(t, s, q, w.Trades)
	}
	n := 0
	err := s.Orders(t.Context(), persistence.OrderQuery{Account: 3},
		func(*persistence.Order) bool { n++; return true })
	if err != nil || n != 1286 {
		t.Fatalf("%d orders, %v", n, err)
	}
	if wrong := verified(t, s); wrong != "" {
		t.Fatal(wrong)
	}
}

// wantFalling checks that a list has exactly the trades of a pair and an account, newest first,
// each once.
func wantFalling(t *testing.T, s *Store, q persistence.TradeQuery, all []persistence.Trade) {
	t.Helper()
	want, got := 0, 0
	for i := range all {
		if t := &all[i]; (q.Pair == 0 || t.Pair == q.Pair) &&
			(q.Account == 0 || t.Taker == q.Account || t.Maker == q.Account) {
			want++
		}
	}
	last := uint64(1 << 53)
	succeeds(t, s.Trades(t.Context(), q, func(tr *persistence.Trade) bool {
		if tr.ID >= last {
			t.Fatalf("%+v: %d after %d", q, tr.ID, last)
		}
		last = tr.ID
		got++
		return true
	}))
	if got != want {
		t.Fatalf("%+v: %d trades, want %d", q, got, want)
	}
}

// A row with more rows on both sides of its place than a script may move is refused before any
// write.
func TestFarTooLateRowIsRefused(t *testing.T) {
	server := redistest.Start(t)
	s, tok, _ := mustOpen(t, server.URL(), Options{})
	const late = 500_000 // LATE in apply.lua
	fill := "for i = ARGV[1], ARGV[2], 4 do redis.call('RPUSH', KEYS[1], struct.pack('>I8', i)) " +
		"end return 1"
	const part = 8 * late / 10 // a script of all of them takes too long on a busy machine
	for from := 4; from <= 8*late+4; from += part {
		succeeds(t, server.Client().Eval(t.Context(), fill, []string{s.allTrades()}, from,
			min(from+part-4, 8*late+4)).Err())
	}
	one := func(id uint64) *persistence.Writes {
		return &persistence.Writes{Trades: []persistence.Trade{
			{ID: id, Pair: 1, TakerSide: 1, Taker: 1, Maker: 2}}}
	}
	// At the limit. On a busy machine the answer may come too late, and is retried.
	retry(t, func() error { return s.Apply(t.Context(), tok, 0, 1, one(4*late+1)) })
	err := s.Apply(t.Context(), tok, 1, 2, one(4*late+2))
	if err == nil || !strings.Contains(err.Error(), "{main}:trades") {
		t.Fatalf("error is %v, want one that names the list", err)
	}
	if n := server.Client().LLen(t.Context(), s.pairTrades(1)).Val(); n != 1 {
		t.Fatalf("%d trades in the pair's list, want the one before", n)
	}
	// in front of all: nothing moves
	succeeds(t, s.Apply(t.Context(), tok, 1, 2, one(1)))
	if watermark, err := s.Watermark(t.Context()); err != nil || watermark != 2 {
		t.Fatalf("the watermark is %d, %v", watermark, err)
	}
}

// The marks beside a list belong to its newest trades, one each, in the order of ids, even if the
// trades came in another order. There are at most twice as many marks as trades.
func TestMarksFollowTheirTrades(t *testing.T) {
	server := redistest.Start(t)
	c := server.Client()
	const accounts = 3
	for _, keep := range []int{0, 700} {
		s, tok, _ := mustOpen(t, server.URL(),
			Options{Engine: fmt.Sprintf("keep-%d", keep),
				Retention: persistence.Retention{Trades: keep}})
		r := rand.New(rand.NewPCG(1, uint64(keep)))
		ids := r.Perm(6000)
		lost := false
		var before []persistence.Trade
		for step := range 40 {
			var w persistence.Writes
			for range 100 {
				id := uint64(10_000 + step*100 + len(w.Trades)) // grows
				switch {
				case step%4 == 1: // anywhere
					id = uint64(20_000 + ids[0])
					ids = ids[1:]
				case step%4 == 2: // from the newest on
					id = uint64(10_000 - step*100 - len(w.Trades))
				}
				w.Trades = append(w.Trades, persistence.Trade{ID: id, Pair: uint16(r.IntN(1000)),
					TakerSide: trading.Side(1 + r.IntN(2)), Taker: r.Uint32N(accounts),
					Maker: r.Uint32N(accounts)})
			}
			if step%4 == 3 { // some come again
				w.Trades = append(w.Trades, before...)
			}
			before = append(before[:0], w.Trades[:50]...)
			if step == 25 { // as if written by a version without marks
				for account := range uint32(accounts) {
					c.Del(t.Context(), s.marks(s.accountTrades(account)))
				}
				lost = true
			}
			succeeds(t, s.Apply(t.Context(), tok, uint64(step), uint64(step+1), &w))
			for account := range uint32(accounts) {
				wantMarks(t, c, s, account, lost)
			}
		}
	}
}

// wantMarks compares the marks of an account's trades with the trades. If marks are lost, the older
// trades may have none.
func wantMarks(t *testing.T, c *redis.Client, s *Store, account uint32, lost bool) {
	t.Helper()
	list := s.accountTrades(account)
	rows, err := c.LRange(t.Context(), list, 0, -1).Result()
	marks, err2 := c.Get(t.Context(), s.marks(list)).Result()
	if err := errors.Join(err, err2); err != nil && !lost {
		t.Fatal(err)
	}
	n := len(marks) / codec.MarkSize
	if !lost && n < len(rows) || n > 2*len(rows)+1000 || len(marks)%codec.MarkSize != 0 {
		t.Fatalf("%d trades with %d bytes of marks", len(rows), len(marks))
	}
	for i := range min(n, len(rows)) {
		var tr persistence.Trade
		row := []byte(rows[len(rows)-1-i])
		succeeds(t, codec.DecodeTrade(row[codec.IDSize:len(row)-codec.SumSize], rowID(row), &tr))
		at := (n - 1 - i) * codec.MarkSize
		got := marks[at : at+codec.MarkSize]
		want := string(codec.AppendMark(nil, codec.At(s.marks(list)), &tr, account))
		if got != want {
			t.Fatalf("the mark of trade %d of account %d, %d before the newest, is %x, want %x",
				tr.ID, account, i, got, want)
		}
	}
}

// Marks that would get longer than Redis allows are reset. No Apply is refused in the middle, and
// every trade is still found.
func TestTooLongMarksAreReset(t *testing.T) {
	server := redistest.Start(t)
	s, tok, _ := mustOpen(t, server.URL(), Options{})
	m := &longMarks{T: t, c: server.Client(), s: s, tok: tok, id: 1}
	succeeds(t, m.c.ConfigSet(t.Context(), "proto-max-bulk-len", fmt.Sprint(longestMarks)).Err())
	m.grow(3000)
	m.want(3000)
	m.fill(9)
	m.grow(10)
	m.want(10)
	m.grow(1000)
	m.want(1010)
	m.fill(8)
	// even ones, in the middle of the newest
	id := m.id
	m.apply(id-19, id-17, id-15, id-13, id-11, id-9, id-7, id-5, id-3)
	m.want(0)
	m.grow(2000)
	m.want(2000)
	for _, q := range []persistence.TradeQuery{{Account: 1, Offset: pageRows + 2500},
		{Account: 1, Pair: 1, Offset: 5}, {Account: 1, Offset: pageRows + 100, Ascending: true}} {
		n, all := 0, 3000+10+1000+9+2000
		if q.Pair != 0 {
			all = 9
		}
		err := s.Trades(t.Context(), q, func(*persistence.Trade) bool { n++; return true })
		if err != nil || n != all-q.Offset {
			t.Fatalf("%+v answers %d trades (%v), want %d", q, n, err, all-q.Offset)
		}
	}
}

const longestMarks = 1 << 20 // bytes; the least that Redis lets be configured

// longMarks writes trades of account 1, and checks their marks.
type longMarks struct {
	*testing.T
	c   *redis.Client
	s   *Store
	tok persistence.Token
	at  uint64 // the watermark
	id  uint64 // of the next trade; odd
}

func (m *longMarks) apply(ids ...uint64) {
	m.Helper()
	var w persistence.Writes
	for _, id := range ids {
		w.Trades = append(w.Trades, persistence.Trade{ID: id, Pair: uint16(1 + id%2),
			TakerSide: 1, Taker: 1, Maker: 2})
	}
	succeeds(m, m.s.Apply(m.Context(), m.tok, m.at, m.at+1, &w))
	m.at++
}

func (m *longMarks) grow(n int) {
	m.Helper()
	ids := make([]uint64, n)
	for i := range ids {
		ids[i] = m.id
		m.id += 2
	}
	m.apply(ids...)
}

func (m *longMarks) key() string { return m.s.marks(m.s.accountTrades(1)) }

func (m *longMarks) marks() string { return m.c.Get(m.Context(), m.key()).Val() }

func (m *longMarks) want(n int) {
	m.Helper()
	if got := len(m.marks()); got != n*codec.MarkSize {
		m.Fatalf("%d bytes of marks, want %d marks", got, n)
	}
}

// fill puts marks of trimmed rows in front, until only some more have room.
func (m *longMarks) fill(room int) {
	m.Helper()
	marks := m.marks()
	front := strings.Repeat("x",
		longestMarks/codec.MarkSize*codec.MarkSize-len(marks)-room*codec.MarkSize)
	succeeds(m, m.c.Set(m.Context(), m.key(), front+marks, 0).Err())
}

// Trades that were written by a version without marks are still found.
func TestLongOffsetIsExactWithAndWithoutMarks(t *testing.T) {
	server := redistest.Start(t)
	s, tok, _ := mustOpen(t, server.URL(), Options{})
	c := server.Client()
	const trades, me = 10_000, 7
	var all []persistence.Trade
	for from := uint64(0); from < trades; from += 2500 {
		var w persistence.Writes
		for id := from + 1; id <= from+2500; id++ {
			tr := persistence.Trade{ID: id, Pair: uint16(1 + id%3),
				TakerSide: trading.Side(1 + id/3%2), Taker: me, Maker: 8}
			if id%5 == 0 {
				tr.Taker, tr.Maker = 8, me
			}
			w.Trades = append(w.Trades, tr)
		}
		all = append(all, w.Trades...)
		succeeds(t, s.Apply(t.Context(), tok, from, from+2500, &w))
	}
	list := s.accountTrades(me)
	marks, err := c.Get(t.Context(), s.marks(list)).Result()
	if err != nil || len(marks) != trades*codec.MarkSize {
		t.Fatalf("%d bytes of marks, %v", len(marks), err)
	}
	sides := persistence.TradeQuery{Pair: 2, TakerSide: trading.Sell, Offset: pageRows + 300}
	var got []uint64
	err = s.Trades(t.Context(), sides, func(tr *persistence.Trade) bool {
		got = append(got, tr.ID)
		return true
	})
	if err != nil || len(got) != 367 || got[0] != 2200 {
		t.Fatalf("%d trades %v, %v", len(got), got, err)
	}
	for _, have := range []int{trades, 4000, 1, 0} {
		succeeds(t, c.Set(t.Context(), s.marks(list), marks[(trades-have)*codec.MarkSize:],
			0).Err())
		for i := range 60 {
			q := persistence.TradeQuery{
				Account: me, Pair: uint16(i % 4), TakerSide: trading.Side(i / 4 % 3),
				MySide: trading.Side(i / 7 % 3),
				Offset: pageRows + 1 + 97*i, Ascending: i%2 == 0, Before: uint64(i % 5 * 2400),
			}
			var got []persistence.Trade
			succeeds(t, s.Trades(t.Context(), q, func(tr *persistence.Trade) bool {
				got = append(got, *tr)
				return true
			}))
			if want := answerOf(q, all); !slices.Equal(got, want) {
				t.Fatalf("with %d marks: %+v answers %d trades, want %d", have, q, len(got),
					len(want))
			}
		}
	}
}

// answerOf returns the expected trades of a list, of all in the order of their ids.
func answerOf(q persistence.TradeQuery, all []persistence.Trade) (want []persistence.Trade) {
	for _, tr := range all {
		if codec.TradeMatches(codec.AppendTrade(nil, &tr), &q) &&
			(q.Before == 0 || tr.ID < q.Before) {
			want = append(want, tr)
		}
	}
	if !q.Ascending {
		slices.Reverse(want)
	}
	return want[min(q.Offset, len(want)):]
}

// after calls fn once, after the next call of a script.
type after struct {
	script *redis.Script
	fn     func()
}

func (a *after) DialHook(next redis.DialHook) redis.DialHook { return next }

func (a *after) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (a *after) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if args := cmd.Args(); a.fn != nil && err == nil && len(args) > 1 &&
			args[1] == a.script.Hash() {
			fn := a.fn
			a.fn = nil
			fn()
		}
		return err
	}
}

// Rows that are added and trimmed between reading the marks and the page that begins there do not
// shift the page.
func TestLongOffsetIsStableWhileTradesArrive(t *testing.T) {
	server := redistest.Start(t)
	s, tok, _ := mustOpen(t, server.URL(), Options{Retention: persistence.Retention{Trades: 6000}})
	var all []persistence.Trade
	add := func(n int) {
		t.Helper()
		var w persistence.Writes
		for range n {
			id := uint64(len(all) + 1)
			tr := persistence.Trade{ID: id, Pair: 1, TakerSide: trading.Side(1 + id/3%2),
				Taker: uint32(1 + id%2), Maker: 3, TimeUs: 1}
			all, w.Trades = append(all, tr), append(w.Trades, tr)
		}
		from, err := s.Watermark(t.Context())
		if err == nil {
			err = s.Apply(t.Context(), tok, from, from+uint64(n), &w)
		}
		succeeds(t, err)
	}
	add(6000)
	meanwhile := &after{script: marksScript}
	s.history.AddHook(meanwhile)
	list := func(q persistence.TradeQuery) (ids []uint64) {
		t.Helper()
		succeeds(t, s.Trades(t.Context(),
			q, func(tr *persistence.Trade) bool {
				ids = append(ids, tr.ID)
				return len(ids) < 300
			}))
		return ids
	}
	for _, q := range []persistence.TradeQuery{{TakerSide: trading.Buy},
		{Account: 3, Pair: 1, TakerSide: trading.Sell}, {Account: 1, MySide: trading.Buy}} {
		for _, ascending := range []bool{false, true} {
			q.Ascending, q.Offset = ascending, 1001
			list(q) // the script is cached from here on
			want := list(q)
			arrived := false
			meanwhile.fn = func() { add(500); arrived = true }
			if got := list(q); !arrived || !slices.Equal(got, want) {
				t.Errorf("%+v: it begins with %v, want %v (%v)", q, got[:min(3, len(got))],
					want[:3], arrived)
			}
		}
	}
}
