package simulation

import (
	"fmt"
	"math/big"
	"slices"
	"time"

	"exchange/core/event"
	"exchange/persistence"
)

// A Model is the exchange after a number of records.
type Model struct {
	Seq         uint64
	Currencies  []string // by number-1
	Pairs       []*Pair
	Accounts    []*Account
	Keys        []*Key
	Deposits    map[string]event.Deposit // by reference
	Withdrawals map[uint64]*Withdrawal   // all that ever were
	Rows        Rows

	Maintenance      event.Maintenance // of the newest record that says it
	maintenanceEndUs int64             // time of the end of the newest one

	History    event.HistoryID // id of the newest history
	HistorySeq uint64          // sequence of the record that began it
	Renewed    int             // codes that it made anew, because their mails were still to be sent

	CodeValid    time.Duration // how long the code of a withdrawal is good
	ClientIDHold time.Duration // how long a client order id is taken; 0: for good
	SwitchGrace  time.Duration // after a maintenance, in which no switch fires

	CancelAlls map[KeyNonce]bool   // commands whose nonce each of many cancels has
	Batches    map[KeyNonce]int    // commands of the largest batch that was sent with a nonce
	ReadNonces map[uint32][]uint64 // that reads may have used, by key: no record has them

	maxFills int              // trades that one order may have
	rules    map[string]Rules // of a pair, by its name

	mails    map[uint64]uint64 // mails with a code that are to be sent: id -> withdrawal
	lastMail uint64

	supply     []*big.Int // by currency: deposits - paid withdrawals - adjustments
	switches   map[switchOf]*armed
	usedIDs    map[uint64]bool
	usedTrades map[uint64]bool
	usedNonces map[KeyNonce]event.Kind
	records    map[KeyNonce]int  // that took a nonce
	closed     map[uint64]Closed // orders that are not open any more, by id
	feeAccount *Account
	touched    []uint32 // accounts of the record that Apply takes
}

// NewModel returns an exchange without a record. The rules are those of the pairs, by name.
func NewModel(maxFills int, rules map[string]Rules) *Model {
	return &Model{maxFills: maxFills, rules: rules, Deposits: map[string]event.Deposit{},
		Withdrawals: map[uint64]*Withdrawal{}, mails: map[uint64]uint64{},
		CancelAlls: map[KeyNonce]bool{}, Batches: map[KeyNonce]int{},
		records: map[KeyNonce]int{}, ReadNonces: map[uint32][]uint64{},
		usedIDs: map[uint64]bool{}, usedTrades: map[uint64]bool{}, closed: map[uint64]Closed{},
		switches:   map[switchOf]*armed{},
		usedNonces: map[KeyNonce]event.Kind{}}
}

// Restarted notes that an engine began with all records so far. From then on no command may have a
// nonce below theirs, and of an account's rates only the newest count.
func (m *Model) Restarted() {
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
func (m *Model) Apply(r *event.Record) error {
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
		m.Rows.Actions = append(m.Rows.Actions,
			Row[persistence.Action]{m.Seq,
				persistence.Action{Seq: m.Seq, TimeUs: r.TimeUs, Operator: r.Operator}})
	}
	return nil
}

func (m *Model) apply(r *event.Record) error {
	switch r.Kind {
	case event.KindCurrency:
		m.Currencies = append(m.Currencies, r.Currency.Code)
		m.supply = append(m.supply, new(big.Int))
	case event.KindPair:
		p := &r.NewPair
		m.Pairs = append(m.Pairs, &Pair{Number: p.Number, Name: p.Name, base: p.Base,
			quote: p.Quote, rules: m.rules[p.Name]})
	case event.KindAccount:
		return m.applyAccount(&r.Account)
	case event.KindKey, event.KindParallelKey:
		return m.applyKey(&r.Key)
	case event.KindKeyRevoked:
		k := m.Keys[r.KeyRevoked.Number-1]
		if k.Revoked {
			return fmt.Errorf("key %s is revoked twice", k.Name)
		}
		k.Revoked = true
	case event.KindDeposit:
		return m.applyDeposit(r)
	case event.KindOrder:
		return m.applyOrder(r)
	case event.KindInstructed:
		return m.applyInstructed(r)
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
	case event.KindSwept:
		return m.applySwept(r)
	case event.KindCancel:
		return m.applyCancel(r)
	case event.KindRefusal:
		m.touched = append(m.touched, r.Refusal.Account)
		return m.applyRefusal(&r.Refusal)
	case event.KindWithdrawal, event.KindNamedWithdrawal:
		return m.applyWithdrawal(r)
	case event.KindWithdrawalMoved:
		return m.applyMove(r)
	case event.KindAdjusted:
		return m.applyAdjusted(r)
	case event.KindCodeRefused:
		return m.applyRefusedCode(r)
	case event.KindMailed:
		delete(m.mails, r.Mailed.ID)
	case event.KindHistory:
		return m.applyHistory(r)
	default:
		return m.applyOperator(r)
	}
	return nil
}

// applyOperator applies an operator's change of a pair, an account or the whole exchange.
func (m *Model) applyOperator(r *event.Record) error {
	switch r.Kind {
	case event.KindHalt:
		p := m.Pairs[r.Pair-1]
		if p.Halted(m.Seq) == r.Halt.Halted {
			return fmt.Errorf("%s: halted is %v already", p.Name, r.Halt.Halted)
		}
		p.Halts = append(p.Halts, Halt{m.Seq, r.Halt.Halted})
		return p.takeTime(r.TimeUs)
	case event.KindEmail:
		return m.applyEmail(r)
	case event.KindAccountClosed:
		return m.applyClosed(r)
	case event.KindToldFreeze: // a single program writes no other
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
			m.maintenanceEndUs = r.TimeUs
		}
		m.Maintenance = r.Maintenance
	case event.KindFees:
		a, p := m.Accounts[r.Fees.Account-1], m.Pairs[r.Pair-1]
		if a.ClosedUs != 0 {
			return fmt.Errorf("%s was closed at %d us", a.Name, a.ClosedUs)
		}
		rates := Rates{r.Fees.Maker, r.Fees.Taker}
		if !r.Fees.Own {
			rates = p.rules.Usual
		}
		if a.rates == nil {
			a.rates = map[uint16][]Rates{}
		}
		a.rates[p.Number] = append(a.rates[p.Number], rates)
	default:
		return fmt.Errorf("the model does not know this kind")
	}
	return nil
}
