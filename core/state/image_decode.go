package state

import (
	"bytes"
	"cmp"
	"errors"
	"exchange/core/event"
	"exchange/core/ledger"
	"exchange/core/money"
	"exchange/core/trading"
	"exchange/core/wire"
	"fmt"
)

// Every error of Decode wraps ErrImage, except a wire.OtherVersion.
var ErrImage = errors.New("damaged snapshot")

// Decode reads a state that AppendTo wrote.
func Decode(image []byte) (*State, error) {
	return DecodeWith(image, func(n int, do func(i int) error) error {
		for i := range n {
			if err := do(i); err != nil {
				return err
			}
		}
		return nil
	})
}

// DecodeWith is Decode on several processors: each calls do with each number below n, in any order
// or in parallel, and returns one of the errors.
func DecodeWith(image []byte, each func(n int, do func(i int) error) error) (*State, error) {
	r, s, err := beginImage(image)
	if err != nil {
		return nil, err
	}
	var parts []*openPart
	for range r.entries {
		if part := r.pair(s); part != nil {
			parts = append(parts, part)
		}
	}
	r.checkFees(s)
	r.checkSwitches(s)
	r.checkWithdrawalIDs(s)
	if !r.Bad() && r.Len() != 0 {
		r.Fail("bytes are left over after the state")
	}
	if r.Bad() {
		return nil, fmt.Errorf("%w: %s", ErrImage, r.Fault())
	}
	err = each(len(parts), func(i int) error { return parts[i].open(s) })
	if err == nil {
		err = openAccounts(s, parts, each)
	}
	for _, a := range s.accounts {
		err = cmp.Or(err, s.checkClosed(a))
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrImage, err)
	}
	return s, nil
}

// Readable returns a wire.OtherVersion if bytes begin an image of a version that Decode does not
// read.
func Readable(begin []byte) error {
	head := len(imageMagic)
	if len(begin) <= head || !bytes.HasPrefix(begin, []byte(imageMagic)) {
		return nil // Decode reports the fault
	}
	if v := begin[head]; v != imageVersion {
		return &wire.OtherVersion{Found: uint64(v), Oldest: imageVersion, Newest: imageVersion}
	}
	return nil
}

// beginImage reads an image up to its pairs. The reader records faults after the version.
func beginImage(image []byte) (r *reader, s *State, err error) {
	head := len(imageMagic) + 1
	if len(image) < head || !bytes.HasPrefix(image, []byte(imageMagic)) {
		return nil, nil, fmt.Errorf("%w: it does not begin with the mark of a snapshot", ErrImage)
	}
	if err := Readable(image); err != nil {
		return nil, nil, err
	}
	r, s = &reader{Reader: wire.Read(image[head:])}, New()
	s.seq, s.timeUs, s.lastOrder, s.lastTrade = r.Uint(), int64(r.Uint()), r.Uint(), r.Uint()
	s.depositCount = r.UpTo(s.seq) // each is a record
	s.lastWithdrawal, s.lastMail, s.tradeCounts[0] = r.Uint(), r.Uint(), r.Uint()
	copy(s.history[:], r.Take(len(s.history)))
	for range r.entries {
		r.currency(s)
	}
	r.room(s)
	for range r.entries {
		r.account(s)
	}
	for range r.entries {
		r.key(s)
	}
	r.withdrawals(s)
	r.maintenance(s)
	s.maintainedUs = int64(r.Uint())
	return r, s, nil
}

func (r *reader) maintenance(s *State) {
	mode := r.Take(1)
	if len(mode) == 0 {
		return
	}
	m, ok := event.MaintenanceOf(mode[0])
	if !ok {
		r.Fail("its maintenance has an unknown mode")
		return
	}
	m.Message = r.text()
	s.maintenance = m
}

// A reader reads an image.
type reader struct {
	wire.Reader
	// of the present account
	holdings  []ledger.Holding
	closedIDs []ledger.ClosedID
}

// count returns the number of following entries; each takes at least a byte.
func (r *reader) count() int {
	n := r.Uint()
	if n > uint64(r.Len()) {
		r.Fail("a list has more entries than bytes")
		return 0
	}
	return int(n)
}

// entries numbers the following entries, and stops after the first that does not fit. So an image
// of a few bytes cannot make a state of many entries.
func (r *reader) entries(yield func(int) bool) {
	n := r.count()
	for i := 0; i < n && !r.Bad() && yield(i); i++ {
	}
}

// room preallocates the accounts that follow, and as many keys. Each takes some bytes, so an image
// of a few bytes gets little.
func (r *reader) room(s *State) {
	const least = 16
	ahead := *r
	n := ahead.count()
	n = min(n, r.Len()/least)
	s.names, s.keyNames = make(map[string]uint32, n), make(map[string]uint32, n)
	s.accounts, s.keys = make([]*Account, 0, n), make([]*Key, 0, n)
	s.tradeCounts = append(make([]uint64, 0, n+1), s.tradeCounts...)
}

func (r *reader) text() string { return r.Text(r.Len()) }

func (r *reader) clientID() event.ClientID {
	b := r.Take(r.count())
	if len(b) == 0 {
		return event.ClientID{}
	}
	id, err := event.NewClientID(b)
	if err != nil {
		r.Fail("a client id has characters that none may have")
	}
	return id
}

// must records an error of the rules that images share with records.
func (r *reader) must(err error) bool {
	if err != nil {
		r.Fail(err.Error())
	}
	return !r.Bad()
}

func (r *reader) currency(s *State) {
	number := uint16(len(s.currencies) + 1)
	if r.must(s.currency(&event.Currency{Number: number, Code: r.text()})) {
		c := &s.currencies[number-1]
		c.Deposited, c.Withdrawn, c.Adjusted = r.Balance(), r.Balance(), r.Balance()
		if c.Deposited.Cmp(money.MaxSupply) >= 0 || c.Withdrawn.Cmp(c.Deposited) > 0 ||
			c.Adjusted.Cmp(c.Deposited.Sub(c.Withdrawn)) > 0 {
			r.Fail("more was deposited than can exist, or more has left than was deposited, of " +
				"currency " + c.Code)
		}
	}
}

func (r *reader) account(s *State) {
	id := uint32(len(s.accounts) + 1)
	if !r.must(s.account(&event.Account{ID: id, Name: r.text(), Email: r.text()})) {
		return
	}
	a := s.accounts[id-1]
	r.holdings = r.holdings[:0]
	var last uint16
	for range r.entries {
		h := ledger.Holding{Currency: r.U16(), Balance: r.Balance(), Reserve: r.Balance()}
		if h.Currency <= last || int(h.Currency) > len(s.currencies) ||
			h.Reserve.Cmp(h.Balance) > 0 || h.Balance.Cmp(money.MaxSupply) > 0 {
			r.Fail("impossible balance, reserve or currency of account " + a.Name)
			return
		}
		last = h.Currency
		r.holdings = append(r.holdings, h)
	}
	a.Wallet = ledger.NewWallet(r.holdings)
	if a.Closed = r.Uint(); a.Closed > s.lastOrder {
		r.Fail("more closed orders of account " + a.Name + " than there were orders")
	}
	a.lastEvent = r.UpTo(s.seq)
	a.Frozen = r.Flag()
	r.fees(a)
	r.settings(a)
	r.withdrawalIDs(a)
	r.operated(a)
	if s.tradeCounts[id] = r.Uint(); s.tradeCounts[id] > s.tradeCounts[0] {
		r.Fail("account " + a.Name + " has more trades than all accounts together")
	}
	r.keptIDs(s, a)
}

// keptIDs reads the client order ids of the account's closed orders.
func (r *reader) keptIDs(s *State, a *Account) {
	r.closedIDs = r.closedIDs[:0]
	last := int64(0)
	for range r.entries {
		id := ledger.ClosedID{Hash: r.Fixed64(), Order: r.UpTo(s.lastOrder),
			Closed: last + r.Int63()}
		last = id.Closed
		r.closedIDs = append(r.closedIDs, id)
	}
	if err := a.ClientIDs.Restore(r.closedIDs); err != nil {
		r.Fail("account " + a.Name + ": " + err.Error())
	}
}

func (r *reader) fees(a *Account) {
	var last uint16
	for range r.entries {
		pair, rates := r.U16(), FeeRates{r.Rate(), r.Rate()}
		if pair <= last {
			r.Fail("the fees of account " + a.Name + " are not in order")
			return
		}
		last = pair
		if own := a.own(); own.fees == nil {
			own.fees = make(map[uint16]FeeRates)
		}
		a.rare.fees[pair] = rates
	}
}

// settings reads an account's settings for its orders, and its switches.
func (r *reader) settings(a *Account) {
	if mode := trading.SelfTrade(r.UpTo(uint64(trading.SelfTradeCancelBoth))); mode != 0 {
		a.own().selfTrade = mode
	}
	for range r.entries {
		w := event.Switch{Account: a.ID, Armed: true, Key: r.U32(), Session: r.Flag(),
			DueUs: r.Int63(), Seconds: r.U32(), Pair: r.U16(),
			Side: trading.Side(r.U8()), Prefix: r.clientID()}
		if !r.must(checkArmed(&w)) {
			return
		}
		if last := a.Switches(); w.Key == 0 ||
			len(last) > 0 && bySwitch(last[len(last)-1], w) >= 0 {
			r.Fail("the switches of account " + a.Name + " are not in order")
			return
		}
		own := a.own()
		own.switches = append(own.switches, w)
	}
}

// withdrawalIDs reads the client ids of an account's withdrawals.
func (r *reader) withdrawalIDs(a *Account) {
	for range r.entries {
		n := namedWithdrawal{r.Uint(), r.clientID()}
		own := a.own()
		own.withdrawalIDs.list = append(own.withdrawalIDs.list, n)
	}
}

// checkWithdrawalIDs checks the client ids of withdrawals once the pending ones are read.
func (r *reader) checkWithdrawalIDs(s *State) {
	for _, a := range s.accounts {
		if err := a.WithdrawalIDs().check(s); err != nil {
			r.Fail("account " + a.Name + ": " + err.Error())
		}
	}
}

// checkSwitches refuses switches of missing keys or pairs: both are read later.
func (r *reader) checkSwitches(s *State) {
	for _, a := range s.accounts {
		for _, w := range a.Switches() {
			if k := s.key(w.Key); k == nil || k.Account != a.ID || int(w.Pair) > len(s.pairs) {
				r.Fail("account " + a.Name + " has a switch of a key or a pair that does not exist")
			}
		}
	}
}

// checkFees refuses fees in missing pairs: pairs are read after accounts.
func (r *reader) checkFees(s *State) {
	for _, a := range s.accounts {
		for pair := range a.Fees() {
			if int(pair) > len(s.pairs) {
				r.Fail("account " + a.Name + " has fees in a pair that does not exist")
			}
		}
	}
}

func (r *reader) withdrawals(s *State) {
	var last uint64
	for range r.entries {
		w := r.withdrawal(s)
		if r.Bad() || !w.Pending() || w.ID <= last || w.ID > s.lastWithdrawal {
			r.Fail("a withdrawal is not pending, not in order, or above the last id given")
			return
		}
		if (w.Stale || w.Renewed) && w.Status != event.WithdrawalNew || w.Stale && w.Renewed {
			r.Fail("a withdrawal that needs no code has one of an earlier history or a " +
				"renewed one, or its code is both")
			return
		}
		last = w.ID
		w.ClientID = s.accounts[w.Account-1].WithdrawalIDs().of(w.ID)
		s.pend(s.accounts[w.Account-1], &w)
	}
	last = 0
	for range r.entries {
		m := &Mail{ID: r.Uint(), TimeUs: int64(r.Uint())}
		if r.Flag() {
			m.Change = r.accountChange(s)
		} else {
			m.Withdrawal = r.withdrawal(s)
		}
		if r.Bad() || m.ID <= last || m.ID > s.lastMail {
			r.Fail("a mail is not in order, or above the last id given")
			return
		}
		if w := &m.Withdrawal; m.Change.Account == 0 && (w.Status != event.WithdrawalNew &&
			w.Status != event.WithdrawalRefused || w.ID > s.lastWithdrawal) {
			r.Fail("a mail is of a withdrawal in a status without mails")
			return
		}
		if r.checkMail(s, m); r.Bad() {
			return
		}
		last = m.ID
		s.post(m)
	}
}

// checkMail checks a mail against the bounds of the outbox.
func (r *reader) checkMail(s *State, m *Mail) {
	if !m.hasCode() {
		if list, most := s.Account(m.Account()).own().waiting(m); len(*list) >= most {
			r.Fail("an account has more mails of refusals, or of addresses, than are kept")
		}
		return
	}
	w := s.withdrawals[m.Withdrawal.ID]
	if w == nil || w.Status != event.WithdrawalNew || w.Account != m.Withdrawal.Account ||
		w.Issue != m.Withdrawal.Issue || m.Withdrawal.Stale || s.outbox.codes[w.ID] != 0 {
		r.Fail("a mail has a code that confirms nothing")
	}
}

func (r *reader) withdrawal(s *State) Withdrawal {
	w := Withdrawal{ID: r.Uint(), Account: r.U32(), Currency: r.U16(), Amount: r.Amount(),
		Status: r.U8(), TimeUs: int64(r.Uint()),
		Address: r.text(), Details: r.text(), Issue: r.U32(), IssuedUs: int64(r.Uint()),
		Tries: r.U32(), Stale: r.Flag(), Renewed: r.Flag()}
	if s.Account(w.Account) == nil || w.Currency == 0 || int(w.Currency) > len(s.currencies) ||
		w.Amount < 1 || w.Issue < 1 {
		r.Fail("a withdrawal has no account, currency, amount or code")
	}
	return w
}

func (r *reader) key(s *State) {
	k := event.Key{Number: uint32(len(s.keys) + 1), Account: r.U32(), Key: r.text()}
	if r.Flag() {
		if !r.Bad() && r.must(s.newKey(&k)) {
			r.must(s.revoke(k.Number))
		}
		return
	}
	k.Permissions = r.U8()
	for range r.entries {
		if k.Allow = append(k.Allow, r.text()); len(k.Allow) > event.MaxAllow ||
			k.Allow[len(k.Allow)-1] == "" {
			r.Fail("key " + k.Key + " has an empty address prefix, or too many of them")
		}
	}
	k.SealedBy, k.Sealed = r.Uint(), []byte(r.text())
	if k.NonceWindow = r.U16(); k.NonceWindow > event.MaxParallel {
		r.Fail("key " + k.Key + " keeps too many nonces")
	}
	if r.Bad() || !r.must(s.newKey(&k)) {
		return
	}
	made := s.keys[k.Number-1]
	if k.NonceWindow == 0 {
		made.use(r.Uint())
		return
	}
	for range r.entries {
		nonce := r.Uint()
		if nonce <= made.Nonce || made.Used.count() == int(k.NonceWindow) {
			r.Fail("the nonces of key " + k.Key + " do not ascend, or are too many")
			return
		}
		made.use(nonce)
	}
}
