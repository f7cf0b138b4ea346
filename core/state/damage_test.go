package state

import (
	"errors"
	"strings"
	"testing"

	"exchange/core/event"
	"exchange/core/trading"
)

// What no book decides cannot be read from a store, even if every checksum is right: a start ends
// there, and serves nothing. Orders that take at once are such a case, because they never rest.

// A part is a part of an order's instructions.
type part struct {
	name string
	says func(i *trading.Instructions)
}

// atOnceParts make an order take at once.
var atOnceParts = []part{
	{"ioc", func(i *trading.Instructions) { i.IOC = true }},
	{"fok", func(i *trading.Instructions) { i.FOK = true }},
	{"market", func(i *trading.Instructions) { i.Market, i.IOC = true, true }},
	{"market fok", func(i *trading.Instructions) { i.Market, i.FOK = true, true }},
}

// restingParts are for an order that rests.
var restingParts = []part{
	{"post-only", func(i *trading.Instructions) { i.PostOnly = true }},
	{"slide", func(i *trading.Instructions) { i.PostOnly, i.Asked = true, coin }},
	{"iceberg", func(i *trading.Instructions) { i.Display = coin / 2 }},
	{"end", func(i *trading.Instructions) { i.ExpireUs = 1 << 40 }},
}

// folds folds a record that is stored in a whole batch.
func folds(s *State, r event.Record) error {
	f := Fold{State: s}
	b := event.EndBatch(r.Append(event.BeginBatch(nil)), 1, s.Seq(), 1)
	return f.Batch(s.Seq(), s.Seq()+1, b)
}

// reasonOf returns why nothing of an order is left that takes at once and meets nothing.
func reasonOf(i *trading.Instructions) trading.Reason {
	if i.FOK {
		return trading.CancelledFOK
	}
	return trading.CancelledIOC
}

// below returns a buy that meets nothing, with instructions.
func below(says ...part) event.Record {
	r := event.Record{Kind: event.KindInstructed, Pair: 1, TimeUs: 40, Order: event.Order{ID: 9,
		Account: 1, Side: trading.Buy, Price: 9 * coin, Amount: coin, Remaining: coin}}
	for _, p := range says {
		p.says(&r.Instructions)
	}
	if atOnce(&r.Instructions) {
		r.Order.RestCancelled, r.Instructions.Cancelled = true, reasonOf(&r.Instructions)
	}
	return r
}

// waiting returns a record of the same buy, which waits for a rise.
func waiting(says ...part) event.Record {
	r := below(says...)
	r.Kind, r.Trigger = event.KindStop, trading.Trigger{Price: 12 * coin, When: trading.Rise}
	r.Order.RestCancelled, r.Instructions.Cancelled = false, 0
	return r
}

func TestAnOrderThatTakesAtOnceIsRefusedWithWhatIsForOrdersThatRest(t *testing.T) {
	f := func(what string, err error, text string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", what, err)
		}
	}
	const never = "never rests, but is post-only, an iceberg, or has an end"
	for _, now := range atOnceParts {
		for _, record := range []func(...part) event.Record{below, waiting} {
			if err := folds(instructed(), record(now)); err != nil {
				t.Fatalf("%s alone: %v", now.name, err)
			}
			for _, rests := range restingParts {
				what := record().Kind.String() + ": " + now.name + " and " + rests.name
				if err := folds(instructed(), record(rests)); err != nil {
					t.Fatalf("%s alone: %v", rests.name, err)
				}
				f(what, folds(instructed(), record(now, rests)), never)
			}
		}
		for _, rests := range restingParts {
			s := instructed() // order 7 waits, and is an ioc
			x := s.pairs[0].instructed[7]
			x.Instructions = trading.Instructions{}
			if now.says(&x.Instructions); s.imageFault() != nil {
				t.Fatalf("%s alone: %v", now.name, s.imageFault())
			}
			rests.says(&x.Instructions)
			f("an image: "+now.name+" and "+rests.name, s.imageFault(), never)
		}
	}
}

// imageFault returns the error with which the state's image is refused.
func (s *State) imageFault() error {
	_, err := Decode(s.AppendTo(nil))
	if err != nil && !errors.Is(err, ErrImage) {
		panic(err)
	}
	return err
}

func TestAnOrderThatTakesAtOnceIsRefusedWhereItRests(t *testing.T) {
	f := func(what string, err error, texts ...string) {
		t.Helper()
		for _, text := range texts {
			if err != nil && strings.Contains(err.Error(), text) {
				return
			}
		}
		t.Errorf("%s: %v", what, err)
	}
	for _, now := range atOnceParts {
		r := below(now)
		r.Order.RestCancelled, r.Instructions.Cancelled = false, 0
		f("a new order: "+now.name, folds(instructed(), r), "takes at once, but rests",
			"takes all or nothing")

		s := instructed()
		x := s.pairs[0].instructed[5] // which rests
		x.Instructions = trading.Instructions{}
		now.says(&x.Instructions)
		f("an image: "+now.name, s.imageFault(), "cannot rest by them")
	}
	r := killed()
	if err := folds(after(falls()...)(), r); err != nil {
		t.Fatal(err)
	}
	r.Order.RestCancelled, r.Instructions.Cancelled = false, 0
	f("a triggered order", folds(after(falls()...)(), r), "takes at once, but rests")
	r = crosses()
	r.Instructions.IOC, r.Instructions.ExpireUs = true, 0
	f("a changed order", folds(instructed(), r), "is changed from")
}

// What else cannot be together, in an image: records are looked at by the tests of Apply.
func TestAnImageOfInstructionsThatDoNotGoTogetherIsRefused(t *testing.T) {
	f := func(what string, order uint64, says func(i *trading.Instructions), text string) {
		t.Helper()
		s := instructed()
		says(&s.pairs[0].instructed[order].Instructions)
		if err := s.imageFault(); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", what, err)
		}
	}
	const form = "the instructions of an order have another form"
	f("ioc and fok", 7, func(i *trading.Instructions) { i.FOK = true }, "both ioc and fok")
	f("a market order that may rest", 7, func(i *trading.Instructions) {
		i.IOC, i.Market = false, true
	}, "market order that may rest")
	f("a sum of an order that rests", 5, func(i *trading.Instructions) { i.Quote = coin },
		"spends a sum, but may rest")
	f("a sum of a sell", 7, func(i *trading.Instructions) { i.Quote = coin },
		"spends a sum, but may rest, or is no buy")
	f("a slide that is not post-only", 3, func(i *trading.Instructions) { i.Asked = coin },
		"slides, but is not post-only")
	f("another half of a buy", 5, func(i *trading.Instructions) { i.OCO.Trigger = coin },
		"is no sell")
	f("another half above the price", 4, func(i *trading.Instructions) {
		i.OCO.Trigger = 13 * coin
	}, "not below 13")
	f("another half that could only be cancelled", 4, func(i *trading.Instructions) {
		i.PostOnly, i.OCO.Price = true, 0
	}, "has another half, but")
	f("an open order with a reason", 3, func(i *trading.Instructions) {
		i.Cancelled = trading.CancelledOwner
	}, form)
}
