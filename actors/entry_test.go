package actors

import (
	"context"
	"testing"
	"time"

	"exchange/actors/committed"
	"exchange/core/event"
	"exchange/core/trading"
)

// unasked is an entry that answers no command, made on the turn of the book that decides on it.
func (g *gated) unasked(kind event.Kind, decide func(b *book, r *event.Record)) {
	g.t.Helper()
	pair := g.e.Pairs()[0]
	g.e.probe(pair.Book, func() {
		b, n := g.e.books[pair.Number-1], new(entry)
		decide(b, n.begin(kind, pair.Number, time.Now().UnixMicro(), ""))
		n.encode()
		g.e.journal.submit(n)
	})
}

// expire makes a resting order end as if its time were over.
func (g *gated) expire(order uint64) {
	g.t.Helper()
	g.unasked(event.KindCancel, func(b *book, r *event.Record) {
		o, ok := b.orders.Cancel(order)
		if !ok {
			g.t.Errorf("order %d is not in its book", order)
		}
		r.Cancel = event.Cancel{ID: b.ids.order.Add(1), Order: o.ID, Account: o.Account,
			Side: o.Side, Price: o.Price, Remaining: o.Remaining}
	})
}

// trigger puts a resting order of the account into its book, as a triggered stop would.
func (g *gated) trigger(w *OrderRequest) (id uint64) {
	g.t.Helper()
	g.unasked(event.KindOrder, func(b *book, r *event.Record) {
		id = b.ids.order.Add(1)
		r.Order = event.Order{ID: id, Account: g.key.Account.ID, Side: w.Side, Price: w.Price,
			Amount: w.Amount, Remaining: w.Amount}
		b.orders.Add(trading.Order{ID: id, Account: r.Order.Account, Side: w.Side, Price: w.Price,
			Amount: w.Amount, Remaining: w.Amount, TimeUs: r.TimeUs})
	})
	return id
}

// unaskedRecords counts what the journal has of a kind without a key or an operator behind it.
func (g *gated) unaskedRecords(kind event.Kind) (n int) {
	g.t.Helper()
	err := g.Store.Read(context.Background(), 0, func(_, _ uint64, data []byte) error {
		b, err := event.OpenBatch(data)
		var r event.Record
		for rest := b.Records; err == nil && len(rest) > 0; {
			rest, err = r.Decode(rest)
			if r.Kind == kind && r.Operator == "" && r.Order.Key == 0 && r.Cancel.Key == 0 {
				n++
			}
		}
		return err
	})
	if err != nil {
		g.t.Fatal(err)
	}
	return n
}

func (g *gated) hash() [32]byte {
	g.t.Helper()
	r := new(committed.Hash)
	if err := g.e.Ask(r, nil, 0); err != nil || r.Err != nil {
		g.t.Fatal(err, r.Err)
	}
	return r.Hash
}

// The journal takes an entry that no client asked for. The entry is durable before it is settled.
// It is settled and folded like any other, and answers no client.
func TestAnEntryThatNoClientAskedForIsStoredSettledAndFolded(t *testing.T) {
	onEachStore(t, func(t *testing.T, fresh places) {
		g := newGated(t, fresh, nil)
		ann, usd := g.key.Account, g.e.CurrencyNumber("USD")
		inFlight := func() bool { return g.e.journal.pending.Load() > 0 }
		have := func(when, want string) {
			t.Helper()
			if got := g.funds(ann.ID, usd); got != want {
				t.Errorf("%s ann has %s USD, want %s", when, got, want)
			}
		}

		order := g.rest(g.buy(90e8, coin))
		g.hold()
		g.expire(order)
		eventually(t, "the expiry is on its way to the store", g.held)
		have("before the expiry is durable,", "1000/90")
		g.letGo()
		eventually(t, "the expiry is released", func() bool { return !inFlight() })
		have("after the expiry", "1000/0")
		if n := g.unaskedRecords(event.KindCancel); n != 1 {
			t.Errorf("the journal has %d expiries, want 1", n)
		}
		if err := g.e.VerifyAtRest(); err != nil {
			t.Error(err)
		}

		stop := g.trigger(g.buy(80e8, 2*coin))
		eventually(t, "the order is released", func() bool { return !inFlight() })
		have("with the order that was triggered", "1000/160")
		if n := g.unaskedRecords(event.KindOrder); n != 1 {
			t.Errorf("the journal has %d orders that no client sent, want 1", n)
		}
		if err := g.e.VerifyAtRest(); err != nil {
			t.Error(err)
		}
		before := g.hash()
		g.crash()
		g.again()
		if g.hash() != before {
			t.Error("replay makes another state of these entries")
		}
		g.ends("the cancel of an order that was triggered", g.cancelling(stop), accepted)
		have("in the end", "1000/0")
		g.end()
	})
}
