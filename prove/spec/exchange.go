package spec

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"time"

	"exchange/core/event"
)

// An Exchange is the exchange's state after a number of records.
type Exchange struct {
	Seq         uint64
	Currencies  []string // by number-1
	Pairs       []*Pair
	Accounts    []*Account
	Keys        []*Key
	Deposits    map[string]Deposit     // by reference
	Withdrawals map[uint64]*Withdrawal // all ever made
	Mails       []Mail                 // to be sent, by id
	LastMail    uint64

	Trades       []Trade  // all, in the order of their records
	ClosedOrders []Closed // all, in the order of their ends
	Actions      []Action // all of operators

	Maintenance  event.Maintenance // of the newest such record
	MaintainedUs int64             // time of the end of the newest one

	History    event.HistoryID // id of the newest history
	HistorySeq uint64          // sequence of the record that began it
	Renewed    int             // codes that it renewed, because their mails were pending

	MaxFills    int           // trades that one order may have
	CodeValid   time.Duration // lifetime of a withdrawal's code
	KeptIDs     KeptIDs       // which closed orders keep their client order ids
	SwitchGrace time.Duration // after a maintenance, in which no switch fires
	FeeAccount  string        // name of the account that receives the fees

	CancelAlls map[KeyNonce]bool   // commands whose nonce many cancels share
	Batches    map[KeyNonce]int    // commands of the largest batch sent with a nonce
	ReadNonces map[uint32][]uint64 // possibly used by reads, by key: no record contains them

	rules map[string]Rules // of a pair, by its name

	supply     []*big.Int // by currency: deposits - paid withdrawals - adjustments
	switches   map[switchOf]*armed
	usedIDs    map[uint64]bool
	usedTrades map[uint64]bool
	usedNonces map[KeyNonce]event.Kind
	records    map[KeyNonce]int // that took a nonce
	closed     map[uint64]int   // index in ClosedOrders, by order
	feeAccount *Account
	touched    []uint32 // accounts of the record in Apply
	deciding   bool     // Decide is running: fields of the record are set, not checked
}

// New returns an exchange without a record. The rules are those of the pairs, by name.
func New(maxFills int, rules map[string]Rules) *Exchange {
	return &Exchange{MaxFills: maxFills, rules: rules, FeeAccount: "fees",
		KeptIDs: KeptIDs{256, 20_000, 120e6}, Deposits: map[string]Deposit{},
		Withdrawals: map[uint64]*Withdrawal{},
		CancelAlls:  map[KeyNonce]bool{}, Batches: map[KeyNonce]int{},
		records: map[KeyNonce]int{}, ReadNonces: map[uint32][]uint64{},
		usedIDs: map[uint64]bool{}, usedTrades: map[uint64]bool{}, closed: map[uint64]int{},
		switches:   map[switchOf]*armed{},
		usedNonces: map[KeyNonce]event.Kind{}}
}

// Decide completes the record of the next accepted command by the exchange's decision, and applies
// it. The record holds the request: of an order its pair, account, side, price, amount and
// instructions, but no id and no trades; of a cancel, a change, an expiry or a triggered order the
// id of the order. The error says why the record must not follow; then nothing has changed.
func (m *Exchange) Decide(r *event.Record) error {
	c, decided := m.clone(), *r
	c.deciding = true
	err := c.Apply(&decided)
	if c.deciding = false; err == nil {
		*m, *r = *c, decided
	}
	return err
}

// says reports whether a record's field has the right value. During Decide it sets the field.
func says[T comparable](m *Exchange, field *T, want T) bool {
	if m.deciding {
		*field = want
	}
	return *field == want
}

// clone returns an independent copy.
func (m *Exchange) clone() *Exchange {
	c := *m
	c.Pairs, c.Accounts, c.Keys = nil, nil, nil
	for _, p := range m.Pairs {
		copied := *p
		copied.Market = p.Market.clone()
		c.Pairs = append(c.Pairs, &copied)
	}
	for _, a := range m.Accounts {
		copied := *a
		copied.clientIDs, copied.rates = maps.Clone(a.clientIDs), maps.Clone(a.rates)
		copied.balances = nil
		for _, b := range a.balances {
			copied.balances = append(copied.balances, new(big.Int).Set(b))
		}
		if c.Accounts = append(c.Accounts, &copied); a == m.feeAccount {
			c.feeAccount = &copied
		}
	}
	for _, k := range m.Keys {
		copied := *k
		c.Keys = append(c.Keys, &copied)
	}
	c.Deposits, c.Withdrawals = maps.Clone(m.Deposits), map[uint64]*Withdrawal{}
	for id, w := range m.Withdrawals {
		copied := *w
		c.Withdrawals[id] = &copied
	}
	c.supply = nil
	for _, n := range m.supply {
		c.supply = append(c.supply, new(big.Int).Set(n))
	}
	c.switches = map[switchOf]*armed{}
	for of, s := range m.switches {
		copied := *s
		c.switches[of] = &copied
	}
	c.Mails, c.touched = slices.Clone(m.Mails), nil
	c.usedIDs, c.usedTrades, c.closed = maps.Clone(m.usedIDs), maps.Clone(m.usedTrades),
		maps.Clone(m.closed)
	c.usedNonces, c.records = maps.Clone(m.usedNonces), maps.Clone(m.records)
	return &c
}

// Restarted records that an engine started with all records so far. From then on no command may use
// a nonce below theirs, and of an account's rates only the newest count.
func (m *Exchange) Restarted() {
	m.refire()
	for _, k := range m.Keys {
		k.floor = k.Nonce
	}
	for _, a := range m.Accounts {
		for pair, list := range a.rates {
			a.rates[pair] = slices.Repeat(list[len(list)-1:], ratesInFlight)
		}
	}
}

// Apply takes the next record. The error says why the record must not follow.
func (m *Exchange) Apply(r *event.Record) error {
	m.Seq++
	m.touched = m.touched[:0]
	err := m.apply(r)
	if err == nil {
		err = m.checkFunds(m.touched)
	}
	if err != nil {
		return fmt.Errorf("record %d (%v): %w", m.Seq, r.Kind, err)
	}
	if r.Operator != "" {
		m.Actions = append(m.Actions, Action{m.Seq, r.TimeUs, r.Operator})
	}
	return nil
}

// ApplyBatch applies the next batch of the journal, as stored, and calls tell for each applied
// record and its bytes.
func (m *Exchange) ApplyBatch(prev, next uint64, batch []byte,
	tell func(r *event.Record, stored string)) error {
	b, err := event.OpenBatch(batch)
	switch {
	case err != nil:
		return fmt.Errorf("batch (%d, %d]: %w", prev, next, err)
	case prev != m.Seq || b.Prev != prev || b.Prev+uint64(b.Count) != next:
		return fmt.Errorf("a batch says it is (%d, %d], and is stored as (%d, %d] after record %d",
			b.Prev, b.Prev+uint64(b.Count), prev, next, m.Seq)
	}
	for rest := b.Records; len(rest) > 0; {
		var r event.Record // the exchange may keep it
		before := rest
		if rest, err = r.Decode(rest); err == nil {
			err = m.Apply(&r)
		}
		if err != nil {
			return err
		}
		tell(&r, string(before[:len(before)-len(rest)]))
	}
	if m.Seq != next {
		return fmt.Errorf("batch (%d, %d] ends at %d", prev, next, m.Seq)
	}
	return nil
}

func (m *Exchange) apply(r *event.Record) error {
	switch r.Kind {
	case event.KindCurrency:
		m.Currencies = append(m.Currencies, r.Currency.Code)
		m.supply = append(m.supply, new(big.Int))
	case event.KindPair:
		p := &r.NewPair
		m.Pairs = append(m.Pairs, &Pair{Number: p.Number, Name: p.Name, base: p.Base,
			quote: p.Quote, Market: Market{Rules: m.rules[p.Name], MaxFills: m.MaxFills}})
	case event.KindAccount:
		return m.applyAccount(&r.Account)
	case event.KindKey:
		return m.applyKey(&r.Key)
	case event.KindKeyRevoked:
		return m.applyRevoked(&r.KeyRevoked, r.TimeUs)
	case event.KindDeposit:
		return m.applyDeposit(r)
	case event.KindOrder, event.KindInstructed:
		return m.applyOrder(r)
	case event.KindStop:
		return m.applyStop(r)
	case event.KindTriggered:
		return m.applyTriggered(r)
	case event.KindAmended:
		return m.applyAmended(r)
	case event.KindExpired:
		return m.applyExpired(r)
	case event.KindSwitch:
		return m.applySwitch(r)
	case event.KindSettings:
		return m.applySettings(r)
	case event.KindSwitchCancel:
		return m.applySwept(r)
	case event.KindCancel:
		return m.applyCancel(r)
	case event.KindRefusal:
		m.touched = append(m.touched, r.Refusal.Account)
		return m.applyRefusal(&r.Refusal)
	case event.KindWithdrawal:
		return m.applyWithdrawal(r)
	case event.KindWithdrawalStatus:
		return m.applyMove(r)
	case event.KindAdjusted:
		return m.applyAdjusted(r)
	case event.KindCodeRefused:
		return m.applyRefusedCode(r)
	case event.KindMailed:
		m.dropMails(func(x *Mail) bool { return x.ID == r.Mailed.ID })
	case event.KindHistory:
		return m.applyHistory(r)
	default:
		return m.applyOperator(r)
	}
	return nil
}

// applyOperator applies an operator's change of a pair, an account or the whole exchange.
func (m *Exchange) applyOperator(r *event.Record) error {
	switch r.Kind {
	case event.KindHalt:
		p := m.Pairs[r.Pair-1]
		if p.IsHalted(m.Seq) == r.Halt.Halted {
			return fmt.Errorf("%s: halted is %v already", p.Name, r.Halt.Halted)
		}
		p.Halts = append(p.Halts, Halt{m.Seq, r.Halt.Halted})
		return p.takeTime(r.TimeUs)
	case event.KindEmail:
		return m.applyEmail(r)
	case event.KindAccountClosed:
		return m.applyClosed(r)
	case event.KindFreeze:
		a := m.Accounts[r.Freeze.Account-1]
		if a.Frozen == r.Freeze.Frozen || a.ClosedUs != 0 {
			return fmt.Errorf("%s: frozen is %v already, it was closed at %d us", a.Name,
				a.Frozen, a.ClosedUs)
		}
		if a.Frozen = r.Freeze.Frozen; a.Frozen {
			a.Freezes++
		}
		m.touched = append(m.touched, a.ID)
	case event.KindMaintenance:
		if m.Maintenance == r.Maintenance {
			return fmt.Errorf("maintenance is %+v already", m.Maintenance)
		}
		if m.Maintenance.On && !r.Maintenance.On {
			m.MaintainedUs = r.TimeUs
		}
		m.Maintenance = r.Maintenance
	case event.KindFees:
		a, p := m.Accounts[r.Fees.Account-1], m.Pairs[r.Pair-1]
		if a.ClosedUs != 0 {
			return fmt.Errorf("%s was closed at %d us", a.Name, a.ClosedUs)
		}
		rates := Rates{r.Fees.Maker, r.Fees.Taker}
		if !r.Fees.Own {
			rates = p.Usual
		}
		if a.rates == nil {
			a.rates = map[uint16][]Rates{}
		}
		a.rates[p.Number] = append(a.rates[p.Number], rates)
	default:
		return fmt.Errorf("the model has no such kind")
	}
	return nil
}
