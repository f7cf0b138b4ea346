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
)

// A wish is what a client of a session asks for: an order with all instructions that concern a
// book, or a change of one.
type wish struct {
	trading.Order // amount, not remaining
	ioc, fok      bool
	postOnly      bool
	slide         bool
	display       money.Amount
	selfTrade     trading.SelfTrade
	money         money.Balance
	trigger       trading.Trigger // it waits
	oco           trading.OCO

	cancel, amend bool // of the order with this id
}

// The pair's rules of a session.
const (
	sessionTick  = 2
	sessionStep  = 3
	sessionFills = 12
)

func (w *wish) taker(open money.Amount) Taker {
	return Taker{Side: w.Side, Limit: w.Price, Amount: open, Account: w.Account,
		SelfTrade: w.selfTrade, Money: w.money, Step: sessionStep, MaxFills: sessionFills}
}

// An outcome is what a wish did: the record of a session.
type outcome struct {
	Result
	refused string      // why it was; the rest is empty then
	price   money.Price // effective
	killed  bool        // all-or-nothing, and did not get all
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

// A decider plays wishes with the package, as the owner of a book does.
type decider struct {
	book  *Book
	stops *Stops
	asked map[uint64]*wish // of open orders
	buf   Result
}

// enter matches an order that is not in the book, with what is open of it.
func (d *decider) enter(w *wish, open money.Amount) (out outcome) {
	o := *w
	if out.price = w.Price; w.postOnly && d.book.Crosses(w.Side, w.Price) {
		slid, ok := d.book.Slide(w.Side, w.Price, sessionTick)
		if !w.slide || !ok {
			return outcome{refused: "would trade"}
		}
		out.price, o.Price = slid, slid
	}
	t := o.taker(open)
	if w.fok {
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
	if out.rests = out.End == EndNoMaker && !w.ioc && !w.fok && w.money.IsZero(); out.rests {
		o.Remaining = out.Rest
		d.book.AddIceberg(o.Order, Iceberg{w.display, o.hidden()})
		if w.oco != (trading.OCO{}) {
			d.stops.Add(o.second())
		}
	}
	return out
}

// hidden returns how much of the rest is hidden when it begins to rest.
func (w *wish) hidden() money.Amount {
	if w.display == 0 {
		return 0
	}
	return max(0, w.Remaining-w.display)
}

// second returns the stop of a one-cancels-other order.
func (w *wish) second() Stop {
	return Stop{Order: trading.Order{ID: w.ID, Account: w.Account, Side: w.Side},
		Trigger: trading.Trigger{Price: w.oco.Trigger, When: trading.Fall}, Rests: true}
}

func (w *wish) stop() Stop {
	o := w.Order
	o.Remaining = o.Amount
	return Stop{Order: o, Trigger: w.trigger}
}

func (d *decider) play(w *wish) outcome {
	switch {
	case w.cancel:
		_, waited := d.stops.Remove(w.ID)
		_, rested := d.book.Cancel(w.ID)
		return outcome{gone: waited || rested}
	case w.amend:
		return d.amend(w)
	case w.trigger != (trading.Trigger{}):
		d.stops.Add(w.stop())
		return outcome{}
	}
	return d.enter(w, w.Amount)
}

func (d *decider) amend(w *wish) outcome {
	if s, waits := d.stops.Get(w.ID); waits && !s.Rests {
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
		d.book.Amend(w.ID, w.Amount, w.display)
		return outcome{inPlace: true}
	case w.postOnly && !w.slide && d.book.Crosses(w.Side, w.Price):
		return outcome{refused: "would trade"}
	}
	d.stops.Remove(w.ID)
	d.book.Cancel(w.ID)
	return d.enter(w, w.Amount-filled)
}

// run executes the head of the queue; false when there is none.
func (d *decider) run() (head Stop, out outcome, ok bool) {
	if head, ok = d.stops.Head(); !ok {
		return head, out, false
	}
	d.stops.Remove(head.Order.ID)
	w := *d.asked[head.Order.ID]
	open := w.Amount
	if head.Rests {
		o, _ := d.book.Cancel(w.ID)
		w, open = *w.after(o), o.Remaining
	}
	return head, d.enter(&w, open), true
}

// after returns the order that enters when the second half of a one-cancels-other was triggered.
func (w *wish) after(o trading.Order) *wish {
	second := wish{Order: o, selfTrade: w.selfTrade, ioc: w.oco.Price == 0}
	if second.Price = w.oco.Price; second.ioc {
		second.Price = 1
	}
	return &second
}

// A naiveDecider does the same with plain loops.
type naiveDecider struct {
	book  naive
	stops naiveStops
	asked map[uint64]*wish
}

// matchWith takes what a taker takes.
func (b *naive) matchWith(t *Taker) (r Result) {
	other := t.Side.Opposite()
	hi, lo := t.Money.Bits()
	left := new(big.Int).Or(new(big.Int).Lsh(new(big.Int).SetUint64(hi), 64),
		new(big.Int).SetUint64(lo))
	wanted := func(p money.Price) money.Amount {
		if t.Money.IsZero() {
			return r.Rest
		}
		n := new(big.Int).Div(left, big.NewInt(int64(p)))
		n.Sub(n, new(big.Int).Mod(n, big.NewInt(int64(t.Step))))
		if n.Cmp(big.NewInt(int64(r.Rest))) >= 0 {
			return r.Rest
		}
		return money.Amount(n.Int64())
	}
	r.Rest, r.Money, r.End = t.Amount, t.Money, EndNoMaker
	var last money.Price
	for len(*b.side(other)) > 0 && !better(other, t.Limit, (*b.side(other))[0].Price) {
		maker := (*b.side(other))[0]
		last = maker.Price
		if wanted(last) == 0 {
			break
		}
		if len(r.Fills)+len(r.Prevented) == t.MaxFills {
			r.End = EndMaxFills
			return r
		}
		if t.SelfTrade != trading.SelfTradeNone && maker.Account == t.Account {
			if t.SelfTrade != trading.SelfTradeCancelNewest {
				b.cancel(maker.ID)
				r.Prevented = append(r.Prevented, Prevented{len(r.Fills), maker.whole()})
			}
			if t.SelfTrade != trading.SelfTradeCancelOldest {
				r.End = EndSelfTrade
				return r
			}
			continue
		}
		taken := min(wanted(last), maker.Remaining)
		r.Fills = append(r.Fills, b.trade(other, taken))
		r.Rest -= taken
		if !t.Money.IsZero() {
			left.Sub(left, new(big.Int).Mul(big.NewInt(int64(last)), big.NewInt(int64(taken))))
			r.Money = r.Money.Sub(last.Times(taken).Balance())
		}
	}
	if len(r.Fills) > 0 && wanted(last) == 0 && (t.Money.IsZero() || r.Rest > 0) {
		r.End = EndDone
	}
	return r
}

func (d *naiveDecider) enter(w *wish, open money.Amount) (out outcome) {
	o := *w
	opposite := *d.book.side(w.Side.Opposite())
	crosses := len(opposite) > 0 && !better(w.Side.Opposite(), w.Price, opposite[0].Price)
	if out.price = w.Price; crosses && w.postOnly {
		if !w.slide {
			return outcome{refused: "would trade"}
		}
		best := opposite[0].Price
		step := money.Price(-1)
		if w.Side == trading.Sell {
			step = 1
		}
		p := best + step
		for p > 0 && p%sessionTick != 0 {
			p += step
		}
		if p <= 0 { // beyond the last price, too
			return outcome{refused: "would trade"}
		}
		out.price, o.Price = p, p
	}
	t := o.taker(open)
	if w.fok {
		trial := naive{slices.Clone(d.book.buys), slices.Clone(d.book.sells)}
		if r := trial.matchWith(&t); r.End != EndDone {
			out.Result, out.killed = Result{Rest: open, Money: t.Money, End: r.End}, true
			return out
		}
	}
	out.Result = d.book.matchWith(&t)
	for _, f := range out.Fills {
		if d.book.find(f.Maker) == nil {
			d.stops.remove(f.Maker)
		}
	}
	for _, p := range out.Prevented {
		d.stops.remove(p.Order.ID)
	}
	if low, high := out.span(); high > 0 {
		d.stops.trade(low, high, w.Side)
	}
	if w.ioc || w.fok || !w.money.IsZero() || out.End != EndNoMaker {
		return out
	}
	out.rests = true
	k := kept{Order: o.Order, display: w.display}
	if k.Remaining = out.Rest; w.display > 0 && out.Rest > w.display {
		k.Remaining, k.hidden = w.display, out.Rest-w.display
	}
	d.book.insert(k)
	if w.oco != (trading.OCO{}) {
		d.stops.add(o.second())
	}
	return out
}

func (d *naiveDecider) play(w *wish) outcome {
	switch {
	case w.cancel:
		_, waited := d.stops.remove(w.ID)
		_, rested := d.book.cancel(w.ID)
		return outcome{gone: waited || rested}
	case w.amend:
		return d.amend(w)
	case w.trigger != (trading.Trigger{}):
		d.stops.add(w.stop())
		return outcome{}
	}
	return d.enter(w, w.Amount)
}

func (d *naiveDecider) amend(w *wish) outcome {
	for i, s := range d.stops.waiting {
		if s.Order.ID == w.ID && !s.Rests {
			d.stops.waiting[i] = w.stop()
			return outcome{}
		}
	}
	for _, s := range d.stops.queue {
		if s.Order.ID == w.ID && !s.Rests {
			return outcome{refused: "queued"}
		}
	}
	k := d.book.find(w.ID)
	if k == nil {
		return outcome{refused: "not open"}
	}
	filled := k.Amount - k.Remaining - k.hidden
	if w.Amount <= filled {
		d.stops.remove(w.ID)
		d.book.cancel(w.ID)
		return outcome{gone: true}
	}
	if w.Price == k.Price && w.Amount <= k.Amount {
		k.hidden -= k.Amount - w.Amount
		if k.hidden < 0 {
			k.Remaining, k.hidden = k.Remaining+k.hidden, 0
		}
		if k.Amount = w.Amount; w.display > 0 {
			k.display = w.display
		}
		return outcome{inPlace: true}
	}
	opposite := *d.book.side(w.Side.Opposite())
	if w.postOnly && !w.slide && len(opposite) > 0 &&
		!better(w.Side.Opposite(), w.Price, opposite[0].Price) {
		return outcome{refused: "would trade"}
	}
	d.stops.remove(w.ID)
	d.book.cancel(w.ID)
	return d.enter(w, w.Amount-filled)
}

func (d *naiveDecider) run() (head Stop, out outcome, ok bool) {
	if len(d.stops.queue) == 0 {
		return head, out, false
	}
	head = d.stops.queue[0]
	d.stops.queue = d.stops.queue[1:]
	w := *d.asked[head.Order.ID]
	open := w.Amount
	if head.Rests {
		o, _ := d.book.cancel(w.ID)
		w, open = *w.after(o), o.Remaining
	}
	return head, d.enter(&w, open), true
}

// A session plays wishes to both deciders, and their outcomes to a book that replays them.
type session struct {
	draw    func(n int) int // 0 to n-1
	fast    decider
	slow    naiveDecider
	replay  *Book
	replays *Stops
	asked   map[uint64]*wish
	ids     []uint64
	step    int
	seen    map[string]int
}

func newSession(draw func(n int) int) *session {
	asked := map[uint64]*wish{}
	return &session{draw: draw, asked: asked, replay: New(), replays: NewStops(),
		fast: decider{book: New(), stops: NewStops(), asked: asked},
		slow: naiveDecider{asked: asked}, seen: map[string]int{}}
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
	return money.Amount(1 + s.draw(60))
}

// next returns a random wish.
func (s *session) next() *wish {
	if len(s.ids) > 0 && s.one(30) {
		id := s.ids[s.draw(len(s.ids))]
		w := *s.asked[id]
		if w.cancel = s.one(40); !w.cancel {
			s.change(&w)
		}
		return &w
	}
	w := &wish{Order: trading.Order{ID: uint64(s.step + 1), Account: uint32(1 + s.draw(3)),
		Side: trading.Buy + trading.Side(s.draw(2)), Price: s.price(), Amount: s.amount(),
		TimeUs: int64(s.step)}}
	w.selfTrade = trading.SelfTrade(s.draw(4)) * trading.SelfTrade(s.draw(2))
	switch s.draw(9) {
	case 0:
		w.ioc = true
	case 1:
		w.fok = true
	case 2:
		w.postOnly, w.slide = true, s.one(50)
	case 3, 4:
		if w.display = (w.Amount-1)/money.Amount(2+s.draw(19)) + 1; w.display == w.Amount {
			w.display = 0
		}
	case 5:
		if w.Side == trading.Sell && w.Price > 1 {
			w.oco.Trigger = 1 + money.Price(s.draw(int(min(w.Price, 1000))-1))
			w.oco.Price = w.oco.Trigger * money.Price(s.draw(2))
		}
	case 6:
		if w.Side == trading.Buy {
			w.ioc, w.fok, w.Amount = true, s.one(30), money.MaxAmount
			w.money = s.price().Times(s.amount()).Balance()
			if s.one(5) {
				w.money = money.MaxSupply.Sub(money.Amount(1).Balance())
			}
		}
	}
	if w.oco == (trading.OCO{}) && w.money.IsZero() && s.one(15) {
		w.trigger = trading.Trigger{Price: s.price(),
			When: trading.Rise + trading.Direction(s.draw(2))}
	}
	return w
}

// change makes an amend of an order that was asked for.
func (s *session) change(w *wish) {
	w.amend = true
	if s.one(50) {
		w.Amount = s.amount()
	}
	if s.one(30) && w.oco == (trading.OCO{}) {
		w.Price = s.price()
	}
	if w.display > 0 {
		w.display = (w.Amount-1)/money.Amount(1+s.draw(20)) + 1
	}
	if w.trigger.When != 0 && s.one(50) {
		w.trigger.Price = s.price()
	}
}

// play plays one wish, then some of the queue.
func (s *session) play() error {
	w := s.next()
	want, got := s.slow.play(w), s.fast.play(w)
	if err := s.check(w, w.Amount, &got, &want); err != nil {
		return fmt.Errorf("%+v: %w", *w, err)
	}
	if err := s.apply(w, &got); err != nil {
		return fmt.Errorf("%+v: replay: %w", *w, err)
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
		s.replay, s.fast.book = cloned(s.replay), cloned(s.fast.book)
	}
	if s.step%50 == 0 {
		s.replay, s.replays = restored(s.replay), restoredStops(s.replays)
		s.fast.book, s.fast.stops = restored(s.fast.book), restoredStops(s.fast.stops)
	}
	if s.step%5 != 0 && s.step > 20 {
		return nil
	}
	return errors.Join(s.slow.stops.compare(s.fast.stops), s.slow.stops.compare(s.replays),
		sameBook("the book", s.fast.book, &s.slow.book),
		sameBook("the replaying book", s.replay, &s.slow.book))
}

// runOne executes the head of the queue.
func (s *session) runOne() error {
	wantHead, want, wantOK := s.slow.run()
	head, got, ok := s.fast.run()
	if head != wantHead || ok != wantOK {
		return fmt.Errorf("the head is %+v, %v; want %+v, %v", head, ok, wantHead, wantOK)
	}
	if !ok {
		return nil
	}
	s.seen["triggered"]++
	w := *s.asked[head.Order.ID]
	w.trigger = trading.Trigger{}
	open := w.Amount
	if first, _ := s.replays.Head(); first != head {
		return fmt.Errorf("replay of stop %+v: the head is %+v", head, first)
	}
	s.replays.Remove(w.ID)
	if head.Rests {
		o, _ := s.replay.Cancel(w.ID)
		w, open = *w.after(o), o.Remaining
	}
	if err := s.check(&w, open, &got, &want); err != nil {
		return fmt.Errorf("triggered %+v: %w", w, err)
	}
	if err := s.apply(&w, &got); err != nil {
		return fmt.Errorf("triggered %+v: replay: %w", w, err)
	}
	if got.price > 0 {
		w.Price = got.price
	}
	s.asked[w.ID] = &w
	return nil
}

// check compares outcomes, and looks at what must hold of each.
func (s *session) check(w *wish, open money.Amount, got, want *outcome) error {
	if !got.same(want) {
		return fmt.Errorf("outcome %+v\nwant %+v", *got, *want)
	}
	var filled money.Amount
	for _, f := range got.Fills {
		filled += f.Amount
		if f.MakerAccount == w.Account && w.selfTrade != trading.SelfTradeNone {
			return fmt.Errorf("the account trades with itself: %+v", f)
		}
	}
	if w.fok && w.money.IsZero() && len(got.Fills) > 0 && filled != open {
		return fmt.Errorf("%d of %d of an all-or-nothing order are filled", filled, open)
	}
	if w.postOnly && len(got.Fills) > 0 {
		return errors.New("a post-only order takes")
	}
	s.count(w, got)
	return nil
}

// count notes what has happened.
func (s *session) count(w *wish, got *outcome) {
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
	note("filled or killed", w.fok && got.End == EndDone)
	note("money spent", !w.money.IsZero() && got.End == EndDone)
	note("money left", !w.money.IsZero() && got.End != EndDone && len(got.Fills) > 0)
	note("amended in place", got.inPlace)
	note("amended and matched", w.amend && len(got.Fills) > 0)
	note("amended to its end", w.amend && got.gone)
	for i, f := range got.Fills {
		note("an iceberg met twice", slices.ContainsFunc(got.Fills[:i], func(g Fill) bool {
			return g.Maker == f.Maker
		}))
	}
}

// apply replays an outcome: it decides nothing.
func (s *session) apply(w *wish, out *outcome) error {
	switch {
	case out.refused != "" || out.killed:
		return nil
	case out.gone:
		s.replays.Remove(w.ID)
		s.replay.Cancel(w.ID)
		return nil
	case out.inPlace:
		s.replay.Amend(w.ID, w.Amount, w.display)
		return nil
	case w.cancel:
		return nil
	case w.trigger != (trading.Trigger{}):
		s.replays.Remove(w.ID)
		s.replays.Add(w.stop())
		return nil
	case w.amend:
		s.replays.Remove(w.ID)
		s.replay.Cancel(w.ID)
	}
	prevented := out.Prevented
	for i := 0; ; i++ {
		for ; len(prevented) > 0 && prevented[0].Before == i; prevented = prevented[1:] {
			if next, _ := s.replay.Next(w.Side.Opposite()); next != prevented[0].Order {
				return fmt.Errorf("prevented was %+v, next is %+v", prevented[0], next)
			}
			s.replay.Cancel(prevented[0].Order.ID)
			s.replays.Remove(prevented[0].Order.ID)
		}
		if i == len(out.Fills) {
			break
		}
		f := out.Fills[i]
		after, err := s.replay.Fill(f.Maker, f.Price, f.Amount)
		if err != nil || after.Remaining != f.MakerRemaining || after.ID != f.Maker {
			return fmt.Errorf("fill %+v leaves %+v, %w", f, after, err)
		}
		if after.Remaining == 0 {
			s.replays.Remove(f.Maker)
		}
	}
	if low, high := out.span(); high > 0 {
		s.replays.Trade(low, high, w.Side)
	}
	if out.rests {
		o := *w
		o.Price, o.Remaining = out.price, out.Rest
		s.replay.AddIceberg(o.Order, Iceberg{w.display, o.hidden()})
		if w.oco != (trading.OCO{}) {
			s.replays.Add(o.second())
		}
	}
	return nil
}

// sessionMust is what all sessions together must have had.
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

// FuzzSession plays sessions that the input chooses.
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
