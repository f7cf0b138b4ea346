package demomarket

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	random "math/rand/v2"
	"slices"
	"time"

	"exchange/actors"
	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/ledger"
	"exchange/core/money"
	"exchange/core/trading"
)

// every is the time between two records, at least.
const every = 500 * time.Millisecond

// operator makes accounts and deposits.
const operator = "the demo"

// accounts are the market's own: the maker and the taker.
var accounts = [2]string{"market-1", "market-2"}

// deposits are made for an account when it lacks a currency.
var deposits = map[string]money.Amount{"BTC": 100e8, "ETH": 1_000e8, "USDT": 10_000_000e8}

// A Market trades. One goroutine at a time uses it.
type Market struct {
	engine  *actors.Engine
	traders [2]trader
	pairs   []*directory.Pair // those with known prices, the first ones more often
	fair    map[string]float64
	chance  *random.Rand
	turn    int
	made    map[string]int // known deposits of an account and a currency
}

// A trader is one of the accounts, with its key.
type trader struct {
	name  string
	key   *directory.Key
	nonce uint64
}

func (t *trader) next() uint64 {
	t.nonce = max(t.nonce+1, uint64(time.Now().UnixMicro()))
	return t.nonce
}

// Open makes the accounts with their keys, and fills empty books. The secrets of the keys are not
// kept. Accounts and orders of an earlier market are reused.
func Open(e *actors.Engine) (*Market, error) {
	m, err := traders(e)
	if err != nil {
		return nil, err
	}
	var at committed.Position
	if err := e.Ask(&at, nil, 0); err != nil {
		return nil, err
	}
	m.chance = random.New(random.NewPCG(1, at.Seq)) // the same for the same past
	for _, p := range m.pairs {
		if err := m.resume(p); err != nil {
			return nil, fmt.Errorf("filling the book of %s: %w", p.Name, err)
		}
	}
	return m, nil
}

// traders makes the accounts with their keys, and finds the pairs that they trade on.
func traders(e *actors.Engine) (*Market, error) {
	m := &Market{engine: e, fair: map[string]float64{}, made: map[string]int{}}
	for i, name := range accounts {
		key, err := keyOf(e, name)
		if err != nil {
			return nil, fmt.Errorf("the demo's market needs its account %s: %w", name, err)
		}
		m.traders[i] = trader{name: name, key: key}
		if err := m.catchUp(&m.traders[i]); err != nil {
			return nil, err
		}
	}
	for _, p := range e.Pairs() {
		_, hasBase := assets[p.Base]
		if _, hasQuote := assets[p.Quote]; hasBase && (hasQuote || p.Quote == "USDT") {
			m.pairs = append(m.pairs, p)
		}
	}
	for name, a := range assets {
		m.fair[name] = a.mean()
	}
	return m, nil
}

// catchUp moves a trader's nonces past the earlier ones, which a clock that was ahead may have
// given.
func (m *Market) catchUp(t *trader) error {
	_, err := m.available(t)
	if late, ok := errors.AsType[*committed.NonceError](err); ok {
		t.nonce = late.Last
		_, err = m.available(t)
	}
	return err
}

// keyOf returns the key of an account. It makes missing ones.
func keyOf(e *actors.Engine, account string) (*directory.Key, error) {
	public := "demo-" + account
	if key := e.Key([]byte(public)); key != nil {
		return key, nil
	}
	var exists *actors.RequestError
	_, err := e.CreateAccount(operator, account, account+"@demo.example")
	if err == nil || errors.As(err, &exists) {
		var secret [32]byte
		rand.Read(secret[:]) //nolint:errcheck // it never fails
		_, err = e.CreateKey(operator, account, public, hex.EncodeToString(secret[:]),
			event.PermissionRead|event.PermissionTrade, nil)
	}
	if err != nil {
		return nil, err
	}
	if key := e.Key([]byte(public)); key != nil {
		return key, nil
	}
	return nil, fmt.Errorf("the key %s was revoked", public)
}

// resume continues from the quotes of a pair, or makes the first ones.
func (m *Market) resume(p *directory.Pair) error {
	v, err := m.view(p)
	if err != nil {
		return err
	}
	if best, ask := v.best(trading.Buy), v.best(trading.Sell); best != nil && ask != nil {
		if p.Quote == "USDT" {
			m.fair[p.Base] = float64(best.Price+ask.Price) / 2e8
		}
		return nil
	}
	if err := m.follow(p); err != nil {
		return err
	}
	v.fair = fairOf(m.fair, p.Base, p.Quote)
	for i := range m.traders {
		for _, currency := range []string{p.Base, p.Quote} {
			if err := m.afford(&m.traders[i], currency); err != nil {
				return err
			}
		}
	}
	lacking, _ := v.slots(m.chance)
	for _, at := range lacking {
		if err := m.do(p, v.quoteAt(m.chance, at)); err != nil {
			return err
		}
	}
	return nil
}

// follow takes the price of a pair's last trade as the fair one.
func (m *Market) follow(p *directory.Pair) error {
	q := committed.NewestTrades{TradeQuery: committed.TradeQuery{Pair: p.Number, Limit: 1}}
	if err := m.engine.Ask(&q, nil, 0); err != nil {
		return err
	}
	if a := assets[p.Base]; len(q.Trades) > 0 && p.Quote == "USDT" {
		m.fair[p.Base] = min(max(float64(q.Trades[0].Price)/1e8, a.low), a.high)
	}
	return nil
}

// afford gives a trader a currency to begin with.
func (m *Market) afford(t *trader, currency string) error {
	for {
		lacks, err := m.lacks(t, currency, deposits[currency]/4)
		if err != nil || !lacks {
			return err
		}
		if err := m.deposit(t, currency); err != nil {
			return err
		}
	}
}

// Run trades until ctx ends or the engine does. Refused actions are retried differently later.
func (m *Market) Run(ctx context.Context) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	said := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.engine.Dead():
			return
		case <-tick.C:
		}
		err := m.once()
		if errors.Is(err, actors.ErrStopping) {
			return
		}
		if text := fmt.Sprint(err); err != nil && text != said {
			said = text
			m.engine.Log().Info("the demo's market is paused", "error", err)
		}
	}
}

// once moves the fair prices, and does one thing on one pair.
func (m *Market) once() error {
	m.move()
	// half of the turns are of the first pair
	m.turn++
	p := m.pairs[0]
	if others := len(m.pairs) - 1; others > 0 && m.turn%2 == 0 {
		p = m.pairs[1+m.turn/2%others]
	}
	if p.Halted() || m.engine.Writable() != nil {
		return nil
	}
	v, err := m.view(p)
	if err != nil {
		return err
	}
	a := v.choose(m.chance)
	if a.kind == quote || a.kind == take {
		t, currency, need := m.trader(a.kind), p.Base, a.amount
		if a.side == trading.Buy {
			currency, need = p.Quote, money.Amount(float64(a.price)/1e8*float64(a.amount))
		}
		lacks, err := m.lacks(t, currency, need)
		if err != nil {
			return err
		}
		if lacks {
			return m.deposit(t, currency)
		}
	}
	return m.do(p, a)
}

// move moves the fair prices by one step.
func (m *Market) move() {
	for _, name := range slices.Sorted(maps.Keys(m.fair)) {
		m.fair[name] = assets[name].next(m.chance, m.fair[name])
	}
}

// trader returns the account for such an action.
func (m *Market) trader(k kind) *trader {
	if k == take {
		return &m.traders[1]
	}
	return &m.traders[0]
}

// view returns the basis for choosing an action on a pair.
func (m *Market) view(p *directory.Pair) (*view, error) {
	maker, taker := m.trader(quote), m.trader(take)
	q := committed.OpenOrders{OpenFilter: ledger.OpenFilter{Pair: p.Number}, Limit: 4 * levels}
	if err := m.engine.Ask(&q, maker.key, maker.next()); err != nil {
		return nil, err
	}
	v := &view{fair: fairOf(m.fair, p.Base, p.Quote), tick: money.PriceUnit(p.PricePrecision),
		usual: assets[p.Base].usual, quotes: q.Orders, buys: 0.5}
	has, err := m.available(taker)
	if all := has[p.Base]*v.fair + has[p.Quote]; all > 0 {
		v.buys = has[p.Quote] / all
	}
	return v, err
}

// available returns a trader's approximate spendable amounts by currency, to choose an action.
func (m *Market) available(t *trader) (map[string]float64, error) {
	w, err := m.engine.Wallet(committed.Client{Key: t.key, Nonce: t.next()})
	if err != nil {
		return nil, err
	}
	defer w.Free()
	has := map[string]float64{}
	for _, h := range w.Holdings {
		has[m.engine.CurrencyCode(h.Currency)] = h.Available().Decimal().InexactFloat64()
	}
	return has, nil
}

// lacks reports whether a trader cannot spend an amount of a currency, and some more.
func (m *Market) lacks(t *trader, currency string, need money.Amount) (bool, error) {
	has, err := m.available(t)
	return has[currency] < 1.01*float64(need)/1e8, err
}

// deposit gives a trader more of a currency, unless the deposit of that number was made before:
// then the number increases.
func (m *Market) deposit(t *trader, currency string) error {
	reference := "demo-" + t.name + "-" + currency
	done, err := m.engine.Deposit(operator, t.name, currency, deposits[currency],
		fmt.Sprint(reference, "-", m.made[reference]+1))
	if err == nil && done.Repeated {
		m.made[reference]++
	}
	return err
}

// do carries an action out, if the pair's rules allow it. It may be refused.
func (m *Market) do(p *directory.Pair, a action) error {
	t := m.trader(a.kind)
	var c *actors.Command
	var err error
	switch a.kind {
	case nothing:
		return nil
	case cancel:
		c, err = m.engine.Cancel(t.key, t.next(), a.order)
	default:
		if p.PriceFault(a.price) != "" || p.AmountFault(a.amount) != "" ||
			p.ValueFault(a.price, a.amount) != "" {
			return nil
		}
		w := actors.OrderRequest{Pair: p, Side: a.side, Price: a.price, Amount: a.amount}
		if a.kind == take {
			w.Special = &actors.SpecialRequest{Instructions: trading.Instructions{IOC: true}}
		}
		c, err = m.engine.Place(t.key, t.next(), &w)
	}
	if err == nil {
		c.Free()
	}
	return err
}
