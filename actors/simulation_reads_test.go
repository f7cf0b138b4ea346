package actors

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/trading"
	"exchange/persistence"
	"exchange/persistence/memory"
	"exchange/prove/spec"
)

// A playedRead is a read on its way.
type playedRead struct {
	l     *life
	kind  string
	q     committed.Question
	owner *spec.Account
	key   *directory.Key // nil: the read is not signed
	nonce uint64

	begun int    // step
	after uint64 // highest sequence that was answered before it began: the answer must show it
	taken uint64 // highest nonce of its key that was answered before it began
	named int    // orders with client order ids that its engine was sent before it began
}

// read asks a question at random, and checks the answer against the model at the answer's sequence.
func (s *sim) read(r *rand.Rand, l *life) {
	account := s.model.Account(pick(r, s.names))
	if account == nil || account.ID > l.engine.dir.Count() {
		return
	}
	x := s.drawRead(r, l, account)
	s.spawn(l, fmt.Sprintf("%d.read %s of %s, nonce %d", l.number, x.kind, x.owner.Name, x.nonce),
		func() { s.runRead(x) })
}

func (s *sim) drawRead(r *rand.Rand, l *life, account *spec.Account) *playedRead {
	kind := pick(r, []string{"wallet", "wallet", "orders", "history", "trades",
		"levels", "hash"})
	var id event.ClientID
	if n := len(l.named); n > 0 && r.IntN(4) == 0 { // of an order that may be on its way
		order := l.named[n-1-r.IntN(min(n, 3))]
		kind, account, id = "order", s.model.Accounts[order.account-1], order.id
	}
	pair := pick(r, l.engine.Pairs()).Number
	q := map[string]committed.Question{"wallet": &committed.Wallet{Account: account.ID},
		"orders":  &committed.OpenOrders{Account: account.ID, Limit: 1000},
		"history": new(committed.Barrier),
		"trades": &committed.NewestTrades{TradeQuery: committed.TradeQuery{Pair: pair,
			Limit: 1000}},
		"levels": &committed.ViewQuestion{Pair: pair, Kind: committed.ViewLevels, LimitBuy: 1000,
			LimitSell: 1000},
		"hash": new(committed.Hash), "order": &committed.OpenOrders{Account: account.ID,
			ClientID: id, Limit: 1000}}[kind]
	x := &playedRead{l: l, kind: kind, q: q, owner: account}
	if !id.IsZero() || kind == "wallet" && r.IntN(2) == 0 {
		x.key = l.key(r, fmt.Sprintf("key-%s-%d", account.Name, r.IntN(2)))
		if x.key != nil {
			x.nonce = s.nextNonce(r, x.key.Public)
		}
	}
	return x
}

func (s *sim) runRead(x *playedRead) {
	l := x.l
	x.after, x.named, x.begun = l.answered, len(l.named), s.steps
	stale := time.Since(l.confirmed) > l.rhythm.Stale
	if x.key != nil {
		x.after = s.told // by any engine
		x.taken = l.taken[x.key.Number]
		s.model.ReadNonces[x.key.Number] = append(s.model.ReadNonces[x.key.Number], x.nonce)
	}
	err := l.engine.Ask(x.q, x.key, x.nonce)
	if x.key != nil && stale {
		if s.outcomes["private reads, not confirmed"]++; !turnedAwayBy(err) {
			s.violate("engine %d takes read %s of %s, and the store has not said for too long "+
				"that it is its own: %v", l.number, x.kind, x.owner.Name, err)
		}
	}
	var used *committed.NonceError
	switch {
	case err == nil:
		s.readAnswered(x)
		return
	case errors.As(err, &used):
		s.readNonceRefused(x, used.Last)
	case errors.Is(err, committed.ErrFrozen):
		if x.owner.Freezes == 0 {
			s.violate("engine %d refuses read %s of %s, which nobody has frozen", l.number, x.kind,
				x.owner.Name)
		}
		s.readTookNonce(l, x.key, x.nonce, x.taken, false)
	case errors.Is(err, committed.ErrTimeout),
		errors.Is(err, committed.ErrKeyRevoked) && s.model.Keys[x.key.Number-1].Revoked,
		turnedAwayBy(err):
	default:
		s.violate("engine %d, read %s: %w", l.number, x.kind, err)
	}
	s.say("  read: %v", err)
	s.outcomes["read, not answered"]++
}

func (s *sim) readAnswered(x *playedRead) {
	l := x.l
	s.say("  read at %d", seqOf(x.q))
	if err := s.checkRead(x.q, x.owner, x.after); err != nil {
		s.violate("engine %d, read %s of %s at %d: %w", l.number, x.kind, x.owner.Name, seqOf(x.q),
			err)
	}
	if x.key != nil {
		s.readTookNonce(l, x.key, x.nonce, x.taken, false)
		if at := (spec.KeyNonce{Key: x.key.Number, Nonce: x.nonce}); s.model.Taken(at) {
			s.violate("engine %d takes nonce %d of %s for a read, and a command has used it",
				l.number, x.nonce, x.key.Public)
		}
		if s.isBarred(x.key.Public, x.begun) {
			s.violate("engine %d answers read %s with %s, which was revoked before it began",
				l.number, x.kind, x.key.Public)
		}
		if s.isBarred(x.owner.Name, x.begun) {
			s.violate("engine %d answers read %s of %s, which was frozen before it began", l.number,
				x.kind, x.owner.Name)
		}
	}
	if q, ok := x.q.(*committed.OpenOrders); ok && !q.ClientID.IsZero() && x.key != nil &&
		s.hasProjected(q.Seq) && len(q.Orders) == 0 && len(s.stored(q)) == 0 {
		s.outcomes["no order of a client order id"]++
		for _, order := range l.named[:x.named] {
			// orders of sessions all have nonce 0, so a later one is not told apart
			if order.account == x.owner.ID && order.id == q.ClientID && order.at.Nonce > 0 {
				s.missing[order] = true
			}
		}
	}
	s.outcomes["read, answered"]++
}

// readNonceRefused checks that another read or a command has used the read's nonce or a higher one;
// of a key for parallel use, the nonce itself or as many higher ones as are kept.
func (s *sim) readNonceRefused(x *playedRead, last uint64) {
	s.toldLast(x.key, x.nonce, x.taken, last)
	reads := s.model.ReadNonces[x.key.Number]
	own := slices.Index(reads, x.nonce)
	others := slices.Delete(slices.Clone(reads), own, own+1)
	if !s.model.Keys[x.key.Number-1].MayRefuse(x.nonce, others) {
		s.violate("engine %d refuses nonce %d of %s for a read; others had %v", x.l.number, x.nonce,
			x.key.Public, others)
	}
}

// seqOf returns the sequence of an answer.
func seqOf(q committed.Question) uint64 {
	switch q := q.(type) {
	case *committed.Wallet:
		return q.Seq
	case *committed.OpenOrders:
		return q.Seq
	case *committed.Barrier:
		return q.Seq
	case *committed.NewestTrades:
		return q.Seq
	case *committed.ViewQuestion:
		return q.Seq
	}
	return q.(*committed.Hash).Seq
}

// checkRead checks an answer: it shows all that was answered before the read began, and nothing
// that is not durable.
func (s *sim) checkRead(question committed.Question, a *spec.Account, after uint64) error {
	if seq := seqOf(question); seq > s.model.Seq || seq < after {
		return fmt.Errorf("what was answered before is at %d, and durable are %d records", after,
			s.model.Seq)
	}
	switch q := question.(type) {
	case *committed.Wallet:
		return sameFunds(q.Holdings, a.At(q.Seq))
	case *committed.OpenOrders:
		if !q.ClientID.IsZero() {
			return s.checkNamedOrder(q, a)
		}
		return checkOpenOrders(q, a)
	case *committed.Barrier:
		if at, err := memory.Open(s.disk, persistence.Retention{}).Watermark(
			context.Background()); err != nil || at < q.Seq {
			return errors.Join(fmt.Errorf("the history is at %d", at), err)
		}
	case *committed.NewestTrades:
		want := slices.DeleteFunc(s.tradesUpTo(q.Seq),
			func(t persistence.Trade) bool { return t.Pair != q.Pair })
		slices.Reverse(want)
		if q.Complete && !slices.Equal(q.Trades, want) {
			return fmt.Errorf("trades %v are not %v", q.Trades, want)
		}
	case *committed.ViewQuestion:
		updates := s.model.Pairs[q.Pair-1].Updates
		u := int(q.View.UpdateID)
		if u > len(updates) || u < len(updates) && updates[u].Seq <= after {
			return fmt.Errorf("the book is of update id %d of %d", u, len(updates))
		}
		if u > 0 {
			return errors.Join(sameLevels(q.View.Depth.BuyLevels, updates[u-1].Sides[0]),
				sameLevels(q.View.Depth.SellLevels, updates[u-1].Sides[1]))
		}
	case *committed.Hash:
		return q.Err
	}
	return nil
}

// hasProjected reports whether the disk has the history up to a sequence. A disk that has lost some
// of it is found out by the engine's next projection.
func (s *sim) hasProjected(seq uint64) bool {
	at, err := memory.Open(s.disk, persistence.Retention{}).Watermark(context.Background())
	return err == nil && at >= seq
}

// stored returns the orders with a client order id that an answer leaves to the store, newest
// first.
func (s *sim) stored(q *committed.OpenOrders) (list []persistence.Order) {
	if q.Seq == 0 {
		return nil
	}
	err := memory.Open(s.disk, persistence.Retention{}).Orders(context.Background(),
		persistence.OrderQuery{Account: q.Account, ClientID: q.ClientID.String(),
			MaxSeq: q.Seq}, func(o *persistence.Order) bool {
			list = append(list, *o)
			return true
		})
	if err != nil {
		s.violate("the disk does not tell its orders: %w", err)
	}
	return list
}

// checkNamedOrder checks the orders of a client order id: the open one, and all that have closed.
func (s *sim) checkNamedOrder(q *committed.OpenOrders, a *spec.Account) error {
	if !s.hasProjected(q.Seq) {
		return fmt.Errorf("the history is behind %d", q.Seq)
	}
	got := append(slices.Clone(q.Orders), s.stored(q)...)
	want := slices.DeleteFunc(s.ordersUpTo(q.Seq), func(o persistence.Order) bool {
		return o.Account != a.ID || o.ClientID != q.ClientID.String()
	})
	for _, o := range a.OpenAt(q.Seq) {
		if o.ClientID == q.ClientID {
			want = append(want, orderRow(&o))
			want[len(want)-1].Status = trading.StatusActive
		}
	}
	slices.Reverse(want)
	if !slices.Equal(got, want) {
		return fmt.Errorf("orders %+v are not %+v", got, want)
	}
	return nil
}

func checkOpenOrders(q *committed.OpenOrders, a *spec.Account) error {
	want := a.OpenAt(q.Seq)
	for _, o := range q.Orders {
		if w, open := want[o.ID]; !open || o.Remaining != w.Remaining || o.Price != w.Price ||
			o.ClientID != w.ClientID.String() {
			return fmt.Errorf("order %+v is not %+v", o, w)
		}
	}
	if len(q.Orders) != len(want) {
		return fmt.Errorf("%d orders are open, not %d", len(q.Orders), len(want))
	}
	return nil
}
