package matching

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"exchange/core/money"
	"exchange/core/trading"
	"exchange/prove/spec"
)

// A request is a session client's request: an order with any instructions that concern a book, or a
// change of one.
type request struct {
	spec.Order
	cancel, amend bool // of the order with this id
}

// sessionRules are the pair's.
var sessionRules = spec.Rules{Tick: 2, Step: 3, StopCollar: money.MaxRate}

const sessionFills = 12

// waits reports whether the order must wait for its trigger outside the book.
func (w *request) waits() bool { return w.Trigger != (trading.Trigger{}) && !w.Triggered }

func (w *request) stop() Stop {
	o := orderOf(&w.Order)
	o.Remaining = o.Amount
	return Stop{Order: o, Trigger: w.Trigger}
}

// An outcome is the effect of a request: the record of a session.
type outcome struct {
	Result
	refused string      // reason; the rest is empty then
	price   money.Price // effective
	killed  bool        // all-or-nothing, and not filled
	rests   bool
	inPlace bool
	gone    bool // cancelled, alone or by an amend
}

func (o *outcome) same(p *outcome) bool {
	return slices.Equal(o.Fills, p.Fills) && slices.Equal(o.Prevented, p.Prevented) &&
		o.Rest == p.Rest && o.Money == p.Money && o.End == p.End && o.refused == p.refused &&
		o.price == p.price && o.killed == p.killed && o.rests == p.rests &&
		o.inPlace == p.inPlace && o.gone == p.gone
}

// span returns the lowest and the highest price of the fills.
func (o *outcome) span() (low, high money.Price) {
	low = money.MaxPrice
	for _, f := range o.Fills {
		low, high = min(low, f.Price), max(high, f.Price)
	}
	return low, high
}

// A decider plays requests with the package, like the owner of a book.
type decider struct {
	book  *Book
	stops *Stops
	buf   Result
}

// enter matches an order that is not in the book; open is its open amount.
func (d *decider) enter(w *request, open money.Amount) (out outcome) {
	i := &w.Says
	if out.price = w.Price; i.PostOnly && d.book.Crosses(w.Side, w.Price) {
		slid, ok := d.book.Slide(w.Side, w.Price, sessionRules.Tick)
		if i.Asked == 0 || !ok {
			return outcome{refused: "would trade"}
		}
		out.price = slid
	}
	t := Taker{Side: w.Side, Limit: out.price, Amount: open, Account: w.Account,
		SelfTrade: i.SelfTrade, Money: i.Quote.Balance(), Step: sessionRules.Step,
		MaxFills: sessionFills}
	if i.FOK {
		if end := d.book.Fillable(&t); end != EndDone {
			out.Result, out.killed = Result{Rest: open, Money: t.Money, End: end}, true
			return out
		}
	}
	if t.SelfTrade == trading.SelfTradeNone && t.Money.IsZero() {
		var cut bool
		d.buf.Fills, out.Rest, cut = d.book.Match(t.Side, t.Limit, open, t.MaxFills,
			d.buf.Fills[:0])
		switch out.Fills = d.buf.Fills; {
		case cut:
			out.End = EndMaxFills
		case out.Rest == 0:
			out.End = EndDone
		default:
			out.End = EndNoMaker
		}
	} else {
		d.book.MatchWith(&t, &d.buf)
		out.Result = d.buf
	}
	for _, f := range out.Fills {
		if f.MakerRemaining == 0 {
			d.stops.Remove(f.Maker)
		}
	}
	for _, p := range out.Prevented {
		d.stops.Remove(p.Order.ID)
	}
	if low, high := out.span(); high > 0 {
		d.stops.Trade(low, high, w.Side)
	}
	if out.rests = out.End == EndNoMaker && !i.IOC && !i.FOK; out.rests {
		o, ice := orderOf(&w.Order), Iceberg{Display: i.Display}
		o.Price, o.Remaining = out.price, out.Rest
		if ice.Display > 0 {
			ice.Hidden = max(0, o.Remaining-ice.Display)
		}
		d.book.AddIceberg(o, ice)
		if i.OCO != (trading.OCO{}) && !w.Triggered {
			d.stops.Add(stopOf(&w.Order)) // its other half
		}
	}
	return out
}

func (d *decider) play(w *request) outcome {
	switch {
	case w.cancel:
		_, waited := d.stops.Remove(w.ID)
		_, rested := d.book.Cancel(w.ID)
		return outcome{gone: waited || rested}
	case w.amend:
		return d.amend(w)
	case w.waits():
		d.stops.Add(w.stop())
		return outcome{}
	}
	return d.enter(w, w.Amount)
}

func (d *decider) amend(w *request) outcome {
	if s, waits := d.stops.Get(w.ID); waits && !s.InBook {
		if s.Queued {
			return outcome{refused: "queued"}
		}
		d.stops.Remove(w.ID)
		d.stops.Add(w.stop())
		return outcome{}
	}
	o, ok := d.book.Get(w.ID)
	filled := o.Amount - o.Remaining
	switch {
	case !ok:
		return outcome{refused: "not open"}
	case w.Amount <= filled:
		d.stops.Remove(w.ID)
		d.book.Cancel(w.ID)
		return outcome{gone: true}
	case w.Price == o.Price && w.Amount <= o.Amount:
		d.book.Amend(w.ID, w.Amount, w.Says.Display)
		return outcome{inPlace: true}
	case w.Says.PostOnly && w.Says.Asked == 0 && d.book.Crosses(w.Side, w.Price):
		return outcome{refused: "would trade"}
	}
	d.stops.Remove(w.ID)
	d.book.Cancel(w.ID)
	return d.enter(w, w.Amount-filled)
}

// run executes the head of the queue, which w describes.
func (d *decider) run(head Stop, w *request) outcome {
	open := w.Amount
	if d.stops.Remove(head.Order.ID); head.InBook {
		o, _ := d.book.Cancel(w.ID)
		open = o.Remaining
	}
	return d.enter(w, open)
}

// A specified decider plays requests with the specification.
type specified struct{ spec.Market }

func (d *specified) enter(x *spec.Order) (out outcome) {
	took, reason := d.Enter(x, 0)
	if reason == trading.CancelledPostOnly {
		return outcome{refused: "would trade"}
	}
	out.price, out.killed = x.Price, x.Says.FOK && reason != 0
	out.rests = x.Remaining > 0 && reason == 0
	out.Fills, out.Rest, out.End = fillsOf(took.Trades), took.Rest, ends[took.End]
	if took.Money != nil {
		low := new(big.Int).And(took.Money, new(big.Int).SetUint64(math.MaxUint64))
		out.Money = money.BalanceFromBits(new(big.Int).Rsh(took.Money, 64).Uint64(), low.Uint64())
	}
	for _, own := range took.Gone {
		if own.Remaining > 0 {
			before := int(took.Prevented[len(out.Prevented)].Before)
			out.Prevented = append(out.Prevented, Prevented{before, orderOf(own)})
		}
	}
	return out
}

var ends = map[spec.End]End{spec.Filled: EndDone, spec.NoMaker: EndNoMaker,
	spec.MaxFills: EndMaxFills, spec.SelfTrade: EndSelfTrade}

func (d *specified) play(w *request) outcome {
	x, o := w.Order, d.Find(w.ID)
	switch {
	case w.cancel:
		if o != nil {
			d.Cancel(o)
		}
		return outcome{gone: o != nil}
	case w.amend && o == nil:
		return outcome{refused: "not open"}
	case w.amend && o.Waits && o.Queued:
		return outcome{refused: "queued"}
	case w.amend && o.Waits:
		o.Price, o.Amount, o.Remaining, o.Says, o.Trigger = x.Price, x.Amount, x.Amount, x.Says,
			x.Trigger
		return outcome{}
	case w.amend:
		return d.amend(o, &x)
	case w.waits():
		x.Remaining = x.Amount
		d.Wait(&x)
		return outcome{}
	}
	x.Remaining = x.Amount
	return d.enter(&x)
}

// amend changes a resting order.
func (d *specified) amend(o, x *spec.Order) outcome {
	filled := o.Amount - o.Remaining
	switch {
	case x.Amount <= filled:
		d.Cancel(o)
		return outcome{gone: true}
	case x.Price == o.Price && x.Amount <= o.Amount:
		d.Lower(o, x.Amount, &x.Says)
		return outcome{inPlace: true}
	case x.Says.PostOnly && x.Says.Asked == 0 && d.Meets(x.Side, x.Price):
		return outcome{refused: "would trade"}
	}
	d.Cancel(o)
	x.Remaining = x.Amount - filled
	return d.enter(x)
}

// A session plays requests to both deciders. The fold of core/state replays their outcomes.
type session struct {
	draw  func(n int) int // 0 to n-1
	fast  decider
	slow  specified
	asked map[uint64]*request
	scale money.Amount // of amounts
	ids   []uint64
	step  int
	seen  map[string]int
}

func newSession(draw func(n int) int) *session {
	s := &session{draw: draw, asked: map[uint64]*request{}, scale: 1, seen: map[string]int{},
		fast: decider{book: New(), stops: NewStops()}}
	s.slow.Rules, s.slow.MaxFills = sessionRules, sessionFills
	if s.one(50) { // so that budgets buy a part of the book
		s.scale = 1e6
	}
	return s
}

func (s *session) one(percent int) bool { return s.draw(100) < percent }

func (s *session) price() money.Price {
	if s.one(4) {
		return money.Price(1 + s.draw(3))
	}
	if s.one(4) {
		return money.MaxPrice - money.Price(s.draw(3))
	}
	return money.Price(100 + s.draw(20))
}

func (s *session) amount() money.Amount {
	if s.one(3) {
		return money.MaxAmount - money.Amount(s.draw(3))
	}
	return money.Amount(1+s.draw(60))*s.scale + money.Amount(s.draw(3))*(s.scale/1e6)
}

// next returns a random request.
func (s *session) next() *request {
	if len(s.ids) > 0 && s.one(30) {
		id := s.ids[s.draw(len(s.ids))]
		w := *s.asked[id]
		if w.cancel = s.one(40); !w.cancel {
			s.change(&w)
		}
		return &w
	}
	w := &request{Order: spec.Order{ID: uint64(s.step + 1), Account: uint32(1 + s.draw(3)),
		Side: trading.Buy + trading.Side(s.draw(2)), Price: s.price(), Amount: s.amount(),
		TimeUs: int64(s.step)}}
	i := &w.Says
	i.SelfTrade = trading.SelfTrade(s.draw(4)) * trading.SelfTrade(s.draw(2))
	switch s.draw(9) {
	case 0:
		i.IOC = true
	case 1:
		i.FOK = true
	case 2:
		if i.PostOnly = true; s.one(50) {
			i.Asked = w.Price
		}
	case 3, 4:
		if i.Display = (w.Amount-1)/money.Amount(2+s.draw(19)) + 1; i.Display == w.Amount {
			i.Display = 0
		}
	case 5:
		if w.Side == trading.Sell && w.Price > 1 {
			i.OCO.Trigger = 1 + money.Price(s.draw(int(min(w.Price, 1000))-1))
			i.OCO.Price = i.OCO.Trigger * money.Price(s.draw(2))
		}
	case 6:
		if w.Side == trading.Buy {
			i.IOC, w.Amount, i.Quote = true, money.MaxAmount, money.Amount(1+s.draw(200))
			if s.one(30) {
				i.IOC, i.FOK = false, true
			}
			if s.one(5) {
				i.Quote = money.MaxAmount
			}
		}
	}
	if i.OCO == (trading.OCO{}) && i.Quote == 0 && s.one(15) {
		w.Trigger = trading.Trigger{Price: s.price(),
			When: trading.Rise + trading.Direction(s.draw(2))}
	}
	return w
}

// change makes an amend of an earlier order.
func (s *session) change(w *request) {
	w.amend = true
	if s.one(50) {
		w.Amount = s.amount()
	}
	if s.one(30) && w.Says.OCO == (trading.OCO{}) {
		if w.Price = s.price(); w.Says.Asked != 0 {
			w.Says.Asked = w.Price
		}
	}
	if w.Says.Display > 0 {
		w.Says.Display = (w.Amount-1)/money.Amount(1+s.draw(20)) + 1
	}
	if w.Trigger.When != 0 && s.one(50) {
		w.Trigger.Price = s.price()
	}
}

// play plays one request, then some of the queue.
func (s *session) play() error {
	w := s.next()
	want, got := s.slow.play(w), s.fast.play(w)
	if err := s.check(w, w.Amount, &got, &want); err != nil {
		return fmt.Errorf("%+v: %w", *w, err)
	}
	if !w.cancel && got.refused == "" && !got.gone {
		asked := *w
		if asked.amend = false; got.price > 0 {
			asked.Price = got.price
		}
		s.asked[w.ID] = &asked
		if !w.amend {
			s.ids = append(s.ids, w.ID)
		}
	}
	for range s.draw(3) {
		if err := s.runOne(); err != nil {
			return err
		}
	}
	s.step++
	if s.step%50 == 25 {
		s.fast.book = cloned(s.fast.book)
	}
	if s.step%50 == 0 {
		s.fast.book, s.fast.stops = restored(s.fast.book), restoredStops(s.fast.stops)
	}
	if s.step%5 != 0 && s.step > 20 {
		return nil
	}
	return errors.Join(sameStops(s.fast.stops, &s.slow.Market),
		sameBook("the book", s.fast.book, &s.slow.Book))
}

// runOne executes the head of the queue.
func (s *session) runOne() error {
	head, ok := s.fast.stops.Head()
	if next := s.slow.Next(); ok != (next != 0) || ok && head != stopOf(s.slow.Find(next)) {
		return fmt.Errorf("the head is %+v, %v; want order %d of %v", head, ok, next,
			s.slow.Queue())
	}
	if !ok {
		return nil
	}
	s.seen["triggered"]++
	x := s.slow.Release()
	w, open := request{Order: *x}, x.Remaining
	want, got := s.slow.enter(x), s.fast.run(head, &w)
	if err := s.check(&w, open, &got, &want); err != nil {
		return fmt.Errorf("triggered %+v: %w", w, err)
	}
	if got.price > 0 {
		w.Price = got.price
	}
	s.asked[w.ID] = &w
	return nil
}

// check compares outcomes, and checks their invariants.
func (s *session) check(w *request, open money.Amount, got, want *outcome) error {
	if !got.same(want) {
		return fmt.Errorf("outcome %+v\nwant %+v", *got, *want)
	}
	var filled money.Amount
	for _, f := range got.Fills {
		filled += f.Amount
		if f.MakerAccount == w.Account && w.Says.SelfTrade != trading.SelfTradeNone {
			return fmt.Errorf("the account trades with itself: %+v", f)
		}
	}
	if w.Says.FOK && w.Says.Quote == 0 && len(got.Fills) > 0 && filled != open {
		return fmt.Errorf("%d of %d of an all-or-nothing order are filled", filled, open)
	}
	if w.Says.PostOnly && len(got.Fills) > 0 {
		return errors.New("a post-only order takes")
	}
	s.count(w, got)
	return nil
}

// count notes the events.
func (s *session) count(w *request, got *outcome) {
	note := func(name string, happened bool) {
		if happened {
			s.seen[name]++
		}
	}
	note("prevented", len(got.Prevented) > 0)
	note("ended by a self-trade", got.End == EndSelfTrade)
	note("ended by max_fills", got.End == EndMaxFills)
	note("slid", got.price != 0 && got.price != w.Price)
	note("refused as post-only", got.refused == "would trade")
	note("killed", got.killed)
	note("filled or killed", w.Says.FOK && got.End == EndDone)
	note("money spent", w.Says.Quote != 0 && got.End == EndDone)
	note("money left", w.Says.Quote != 0 && got.End != EndDone && len(got.Fills) > 0)
	note("amended in place", got.inPlace)
	note("amended and matched", w.amend && len(got.Fills) > 0)
	note("amended to its end", w.amend && got.gone)
	for i, f := range got.Fills {
		note("an iceberg met twice", slices.ContainsFunc(got.Fills[:i], func(g Fill) bool {
			return g.Maker == f.Maker
		}))
	}
}

// sessionMust lists the events that all sessions together must have.
var sessionMust = []string{"triggered", "prevented", "ended by a self-trade",
	"ended by max_fills", "slid", "refused as post-only", "killed", "filled or killed",
	"money spent", "money left", "amended in place", "amended and matched", "amended to its end",
	"an iceberg met twice"}

// TestSessionsAgreeWithTheNaiveBook plays random orders of all types. MATCHING_SEED=n plays seed n
// alone.
func TestSessionsAgreeWithTheNaiveBook(t *testing.T) {
	first, last := uint64(0), uint64(150)
	if text := os.Getenv("MATCHING_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		first, last = n, n
	}
	seen := map[string]int{}
	for seed := first; seed <= last; seed++ {
		s := newSession(rand.New(rand.NewPCG(seed, 4)).IntN)
		for range 300 {
			if err := s.play(); err != nil {
				t.Fatalf("seed %d, step %d: %v\nagain: MATCHING_SEED=%d go test -run "+
					"TestSessionsAgreeWithTheNaiveBook ./core/matching/", seed, s.step, err, seed)
			}
		}
		for name, n := range s.seen {
			seen[name] += n
		}
	}
	for _, name := range sessionMust {
		if seen[name] < 20 && first != last {
			t.Errorf("%s: %d times", name, seen[name])
		}
	}
}

// FuzzSession plays sessions chosen by the input.
func FuzzSession(f *testing.F) {
	rng := rand.New(rand.NewPCG(1, 5))
	for range 5 {
		seed := make([]byte, 600)
		for i := range seed {
			seed[i] = byte(rng.IntN(math.MaxUint8 + 1))
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		s := newSession(func(n int) int {
			if len(input) == 0 {
				return 0
			}
			drawn := int(input[0]) % n
			input = input[1:]
			return drawn
		})
		for len(input) > 0 && s.step < 80 {
			if err := s.play(); err != nil {
				t.Fatalf("step %d: %v", s.step, err)
			}
		}
	})
}
