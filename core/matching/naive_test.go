package matching

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/trading"
	"exchange/prove/spec"
)

// A mix is a kind of traffic. Of 100 messages, those that neither cancel nor cross are orders near
// the mid price.
type mix struct {
	name      string
	cancel    int // of 100 messages
	cross     int // of 100 messages: orders far through the other side
	resting   int // above it, cancels replace orders
	width     int64
	mid       func(step int) int64
	amount    func(r *rand.Rand) int64
	idStep    uint64 // ids grow by 1 to this
	maxFills  int
	extremes  bool // one price in four is at or next to 1 or MaxInt64
	cancelOld bool // cancel the oldest ids instead of random ones
}

func at(mid int64) func(int) int64 { return func(int) int64 { return mid } }
func upTo(max int64) func(r *rand.Rand) int64 {
	return func(r *rand.Rand) int64 { return 1 + r.Int64N(max) }
}
func trend(from, perStep int64) func(s int) int64 {
	return func(s int) int64 { return from + perStep*int64(s) }
}

// mixes: seed s uses mix s modulo their number.
var mixes = []mix{
	{name: "tight range", cancel: 40, cross: 10, resting: 400, width: 8, mid: at(1000),
		amount: upTo(50), idStep: 1, maxFills: 1000},
	{name: "wide range", cancel: 30, cross: 3, resting: 900, width: 1e12, mid: at(5e12),
		amount: upTo(1e10), idStep: 7, maxFills: 1000},
	{name: "extremes of price", cancel: 40, cross: 5, resting: 300, width: math.MaxInt64 / 2,
		mid: at(math.MaxInt64 / 2), amount: upTo(math.MaxInt64 - 1), idStep: 3, maxFills: 50,
		extremes: true},
	{name: "heavy crossing", cancel: 10, cross: 45, resting: 300, width: 300, mid: at(100_000),
		amount: upTo(1000), idStep: 2, maxFills: 7},
	{name: "cancel heavy", cancel: 60, cross: 2, resting: 500, width: 2000, mid: at(1e6),
		amount: upTo(1e6), idStep: 1, maxFills: 1000, cancelOld: true},
	{name: "sparse ids", cancel: 45, cross: 5, resting: 700, width: 500, mid: at(1e6),
		amount: upTo(1e4), idStep: 1 << 48, maxFills: 1000},
	{name: "rising price", cancel: 35, cross: 5, resting: 500, width: 1000, mid: trend(1e6, 13),
		amount: upTo(100), idStep: 4, maxFills: 1000},
	{name: "falling price", cancel: 35, cross: 5, resting: 500, width: 1000, mid: trend(1e6, -45),
		amount: upTo(100), idStep: 1 << 32, maxFills: 1000},
}

// The tag prove raises these.
var (
	differentialSeeds = 24
	marketMessages    = 40_000
)

const differentialMessages = 20_000

// TestBookAgreesWithNaive plays the same messages to three books: that of the specification, the
// book, and a second book that replays: it applies the fills and rests of the first. After every
// message it compares the message's results, best prices, the top five levels of both sides, the
// counts of orders and levels, and the order concerned. After every 500th it compares all levels,
// all orders and the replaying book, and checks the books' own invariants. After every 5,000th a
// book that is restored from Orders replaces the replaying one.
//
// MATCHING_SEED=n plays seed n alone; any number is a seed.
func TestBookAgreesWithNaive(t *testing.T) {
	first, last := uint64(0), uint64(differentialSeeds)-1
	if s := os.Getenv("MATCHING_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		first, last = n, n
	}
	for seed := first; seed <= last; seed++ {
		m := &mixes[seed%uint64(len(mixes))]
		t.Run(fmt.Sprintf("seed=%d/%s", seed, m.name), func(t *testing.T) {
			t.Parallel()
			d := &differential{mix: m, rng: rand.New(rand.NewPCG(seed, 0)), fast: New(),
				replay: New()}
			for d.step = range differentialMessages {
				o := d.message()
				if err := d.play(o); err != nil {
					t.Fatalf(
						"seed %d, message %d (%+v): %v\nagain: MATCHING_SEED=%d go test -run "+
							"TestBookAgreesWithNaive ./core/matching/",
						seed, d.step, o, err, seed)
				}
			}
			if d.fills == 0 || d.cancels == 0 || d.rests == 0 {
				t.Fatalf("nothing was tested: %d fills, %d cancels, %d rests", d.fills, d.cancels,
					d.rests)
			}
		})
	}
}

// TestBookAgreesWithNaiveInMarkets does the same with the markets of the benchmark.
func TestBookAgreesWithNaiveInMarkets(t *testing.T) {
	for seed, s := range markets(marketMessages / 2) {
		s.resting = min(s.resting, 300) // the specification scans all of them
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			d := &differential{mix: &mix{maxFills: 10}, fast: New(), replay: New()}
			flow := newFlow(s, uint64(seed))
			for d.step < marketMessages {
				for _, m := range flow.next(1000) {
					o := trading.Order{ID: m.id, Account: uint32(m.id % 5), Side: m.side,
						Price:  m.limit,
						Amount: m.amount, TimeUs: int64(d.step)}
					if err := d.play(o); err != nil {
						t.Fatalf("message %d (%+v): %v", d.step, o, err)
					}
					d.step++
				}
			}
			if d.fills == 0 || d.cancels == 0 || d.rests == 0 {
				t.Fatalf("nothing was tested: %d fills, %d cancels, %d rests", d.fills, d.cancels,
					d.rests)
			}
		})
	}
}

type differential struct {
	*mix
	rng          *rand.Rand
	slow         spec.Book
	fast, replay *Book
	ids          []uint64 // that rested; some are gone
	id           uint64
	step         int

	fills, cancels, rests int
	buf                   []Fill
	levels                []trading.Level
}

// message returns a random order, or a cancel: an order that has only an id.
func (d *differential) message() trading.Order {
	kind := d.rng.IntN(100)
	if len(d.ids) > 0 && (kind < d.mix.cancel || resting(&d.slow) > d.resting) {
		return trading.Order{ID: d.anyID()}
	}
	return d.order(kind < d.mix.cancel+d.cross)
}

// play plays a message to the books and compares them.
func (d *differential) play(o trading.Order) error {
	var err error
	if o.Price == 0 {
		err = d.cancel(o.ID)
	} else {
		err = d.place(o)
	}
	if err == nil {
		err = d.compareTops()
	}
	if err == nil && d.step%500 == 499 {
		err = d.compareAll()
	}
	if err == nil && d.step%5000 == 4999 {
		d.replay = restored(d.fast)
	}
	if err == nil && d.step%5000 == 2499 {
		d.fast, d.replay = cloned(d.fast), cloned(d.replay)
	}
	return err
}

// anyID returns the id of an order to cancel.
func (d *differential) anyID() uint64 {
	i := 0
	if !d.cancelOld {
		i = d.rng.IntN(len(d.ids))
	}
	id := d.ids[i]
	if d.rng.IntN(50) == 0 {
		id++ // rarely an order
	} else if !d.cancelOld {
		d.ids[i] = d.ids[len(d.ids)-1]
		d.ids = d.ids[:len(d.ids)-1]
	} else {
		d.ids = d.ids[1:]
	}
	return id
}

func (d *differential) cancel(id uint64) error {
	want, wantOK := found(&d.slow, id)
	if o := d.slow.Find(id); o != nil {
		d.slow.Remove(o)
	}
	got, ok := d.fast.Cancel(id)
	if got != want || ok != wantOK {
		return fmt.Errorf("cancelled %+v, %v; want %+v, %v", got, ok, want, wantOK)
	}
	if ok {
		d.cancels++
	}
	if got, _ := d.replay.Cancel(id); got != want {
		return fmt.Errorf("replay cancelled %+v; want %+v", got, want)
	}
	return d.compareOrder(id)
}

func (d *differential) place(o trading.Order) error {
	most, ahead := d.maxFills, Fill{Maker: o.ID}
	if o.ID%16 == 0 {
		most = int(o.ID/16) % 3
	}
	want := d.slow.Match(spec.Taker{Side: o.Side, Limit: o.Price, Amount: o.Amount, Most: most})
	d.buf = append(d.buf[:0], ahead)
	fills, rest, cut := d.fast.Match(o.Side, o.Price, o.Amount, most, d.buf)
	d.buf, fills = fills, fills[1:]
	if d.buf[0] != ahead || !slices.Equal(fills, fillsOf(want.Trades)) || rest != want.Rest ||
		cut != (want.End == spec.MaxFills) {
		return fmt.Errorf("matched %+v, %d, %v; want %+v", fills, rest, cut, want)
	}
	for _, f := range fills {
		after, err := d.replay.Fill(f.Maker, f.Price, f.Amount)
		if err != nil || after.ID != f.Maker || after.Remaining != f.MakerRemaining {
			return fmt.Errorf("replay of %+v: %+v, %v", f, after, err)
		}
		if err := d.compareOrder(f.Maker); err != nil {
			return err
		}
	}
	d.fills += len(fills)
	if rest == 0 || cut {
		return d.compareOrder(o.ID)
	}
	o.Remaining = rest
	d.slow.Rest(&spec.Order{ID: o.ID, Account: o.Account, Side: o.Side, Price: o.Price,
		Amount: o.Amount, Remaining: rest, TimeUs: o.TimeUs})
	d.fast.Add(o)
	d.replay.Add(o)
	d.ids = append(d.ids, o.ID)
	d.rests++
	return d.compareOrder(o.ID)
}

// order returns a random order: near the mid price, mostly on its own side of it, or far through
// it.
func (d *differential) order(through bool) trading.Order {
	d.id += 1 + d.rng.Uint64N(d.idStep)
	o := trading.Order{
		ID: d.id, Account: d.rng.Uint32N(5), Side: trading.Buy + trading.Side(d.rng.IntN(2)),
		Amount: money.Amount(d.mix.amount(d.rng)), TimeUs: int64(d.step),
	}
	away := d.rng.Int64N(d.width) // towards the own side; a tenth of it, the other way, may cross
	switch {
	case through:
		away = -away
		o.Amount = min(o.Amount, money.MaxAmount/20) * money.Amount(1+d.rng.Int64N(20))
	case d.rng.IntN(10) == 0:
		away = -away / 10
	}
	if o.Side == trading.Buy {
		away = -away
	}
	if d.rng.IntN(100) == 0 {
		o.Amount = 0
	}
	o.Price = money.Price(max(1, d.mid(d.step)+away))
	if d.extremes && d.rng.IntN(4) == 0 {
		near := money.Price(1 + d.rng.Int64N(3))
		if o.Price = near; (o.Side == trading.Sell) != through {
			o.Price = money.MaxPrice - near + 1
		}
	}
	return o
}

func (d *differential) compareOrder(id uint64) error {
	got, ok := d.fast.Get(id)
	want, wantOK := found(&d.slow, id)
	if got != want || ok != wantOK {
		return fmt.Errorf("order %d is %+v, %v; want %+v, %v", id, got, ok, want, wantOK)
	}
	return nil
}

func (d *differential) compareTops() error {
	if got, want := d.fast.Len(), resting(&d.slow); got != want {
		return fmt.Errorf("%d orders, want %d", got, want)
	}
	for _, side := range []trading.Side{trading.Buy, trading.Sell} {
		want := d.slow.Levels(side, 5)
		d.levels = d.fast.AppendLevels(d.levels[:0], side, 5)
		if !slices.Equal(d.levels, want) {
			return fmt.Errorf("top of %v is %+v, want %+v", side, d.levels, want)
		}
		best, ok := d.fast.Best(side)
		if ok != (len(want) > 0) || ok && best != want[0].Price {
			return fmt.Errorf("best %v is %d, %v; want %+v", side, best, ok, want)
		}
	}
	return nil
}

func (d *differential) compareAll() error {
	return errors.Join(sameBook("the book", d.fast, &d.slow),
		sameBook("the replaying book", d.replay, &d.slow))
}

// sameBook compares a whole book with that of the specification, and checks its own invariants.
func sameBook(name string, b *Book, slow *spec.Book) error {
	for _, side := range []trading.Side{trading.Buy, trading.Sell} {
		levels := slow.Levels(side, -1)
		if got := b.AppendLevels(nil, side, -1); !slices.Equal(got, levels) ||
			b.LevelCount(side) != len(levels) {
			return fmt.Errorf("%s has %d levels of %v: %+v\nwant %+v", name, b.LevelCount(side),
				side, got, levels)
		}
		for _, l := range levels {
			if got, ok := b.At(side, l.Price); !ok || got != l {
				return fmt.Errorf("%s has at %d: %+v, %v; want %+v", name, l.Price, got, ok, l)
			}
			if got, ok := b.At(side.Opposite(), l.Price); ok {
				return fmt.Errorf("%s has at %d on the other side: %+v", name, l.Price, got)
			}
		}
		if got, ok := b.At(side, 0); ok {
			return fmt.Errorf("%s has at no price: %+v", name, got)
		}
		var displayed, all, got []trading.Order
		orders := slow.Orders(side)
		for _, o := range orders {
			whole, shown := orderOf(o), orderOf(o)
			shown.Remaining = o.Shown
			displayed, all = append(displayed, shown), append(all, whole)
		}
		if got := b.AppendOrders(nil, side, -1); !slices.Equal(got, displayed) ||
			!slices.Equal(slices.Collect(b.Orders(side)), displayed) {
			return fmt.Errorf("%s displays of %v: %+v\nwant %+v", name, side, got, displayed)
		}
		for o := range b.Open(nil) {
			if o.Side != side {
				continue
			}
			if n := len(got); n < len(orders) && (o.Iceberg != icebergOf(orders[n]) ||
				b.Iceberg(o.ID) != o.Iceberg) {
				return fmt.Errorf("%s hides %+v of order %d, want %+v", name, o.Iceberg, o.ID,
					orders[n])
			}
			got = append(got, o.Order)
		}
		if !slices.Equal(got, all) {
			return fmt.Errorf("%s has of %v: %+v\nwant %+v", name, side, got, all)
		}
	}
	return checkInvariants(b)
}

// cloned returns a book's clone. Nothing stays in the book itself, so the clone must have its own
// memory.
func cloned(b *Book) *Book {
	c := b.Clone()
	for _, side := range []trading.Side{trading.Buy, trading.Sell} {
		for o, any := b.Next(side); any; o, any = b.Next(side) {
			b.Cancel(o.ID)
		}
	}
	b.Add(trading.Order{ID: 1, Side: trading.Buy, Price: 1, Amount: 1, Remaining: 1})
	return c
}

// restored returns a new book with the orders of another.
func restored(b *Book) *Book {
	r := New()
	for o := range b.Open(nil) {
		r.AddIceberg(o.Order, o.Iceberg)
	}
	return r
}

// orderOf returns an order of the specification.
func orderOf(o *spec.Order) trading.Order {
	return trading.Order{ID: o.ID, Account: o.Account, Side: o.Side, Price: o.Price,
		Amount: o.Amount, Remaining: o.Remaining, TimeUs: o.TimeUs}
}

func icebergOf(o *spec.Order) (i Iceberg) {
	if i.Hidden = o.Remaining - o.Shown; i.Hidden > 0 {
		i.Display = o.Says.Display
	}
	return i
}

func found(b *spec.Book, id uint64) (trading.Order, bool) {
	if o := b.Find(id); o != nil {
		return orderOf(o), true
	}
	return trading.Order{}, false
}

func resting(b *spec.Book) int { return len(b.Orders(trading.Buy)) + len(b.Orders(trading.Sell)) }

func fillsOf(trades []event.Trade) (fills []Fill) {
	for _, t := range trades {
		fills = append(fills, Fill{Maker: t.Maker, MakerAccount: t.MakerAccount, Price: t.Price,
			Amount: t.Amount, MakerRemaining: t.MakerRemaining})
	}
	return fills
}
