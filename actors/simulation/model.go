package simulation

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"time"

	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/trading"
	"exchange/persistence"
)

// A Model is the exchange after a number of records.
type Model struct {
	Seq        uint64
	Currencies []string // by number-1
	Pairs      []*Pair
	Accounts   []*Account
	Keys       []*Key
	Deposits   map[string]event.Deposit // by reference
	Withdraws  map[uint64]*Withdraw     // all that ever were
	Rows       Rows

	// Maintenance is what the newest record says of it.
	Maintenance event.Maintenance

	// History is the id that the newest record of one has given, and HistorySeq that record's
	// sequence.
	History    event.HistoryID
	HistorySeq uint64

	// Renewed is how many codes the history has made anew, because their mails were still to be
	// sent.
	Renewed int

	// MaxFills is how many trades one order may have.
	MaxFills int
	// CodeValid is how long the code of a withdraw is.
	CodeValid time.Duration
	// Usual are the rates of a pair, by its name.
	Usual map[string]Rates
	// Sweeps has the nonces of commands that cancel all orders: each of their cancels carries it.
	Sweeps map[KeyNonce]bool
	// ReadNonces has the highest nonce that a read may have used, by key: no record says it.
	ReadNonces map[uint32]uint64

	mails    map[uint64]uint64 // with a code and still to be sent -> withdraw
	lastMail uint64

	supply     []*big.Int // by currency: deposits - withdraws
	lastID     map[uint64]bool
	trades     map[uint64]bool
	used       map[KeyNonce]event.Kind
	feeAccount *Account
	touched    []uint32 // accounts of the record that is applied
}

// A KeyNonce is a nonce of a key.
type KeyNonce struct {
	Key   uint32
	Nonce uint64
}

// Rates are the fees of a pair, or an account's own in it.
type Rates struct{ Maker, Taker money.Rate }

// A Pair is a market.
type Pair struct {
	Number      uint16
	Name        string
	Base, Quote uint16
	Rates       Rates
	Book        Book
	Halts       []Halt
	UpdateID    uint64
	Updates     []BookUpdate // by update id-1

	lastOrder, lastTrade uint64
	timeUs               int64
}

// A Halt says that trading was halted, or resumed, by a record.
type Halt struct {
	Seq uint64
	On  bool
}

// Halted says whether trading was halted after a record.
func (p *Pair) Halted(seq uint64) (on bool) {
	for _, h := range p.Halts {
		if h.Seq <= seq {
			on = h.On
		}
	}
	return on
}

// DepthAt is the depth after a record.
func (p *Pair) DepthAt(seq uint64) (sides [2][]Level) {
	for _, u := range slices.Backward(p.Updates) {
		if u.Seq <= seq {
			return u.Sides
		}
	}
	return sides
}

// A BookUpdate is what one record did to a pair's depth.
type BookUpdate struct {
	Seq       uint64
	Cancel    bool
	ID        uint64
	Cancelled uint64
	Side      trading.Side
	Price     money.Price
	Remaining money.Amount // what rests, or rested
	Trades    []event.Trade
	Changed   []Change
	Sides     [2][]Level // the whole depth after it
}

// A Change is what is at a price after a unit.
type Change struct {
	Side   trading.Side
	Price  money.Price
	Amount *big.Int
}

// An Account is one account.
type Account struct {
	ID     uint32
	Name   string
	Email  string
	Frozen bool
	// Freezes is how often it was frozen.
	Freezes int

	balances     []*big.Int // by currency-1
	versions     []version
	rates        map[uint16][]Rates // by pair, the newest last
	clientIDs    map[event.ClientID]uint64
	lastWithdraw uint64
}

// HasClientID says whether an order took a client order id.
func (a *Account) HasClientID(id event.ClientID) bool { return a.clientIDs[id] != 0 }

// A Key is an API key.
type Key struct {
	Number  uint32
	Name    string
	Account uint32
	Nonce   uint64 // the highest
	Revoked bool

	floor    uint64 // what Nonce was when the engine started
	sealedBy uint64 // the server's key that its secret is sealed with
}

// A Withdraw is money that is asked for.
type Withdraw struct {
	event.Withdraw
	Seq    uint64 // of its record
	Status uint8
	Was    uint8  // its status before
	Moved  uint64 // the record of its newest status; 0: it is new
	Tries  int
	Issue  int
	TimeUs int64

	issuedUs int64 // when its code was
	stale    bool  // it was in an earlier history
	renewed  bool  // its history has made the code anew, before it was known to be mailed

	// FirstIssue is that of the first code that is good in the history of now.
	FirstIssue int
}

// Pending says whether it still holds its money.
func (w *Withdraw) Pending() bool {
	return w.Status == event.WithdrawNew || w.Status == event.WithdrawVerified
}

// NewModel is an exchange without a record.
func NewModel(maxFills int, usual map[string]Rates) *Model {
	return &Model{MaxFills: maxFills, Usual: usual, Deposits: map[string]event.Deposit{},
		Withdraws: map[uint64]*Withdraw{}, mails: map[uint64]uint64{},
		Sweeps: map[KeyNonce]bool{}, ReadNonces: map[uint32]uint64{}, lastID: map[uint64]bool{},
		trades: map[uint64]bool{}, used: map[KeyNonce]event.Kind{}}
}

// Restarted says that an engine began with all records so far: the nonces that they have used are
// taken, and of an account's rates the newest count.
func (m *Model) Restarted() {
	for _, k := range m.Keys {
		k.floor = k.Nonce
	}
	for _, a := range m.Accounts {
		for pair, list := range a.rates {
			a.rates[pair] = slices.Repeat(list[len(list)-1:], ratesInFlight)
		}
	}
}

// Apply takes the next record. An error says why it must not be.
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
	if r.Who != "" {
		m.Rows.Actions = append(m.Rows.Actions,
			Row[persistence.Action]{m.Seq,
				persistence.Action{Seq: m.Seq, TimeUs: r.TimeUs, Who: r.Who}})
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
		m.Pairs = append(m.Pairs, &Pair{Number: p.Number, Name: p.Name, Base: p.Base,
			Quote: p.Quote, Rates: m.Usual[p.Name]})
	case event.KindAccount:
		return m.account(&r.Account)
	case event.KindKey:
		return m.key(&r.Key)
	case event.KindKeyRevoked:
		k := m.Keys[r.KeyRevoked.Number-1]
		if k.Revoked {
			return fmt.Errorf("key %s is revoked twice", k.Name)
		}
		k.Revoked = true
	case event.KindDeposit:
		return m.deposit(r)
	case event.KindOrder:
		return m.order(r)
	case event.KindCancel:
		return m.cancel(r)
	case event.KindRefusal:
		m.touched = append(m.touched, r.Refusal.Account)
		return m.refusal(&r.Refusal)
	case event.KindWithdraw:
		return m.withdraw(r)
	case event.KindWithdrawMoved:
		return m.moved(r)
	case event.KindCodeRefused:
		return m.codeRefused(r)
	case event.KindMailed:
		delete(m.mails, r.Mailed.ID)
	case event.KindHistory:
		return m.begins(r)
	default:
		return m.operated(r)
	}
	return nil
}

// operated applies what operators do to pairs, accounts and the whole exchange.
func (m *Model) operated(r *event.Record) error {
	switch r.Kind {
	case event.KindHalt:
		p := m.Pairs[r.Pair-1]
		if p.Halted(m.Seq) == r.Halt.Halted {
			return fmt.Errorf("the halt of %s is %v already", p.Name, r.Halt.Halted)
		}
		p.Halts = append(p.Halts, Halt{m.Seq, r.Halt.Halted})
		return p.passes(r.TimeUs)
	case event.KindFreeze:
		a := m.Accounts[r.Freeze.Account-1]
		if a.Frozen == r.Freeze.Frozen {
			return fmt.Errorf("that %s is frozen is %v already", a.Name, a.Frozen)
		}
		if a.Frozen = r.Freeze.Frozen; a.Frozen {
			a.Freezes++
		}
	case event.KindMaintenance:
		if m.Maintenance == r.Maintenance {
			return fmt.Errorf("maintenance is %+v already", m.Maintenance)
		}
		m.Maintenance = r.Maintenance
	case event.KindFees:
		a, p := m.Accounts[r.Fees.Account-1], m.Pairs[r.Pair-1]
		rates := Rates{r.Fees.Maker, r.Fees.Taker}
		if !r.Fees.Own {
			rates = p.Rates
		}
		if a.rates == nil {
			a.rates = map[uint16][]Rates{}
		}
		a.rates[p.Number] = append(a.rates[p.Number], rates)
	default:
		return fmt.Errorf("there is no such kind")
	}
	return nil
}

func (m *Model) account(a *event.Account) error {
	if int(a.ID) != len(m.Accounts)+1 ||
		slices.ContainsFunc(m.Accounts, func(o *Account) bool { return o.Name == a.Name }) {
		return fmt.Errorf("account %d, %s, after %d others", a.ID, a.Name, len(m.Accounts))
	}
	m.Accounts = append(m.Accounts,
		&Account{ID: a.ID, Name: a.Name, Email: a.Email, clientIDs: map[event.ClientID]uint64{}})
	if a.Name == "fees" {
		m.feeAccount = m.Accounts[a.ID-1]
	}
	return nil
}

// Account is the account of that name, nil if there is none.
func (m *Model) Account(name string) *Account {
	for _, a := range m.Accounts {
		if a.Name == name {
			return a
		}
	}
	return nil
}

// Key is the key of that name, nil if there is none.
func (m *Model) Key(name string) *Key {
	for _, k := range m.Keys {
		if k.Name == name {
			return k
		}
	}
	return nil
}

func (m *Model) key(k *event.Key) error {
	if known := m.Key(k.Key); known != nil && known.Number == k.Number &&
		known.Account == k.Account && known.sealedBy != k.SealedBy {
		known.sealedBy = k.SealedBy // its secret is sealed anew
		return nil
	}
	if int(k.Number) != len(m.Keys)+1 || m.Key(k.Key) != nil || int(k.Account) > len(m.Accounts) {
		return fmt.Errorf("key %d, %s, of account %d after %d others", k.Number, k.Key, k.Account,
			len(m.Keys))
	}
	m.Keys = append(m.Keys, &Key{Number: k.Number, Name: k.Key, Account: k.Account,
		sealedBy: k.SealedBy})
	return nil
}

func (m *Model) deposit(r *event.Record) error {
	d := r.Deposit
	if _, taken := m.Deposits[d.Reference]; taken || d.ID != uint64(len(m.Deposits)+1) ||
		d.Amount <= 0 {
		return fmt.Errorf("deposit %d of %v, reference %q, after %d others", d.ID, d.Amount,
			d.Reference, len(m.Deposits))
	}
	m.Deposits[d.Reference] = d
	n := ofAmount(d.Amount)
	m.Accounts[d.Account-1].credit(d.Currency, n)
	m.supply[d.Currency-1].Add(m.supply[d.Currency-1], n)
	m.touched = append(m.touched, d.Account)
	m.Rows.Deposits = append(m.Rows.Deposits,
		Row[persistence.Deposit]{m.Seq,
			persistence.Deposit{ID: d.ID, Account: d.Account, Currency: d.Currency,
				Amount: d.Amount, TimeUs: r.TimeUs, Reference: d.Reference}})
	return nil
}

// lets is an error while there is maintenance: it began when nothing of clients' was in flight.
func (m *Model) lets(k *Key) error {
	if m.Maintenance.On {
		return fmt.Errorf("a command of key %s, and there is maintenance", k.Name)
	}
	return nil
}

// uses takes the nonce of a command that came to something: each is good for one, and it is above
// all that the engine has found when it started.
func (m *Model) uses(kind event.Kind, key, account uint32, nonce uint64) error {
	if key == 0 {
		return nil
	}
	k := m.Keys[key-1]
	if k.Account != account {
		return fmt.Errorf("key %s is not of account %d", k.Name, account)
	}
	if err := m.lets(k); err != nil {
		return err
	}
	if nonce <= k.floor {
		return fmt.Errorf("nonce %d of key %s, which had used %d before the engine started", nonce,
			k.Name, k.floor)
	}
	at := KeyNonce{key, nonce}
	if before, twice := m.used[at]; twice && !m.Sweeps[at] {
		return fmt.Errorf("nonce %d of key %s was used before, for a %v", nonce, k.Name, before)
	}
	m.used[at] = kind
	k.Nonce = max(k.Nonce, nonce)
	return nil
}

// refusal takes the nonce of a command that came to nothing else. One that is refused for its
// nonce, or before its nonce is looked at, may have one that was used before, by a read too.
func (m *Model) refusal(f *event.Refusal) error {
	if f.Reason != event.RefusedNonce && f.Reason != event.RefusedKey {
		return m.uses(event.KindRefusal, f.Key, f.Account, f.Nonce)
	}
	if f.Key == 0 {
		return nil
	}
	k := m.Keys[f.Key-1]
	if most := max(k.Nonce, m.ReadNonces[f.Key]); f.Reason == event.RefusedNonce && f.Nonce > most {
		return fmt.Errorf("nonce %d of key %s is refused, and the highest that it has used is %d",
			f.Nonce, k.Name, most)
	}
	k.Nonce = max(k.Nonce, f.Nonce)
	return m.lets(k)
}

// passes lets a pair's time go on, which never goes back.
func (p *Pair) passes(timeUs int64) error {
	if timeUs < p.timeUs {
		return fmt.Errorf("%s goes from %d us back to %d us", p.Name, p.timeUs, timeUs)
	}
	p.timeUs = timeUs
	return nil
}

// takesID checks the id of an order or a cancel: no other has it, and those of a pair grow.
func (m *Model) takesID(p *Pair, id uint64) error {
	if m.lastID[id] || id <= p.lastOrder {
		return fmt.Errorf("id %d, after id %d of %s, or it is used twice", id, p.lastOrder, p.Name)
	}
	m.lastID[id], p.lastOrder = true, id
	return nil
}

func (m *Model) order(r *event.Record) error {
	o, p := &r.Order, m.Pairs[r.Pair-1]
	a := m.Accounts[o.Account-1]
	if err := m.uses(r.Kind, o.Key, o.Account, o.Nonce); err != nil {
		return err
	}
	if err := m.takesID(p, o.ID); err != nil {
		return err
	}
	if err := p.passes(r.TimeUs); err != nil {
		return err
	}
	switch {
	case p.Halted(m.Seq):
		return fmt.Errorf("%s is halted", p.Name)
	case !o.ClientID.IsZero() && a.clientIDs[o.ClientID] != 0:
		return fmt.Errorf("client order id %v of %s is taken by order %d", o.ClientID, a.Name,
			a.clientIDs[o.ClientID])
	}
	trades, remaining, cut, done := p.Book.match(o, m.MaxFills)
	if err := sameTrades(o.Trades, trades); err != nil {
		return fmt.Errorf("order %d, %v %v at %v: %w", o.ID, o.Side, o.Amount, o.Price, err)
	}
	if o.Remaining != remaining || o.MaxFillsReached != cut {
		return fmt.Errorf("order %d has %v remaining, cut: %v, not %v, %v", o.ID, o.Remaining,
			o.MaxFillsReached, remaining, cut)
	}
	for i := range o.Trades {
		t := &o.Trades[i]
		if m.trades[t.ID] || t.ID <= p.lastTrade {
			return fmt.Errorf("trade %d, after trade %d of %s, or its id is used twice", t.ID,
				p.lastTrade, p.Name)
		}
		m.trades[t.ID], p.lastTrade = true, t.ID
		if err := m.settleTrade(p, o, t); err != nil {
			return err
		}
		m.traded(p, r, t)
		m.touched = append(m.touched, t.MakerAccount)
	}
	if o.FeeAccount != 0 {
		m.touched = append(m.touched, o.FeeAccount)
	}
	m.touched = append(m.touched, o.Account)
	if !o.ClientID.IsZero() {
		a.clientIDs[o.ClientID] = o.ID
	}
	for _, maker := range done {
		m.closed(p, maker, persistence.StatusDone, r.TimeUs)
	}
	taker := &Order{ID: o.ID, Account: o.Account, Pair: p.Number, Side: o.Side, Price: o.Price,
		Amount: o.Amount, Remaining: remaining, TimeUs: r.TimeUs, ClientID: o.ClientID}
	u := BookUpdate{ID: o.ID, Side: o.Side, Price: o.Price, Trades: slices.Clone(o.Trades)}
	switch {
	case remaining == 0:
		m.closed(p, taker, persistence.StatusDone, r.TimeUs)
	case cut:
		m.closed(p, taker, persistence.StatusCancelled, r.TimeUs)
	default:
		p.Book.rest(taker)
		u.Remaining = remaining
	}
	m.unit(p, &u)
	return nil
}

// unit counts a change of the depth.
func (m *Model) unit(p *Pair, u *BookUpdate) {
	for i, t := range u.Trades {
		if i == 0 || u.Trades[i-1].Price != t.Price {
			u.Changed = append(u.Changed, Change{u.Side.Opposite(), t.Price,
				p.Book.at(u.Side.Opposite(), t.Price)})
		}
	}
	if u.Remaining > 0 {
		u.Changed = append(u.Changed, Change{u.Side, u.Price, p.Book.at(u.Side, u.Price)})
	}
	p.UpdateID++
	u.Seq, u.Sides = m.Seq, [2][]Level{p.Book.Levels(trading.Buy), p.Book.Levels(trading.Sell)}
	p.Updates = append(p.Updates, *u)
}

// Open is an order that rests, and its pair; nil if it does not.
func (m *Model) Open(id uint64) (*Order, *Pair) {
	for _, p := range m.Pairs {
		if o := p.Book.find(id); o != nil {
			return o, p
		}
	}
	return nil, nil
}

func (m *Model) cancel(r *event.Record) error {
	c, p := &r.Cancel, m.Pairs[r.Pair-1]
	if err := m.uses(r.Kind, c.Key, c.Account, c.Nonce); err != nil {
		return err
	}
	if err := m.takesID(p, c.ID); err != nil {
		return err
	}
	if err := p.passes(r.TimeUs); err != nil {
		return err
	}
	o := p.Book.find(c.Order)
	if o == nil || o.Account != c.Account || o.Side != c.Side || o.Price != c.Price ||
		o.Remaining != c.Remaining {
		return fmt.Errorf("a cancel of order %d, %v %v at %v of account %d, and what rests is %+v",
			c.Order, c.Side, c.Remaining, c.Price, c.Account, o)
	}
	p.Book.remove(o)
	m.closed(p, o, persistence.StatusCancelled, r.TimeUs)
	m.unit(p, &BookUpdate{Cancel: true, ID: c.ID, Cancelled: c.Order, Side: c.Side, Price: c.Price,
		Remaining: c.Remaining})
	m.touched = append(m.touched, c.Account)
	return nil
}

func (m *Model) withdraw(r *event.Record) error {
	w := r.Withdraw
	a := m.Accounts[w.Account-1]
	if err := m.uses(r.Kind, w.Key, w.Account, w.Nonce); err != nil {
		return err
	}
	if m.Withdraws[w.ID] != nil || w.ID <= a.lastWithdraw || w.Amount <= 0 {
		return fmt.Errorf("withdraw %d of %v, after withdraw %d of %s, or its id is used twice",
			w.ID, w.Amount, a.lastWithdraw, a.Name)
	}
	a.lastWithdraw = w.ID
	m.Withdraws[w.ID] = &Withdraw{Withdraw: w, Seq: m.Seq, Status: event.WithdrawNew, Issue: 1,
		TimeUs: r.TimeUs, issuedUs: r.TimeUs}
	m.mail(m.Withdraws[w.ID])
	m.touched = append(m.touched, w.Account)
	return nil
}

// follows is the life of a withdraw.
var follows = map[[2]uint8]bool{
	{event.WithdrawNew, event.WithdrawVerified}:       true,
	{event.WithdrawNew, event.WithdrawCancelled}:      true,
	{event.WithdrawNew, event.WithdrawRefused}:        true,
	{event.WithdrawVerified, event.WithdrawApproved}:  true,
	{event.WithdrawVerified, event.WithdrawRefused}:   true,
	{event.WithdrawVerified, event.WithdrawCancelled}: true,
}

// MayMove says whether a withdraw may get a status next.
func (w *Withdraw) MayMove(to uint8) bool { return follows[[2]uint8{w.Status, to}] }

func (m *Model) moved(r *event.Record) error {
	k := &r.WithdrawMoved
	if err := m.uses(r.Kind, k.Key, k.Account, k.Nonce); err != nil {
		return err
	}
	w := m.Withdraws[k.ID]
	if w == nil || w.Account != k.Account || w.Currency != k.Currency || w.Amount != k.Amount ||
		!w.MayMove(k.To) {
		return fmt.Errorf("withdraw %d goes to status %d, and is %+v", k.ID, k.To, w)
	}
	if k.To == event.WithdrawVerified && m.expired(w, r.TimeUs) {
		return fmt.Errorf("withdraw %d is verified at %d us, by a code of %d us", k.ID, r.TimeUs,
			w.issuedUs)
	}
	if frozen := m.Accounts[w.Account-1].Frozen; k.DespiteFreeze !=
		(frozen && k.To == event.WithdrawApproved) {
		return fmt.Errorf(
			"withdraw %d goes to status %d, despite a freeze: %v; its account is frozen: %v", k.ID,
			k.To, k.DespiteFreeze, frozen)
	}
	w.Was, w.Status, w.Moved = w.Status, k.To, m.Seq
	m.unmail(w)
	if k.To == event.WithdrawRefused {
		m.lastMail++ // its owner is told
	}
	if k.To == event.WithdrawApproved {
		n := ofAmount(w.Amount)
		m.Accounts[w.Account-1].debit(w.Currency, n)
		m.supply[w.Currency-1].Sub(m.supply[w.Currency-1], n)
	}
	if !w.Pending() {
		m.Rows.Withdraws = append(m.Rows.Withdraws,
			Row[persistence.Withdraw]{m.Seq,
				persistence.Withdraw{ID: w.ID, Account: w.Account, Currency: w.Currency,
					Amount: w.Amount, Status: k.To, TimeUs: w.TimeUs, ClosedUs: r.TimeUs,
					ClosedSeq: m.Seq, Address: w.Address, Details: k.Details}})
	}
	m.touched = append(m.touched, k.Account)
	return nil
}

// mail puts a withdraw's newest code among the mails to be sent, in the place of the one before.
func (m *Model) mail(w *Withdraw) {
	m.unmail(w)
	m.lastMail++
	m.mails[m.lastMail] = w.ID
}

func (m *Model) unmail(w *Withdraw) {
	maps.DeleteFunc(m.mails, func(_, withdraw uint64) bool { return withdraw == w.ID })
}

// reissues says that a withdraw has a new code, which is to be mailed.
func (m *Model) reissues(w *Withdraw, timeUs int64) {
	w.Issue++
	w.issuedUs, w.stale, w.renewed = timeUs, false, false
	m.mail(w)
}

// begins names a history. The codes of the one before are good for nothing any more; those whose
// mail is still to be sent are made anew.
func (m *Model) begins(r *event.Record) error {
	id := r.History
	if id.IsZero() || id == m.History {
		return fmt.Errorf("history %v begins after %v", id, m.History)
	}
	m.History, m.HistorySeq = id, m.Seq
	for _, w := range m.Withdraws {
		w.stale, w.renewed = w.Status == event.WithdrawNew, false
		w.FirstIssue = w.Issue + 1
	}
	m.Renewed = len(m.mails)
	for _, mail := range slices.Sorted(maps.Keys(m.mails)) {
		w := m.Withdraws[m.mails[mail]]
		m.reissues(w, r.TimeUs)
		w.renewed = true
	}
	return nil
}

// expired says whether a withdraw's code is too old, or of an earlier history.
func (m *Model) expired(w *Withdraw, timeUs int64) bool {
	return w.stale || timeUs-w.issuedUs > m.CodeValid.Microseconds()
}

func (m *Model) codeRefused(r *event.Record) error {
	c := &r.CodeRefused
	if err := m.uses(event.KindCodeRefused, c.Key, c.Account, c.Nonce); err != nil {
		return err
	}
	w := m.Withdraws[c.Withdraw]
	if w == nil || w.Account != c.Account || w.Status != event.WithdrawNew {
		return fmt.Errorf("a code for withdraw %d, which is %+v", c.Withdraw, w)
	}
	if expired := m.expired(w, r.TimeUs) || w.renewed; c.Expired != expired {
		return fmt.Errorf("the code of withdraw %d, of %d us, has expired at %d us: %v, not %v",
			c.Withdraw, w.issuedUs, r.TimeUs, c.Expired, expired)
	}
	if c.Expired {
		m.reissues(w, r.TimeUs)
	} else {
		w.Tries++
	}
	if int(c.Tries) != w.Tries {
		return fmt.Errorf("withdraw %d has had %d wrong codes, and the record counts %d", w.ID,
			w.Tries, c.Tries)
	}
	m.touched = append(m.touched, c.Account)
	return nil
}
