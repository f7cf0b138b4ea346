package demomarket

import (
	"context"
	"fmt"
	"math"
	random "math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"exchange/actors"
	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/state"
	"exchange/core/trading"
)

const (
	pastLength = 24 * time.Hour
	pastOrders = 3000    // at most
	pastPrefix = "past-" // begins the client order ids of the past; a number from 1 on follows
)

// A Clock is that of a demo's engine, which runs in the past until the past is played. The zero
// value is the right time. Any goroutine may use it.
type Clock struct{ us atomic.Int64 } // the time at which it stands, in microseconds; 0: right

// Error is for actors.Options.ClockError.
func (c *Clock) Error() time.Duration {
	if us := c.us.Load(); us != 0 {
		return time.Until(time.UnixMicro(us))
	}
	return 0
}

// SetFor sets the clock of an exchange with an unfinished past to the point where that continues,
// and the clock of any other one right. It reports which one it is. over: the past is over, or
// there is none.
func (c *Clock) SetFor(s *state.State, over bool) (due bool) {
	if over || beganLately(s) {
		c.SetRight()
		return false
	}
	// No record before the next order may be later than that.
	c.us.Store(max(time.Now().Add(-pastLength).UnixMicro(), s.TimeUs()))
	return true
}

// SetRight sets the clock right.
func (c *Clock) SetRight() { c.us.Store(0) }

func (c *Clock) stand(at time.Time) { c.us.Store(at.UnixMicro()) }

// beganLately reports whether an exchange has had no trade and no order in a book, but records
// since its past would begin: then it gets none.
func beganLately(s *state.State) bool {
	for _, p := range s.Pairs() {
		if p.Market.UpdateID > 0 {
			return false
		}
	}
	const slack = time.Hour // of an interrupted start
	return s.TimeUs() >= time.Now().Add(slack-pastLength).UnixMicro()
}

// A deal is one trade of the past: the maker offers, and the taker takes.
type deal struct {
	pair   *directory.Pair
	side   trading.Side // of the maker
	price  money.Price
	amount money.Amount
	number int // of the maker's order; that of the taker has the next one
}

// PlayPast gives an exchange whose past is due a day of trades, by ordinary orders, before the
// first visitor. It continues an interrupted one, at any node of a cluster, and does nothing when
// the market has traded since. The caller sets the clock right after it.
func PlayPast(ctx context.Context, e *actors.Engine, clock *Clock) (orders int, err error) {
	m, err := traders(e)
	if err != nil {
		return 0, err
	}
	perStep := 2 * len(m.pairs)
	if perStep == 0 {
		return 0, nil
	}
	played, err := m.played()
	if err != nil || played < 0 {
		return 0, err
	}
	steps := pastOrders / perStep
	length := pastLength / time.Duration(steps)
	begin := time.Now().Add(-pastLength)
	for i := range m.traders {
		for currency := range deposits {
			if err := m.afford(&m.traders[i], currency); err != nil {
				return 0, err
			}
		}
	}
	m.chance = random.New(random.NewPCG(2, 0)) // the same past for all
	for step := range steps {
		deals := m.deals(step, int(length/every))
		if (step+1)*perStep < played {
			continue
		}
		if err := ctx.Err(); err != nil {
			return orders, err
		}
		clock.stand(begin.Add(time.Duration(step) * length))
		if err := m.dealAll(deals); err != nil {
			return orders, err
		}
		orders += perStep
		if done := (step + 1) * perStep; done%(pastOrders/5) < perStep {
			e.Log().Info("the demo plays a day of trades first", "orders", done, "of",
				steps*perStep)
		}
	}
	return orders, nil
}

// played returns the number of the makers' newest order of the past, 0 if there is none. A negative
// number: the market has traded since.
func (m *Market) played() (number int, err error) {
	for _, k := range []kind{quote, take} { // a step begins with the makers' orders
		t := m.trader(k)
		list, err := m.engine.Orders(committed.Client{Key: t.key, Nonce: t.next()},
			committed.OrderQuery{Limit: len(m.pairs)})
		if err != nil {
			return 0, err
		}
		defer list.Free()
		for i, o := range list.Rows { // the newest is the first
			text, isPast := strings.CutPrefix(o.ClientID, pastPrefix)
			n, err := strconv.Atoi(text)
			if !isPast || err != nil {
				return -1, nil
			}
			if k == quote && i == 0 {
				number = n
			}
		}
	}
	return number, nil
}

// deals returns those of a step, one on each pair, after moves steps of the fair prices.
func (m *Market) deals(step, moves int) (list []deal) {
	for range moves {
		m.move()
	}
	for i, p := range m.pairs {
		d := deal{pair: p, side: trading.Buy, number: 2*(step*len(m.pairs)+i) + 1}
		if m.chance.IntN(2) == 0 {
			d.side = trading.Sell
		}
		v := view{fair: fairOf(m.fair, p.Base, p.Quote), tick: money.PriceUnit(p.PricePrecision),
			usual: assets[p.Base].usual}
		d.price = money.Price(math.Round(v.fair*1e8/float64(v.tick))) * v.tick
		d.amount = v.around(m.chance, 1)
		list = append(list, d)
	}
	return list
}

// dealAll makes the deals of a step: all makers' orders, and then all takers'. Orders already
// placed by an earlier run are refused for their client order ids.
func (m *Market) dealAll(list []deal) error {
	for _, k := range []kind{quote, take} {
		t := m.trader(k)
		var commands []*actors.Command
		for _, d := range list {
			w := actors.OrderRequest{Pair: d.pair, Side: d.side, Price: d.price, Amount: d.amount}
			number := d.number
			if k == take {
				number++
				w.Side = opposite(d.side)
				w.Special = &actors.SpecialRequest{Instructions: trading.Instructions{IOC: true}}
			}
			var err error
			if w.ClientID, err = event.NewClientID(fmt.Sprint(pastPrefix, number)); err != nil {
				return err
			}
			commands = append(commands, actors.NewOrder(t.key, t.next(), &w))
		}
		errs := make([]error, len(commands))
		if err := m.engine.DoAll(commands, errs); err != nil {
			return err
		}
		for i, c := range commands {
			if errs[i] != nil {
				return errs[i]
			}
			c.Free()
		}
	}
	return nil
}
