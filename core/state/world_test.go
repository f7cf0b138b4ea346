package state

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/trading"
)

// A world keeps the effects of records beside orders, in the obvious way: deposits and withdrawals
// of each currency, nonces, mails, and decisions of operators.
type world struct {
	in, out        map[uint16]money.Balance             // by currency
	adjusted       map[uint16]money.Balance             // by currency
	nonces         map[uint32]uint64                    // by key
	keys           map[uint32]uint32                    // account by key
	revoked        map[uint32]bool                      // keys: their nonces count no more
	withdrawals    []Withdrawal                         // pending, by id
	named          map[uint32]map[event.ClientID]uint64 // withdrawals by account and client id
	lastWithdrawal uint64
	mails          []Mail // to be sent, by id
	lastMail       uint64
	ended          *Withdrawal // by the newest record
	halted         map[uint16]bool
	frozen         map[uint32]bool
	emails         map[uint32]string
	held           map[uint32]int64 // until when, by account
	closed         map[uint32]int64 // when, by account
	maintenance    event.Maintenance
	maintainedUs   int64
	selfTrade      map[uint32]trading.SelfTrade // by account
	switches       []event.Switch               // armed, by account, key and kind
	history        event.HistoryID
	own            map[uint32]map[uint16]FeeRates // by account and pair
	trades         map[uint32]uint64              // by account; 0: all
}

func newWorld() *world {
	return &world{in: map[uint16]money.Balance{}, out: map[uint16]money.Balance{},
		adjusted: map[uint16]money.Balance{},
		nonces:   map[uint32]uint64{}, keys: map[uint32]uint32{}, revoked: map[uint32]bool{},
		halted: map[uint16]bool{},
		frozen: map[uint32]bool{}, emails: map[uint32]string{}, held: map[uint32]int64{},
		closed: map[uint32]int64{}, own: map[uint32]map[uint16]FeeRates{},
		trades: map[uint32]uint64{}, selfTrade: map[uint32]trading.SelfTrade{},
		named: map[uint32]map[event.ClientID]uint64{}}
}

func (w *world) note(r *event.Record) {
	w.ended = nil
	switch r.Kind {
	case event.KindKey, event.KindParallelKey:
		w.keys[r.Key.Number] = r.Key.Account
	case event.KindKeyRevoked:
		w.revoke(r.KeyRevoked.Number)
		if r.KeyRevoked.Lost {
			w.lose(r.TimeUs, w.keys[r.KeyRevoked.Number])
		}
	case event.KindDeposit:
		w.in[r.Deposit.Currency] = w.in[r.Deposit.Currency].Add(r.Deposit.Amount.Balance())
	case event.KindOrder, event.KindInstructed, event.KindStop, event.KindTriggered,
		event.KindAmended:
		w.use(r.Order.Key, r.Order.Nonce)
		for i := range r.Order.Trades {
			for account := range map[uint32]bool{0: true, r.Order.Account: true,
				r.Order.Trades[i].MakerAccount: true} {
				w.trades[account]++
			}
		}
	case event.KindAdjusted:
		w.adjust(r)
	case event.KindCancel:
		w.use(r.Cancel.Key, r.Cancel.Nonce)
	case event.KindRefusal:
		w.use(r.Refusal.Key, r.Refusal.Nonce)
	case event.KindWithdrawal, event.KindNamedWithdrawal:
		w.ask(r)
	case event.KindWithdrawalMoved:
		w.use(r.WithdrawalMoved.Key, r.WithdrawalMoved.Nonce)
		w.move(r)
	case event.KindCodeRefused:
		w.use(r.CodeRefused.Key, r.CodeRefused.Nonce)
		k := &w.withdrawals[w.at(r.CodeRefused.Withdrawal)]
		if !r.CodeRefused.Expired {
			k.Tries++
			break
		}
		k.Issue, k.IssuedUs, k.Stale, k.Renewed = k.Issue+1, r.TimeUs, false, false
		w.mail(r.TimeUs, *k)
	case event.KindMailed:
		w.mails = slices.DeleteFunc(w.mails, func(m Mail) bool { return m.ID == r.Mailed.ID })
	case event.KindHalt:
		w.halted[r.Pair] = r.Halt.Halted
	case event.KindFreeze, event.KindToldFreeze:
		w.frozen[r.Freeze.Account] = r.Freeze.Frozen
	case event.KindMaintenance:
		if w.maintenance.On && !r.Maintenance.On {
			w.maintainedUs = r.TimeUs
		}
		w.maintenance = r.Maintenance
	case event.KindHistory:
		w.begin(r)
	case event.KindFees:
		f := &r.Fees
		if w.own[f.Account] == nil {
			w.own[f.Account] = map[uint16]FeeRates{}
		}
		delete(w.own[f.Account], r.Pair)
		if f.Own {
			w.own[f.Account][r.Pair] = FeeRates{Maker: f.Maker, Taker: f.Taker}
		}
	default:
		w.set(r)
	}
}

func (w *world) revoke(key uint32) {
	w.revoked[key] = true
	delete(w.nonces, key)
}

// lose tells an account once that keys are lost, unless that mail waits still.
func (w *world) lose(timeUs int64, account uint32) {
	waits := slices.ContainsFunc(w.mails, func(m Mail) bool {
		return m.Change.Account == account && m.Change.What == KeysLost
	})
	if to := w.emails[account]; to != "" && !waits {
		w.lastMail++
		w.mails = append(w.mails, Mail{ID: w.lastMail, TimeUs: timeUs,
			Change: AccountChange{Account: account, To: to, What: KeysLost}})
		w.crowdOut(account, true)
	}
}

func (w *world) ask(r *event.Record) {
	k := &r.Withdrawal
	w.use(k.Key, k.Nonce)
	w.lastWithdrawal = max(w.lastWithdrawal, k.ID)
	made := Withdrawal{ID: k.ID, Account: k.Account, Currency: k.Currency, Amount: k.Amount,
		Status: event.WithdrawalNew, TimeUs: r.TimeUs, Address: k.Address,
		ClientID: k.ClientID, Issue: 1, IssuedUs: r.TimeUs}
	w.name(k)
	w.withdrawals = append(w.withdrawals, made)
	slices.SortFunc(w.withdrawals, func(a, b Withdrawal) int { return cmp.Compare(a.ID, b.ID) })
	w.mail(r.TimeUs, made)
}

func (w *world) adjust(r *event.Record) {
	j := &r.Adjusted
	w.lastWithdrawal = max(w.lastWithdrawal, j.ID)
	w.name(&event.Withdrawal{ID: j.ID, Account: j.Account, ClientID: j.ClientID})
	w.adjusted[j.Currency] = w.adjusted[j.Currency].Add(j.Amount.Balance())
	w.ended = &Withdrawal{ID: j.ID, Account: j.Account, Currency: j.Currency, Amount: j.Amount,
		Status: event.WithdrawalAdjusted, TimeUs: r.TimeUs, Details: j.Reason,
		ClientID: j.ClientID}
}

// name keeps the client id of a withdrawal.
func (w *world) name(k *event.Withdrawal) {
	if k.ClientID.IsZero() {
		return
	}
	if w.named[k.Account] == nil {
		w.named[k.Account] = map[event.ClientID]uint64{}
	}
	w.named[k.Account][k.ClientID] = k.ID
}

// set keeps an account's settings and switches.
func (w *world) set(r *event.Record) {
	switch r.Kind {
	case event.KindAccount:
		w.emails[r.Account.ID] = r.Account.Email
	case event.KindEmail:
		w.readdress(r)
	case event.KindAccountClosed:
		w.close(r)
	case event.KindSettings:
		w.use(r.Settings.Key, r.Settings.Nonce)
		w.selfTrade[r.Settings.Account] = r.Settings.SelfTrade
	case event.KindSwitch:
		w.use(r.Switch.Key, r.Switch.Nonce)
		w.arm(r.Switch)
	}
}

// readdress gives an account another e-mail address: both are told, and the codes are void.
func (w *world) readdress(r *event.Record) {
	m := &r.Email
	for i := range w.withdrawals {
		if k := &w.withdrawals[i]; k.Account == m.Account {
			k.Stale, k.Renewed = k.Status == event.WithdrawalNew, false
			w.useless(k.ID)
		}
	}
	for _, to := range []string{w.emails[m.Account], m.Address} {
		if to != "" {
			w.lastMail++
			what := formerAddress
			if to == m.Address {
				what = NewAddress
			}
			w.mails = append(w.mails, Mail{ID: w.lastMail, TimeUs: r.TimeUs,
				Change: AccountChange{m.Account, to, what, m.HeldUs}})
			w.crowdOut(m.Account, true)
		}
	}
	w.emails[m.Account], w.held[m.Account] = m.Address, m.HeldUs
}

// close closes an account.
func (w *world) close(r *event.Record) {
	account := r.AccountClosed.Account
	for key, of := range w.keys {
		if of == account {
			w.revoke(key)
		}
	}
	w.closed[account], w.frozen[account] = r.TimeUs, true
	delete(w.own, account)
}

// arm arms a switch anew, or ends it.
func (w *world) arm(armed event.Switch) {
	w.switches = slices.DeleteFunc(w.switches, func(old event.Switch) bool {
		return old.Key == armed.Key && old.Session == armed.Session
	})
	if armed.Nonce = 0; armed.Armed {
		w.switches = append(w.switches, armed)
	}
	slices.SortFunc(w.switches, func(a, b event.Switch) int {
		return cmp.Or(cmp.Compare(a.Account, b.Account), cmp.Compare(a.Key, b.Key),
			map[bool]int{true: 1, false: -1}[a.Session])
	})
}

// begin lets another history begin: codes are stale, but for those whose mails still wait.
func (w *world) begin(r *event.Record) {
	w.history = r.History
	for i := range w.withdrawals {
		k := &w.withdrawals[i]
		k.Stale, k.Renewed = k.Status == event.WithdrawalNew, false
	}
	for _, m := range slices.Clone(w.mails) {
		if m.Withdrawal.Status != event.WithdrawalNew {
			continue
		}
		k := &w.withdrawals[w.at(m.Withdrawal.ID)]
		k.Issue, k.IssuedUs, k.Stale, k.Renewed = k.Issue+1, r.TimeUs, false, true
		w.mail(r.TimeUs, *k)
	}
}

func (w *world) move(r *event.Record) {
	m := &r.WithdrawalMoved
	i := w.at(m.ID)
	k := w.withdrawals[i]
	k.Status, k.Details, k.Stale, k.Renewed = m.To, m.Details, false, false
	w.useless(k.ID)
	if m.To == event.WithdrawalVerified {
		w.withdrawals[i] = k
		return
	}
	w.withdrawals = slices.Delete(w.withdrawals, i, i+1)
	w.ended = &k
	switch m.To {
	case event.WithdrawalApproved:
		w.out[k.Currency] = w.out[k.Currency].Add(k.Amount.Balance())
	case event.WithdrawalRefused:
		w.mail(r.TimeUs, k)
	}
}

func (w *world) at(id uint64) int {
	return slices.IndexFunc(w.withdrawals, func(k Withdrawal) bool { return k.ID == id })
}

func (w *world) mail(timeUs int64, k Withdrawal) {
	w.useless(k.ID)
	w.lastMail++
	k.ClientID = event.ClientID{}
	w.mails = append(w.mails, Mail{ID: w.lastMail, TimeUs: timeUs, Withdrawal: k})
	w.crowdOut(k.Account, false)
}

// crowdOut takes the oldest mail of an account out, about an address or a refusal, if there are too
// many of these.
func (w *world) crowdOut(account uint32, changes bool) {
	most := map[bool]int{false: maxNotices, true: maxChanges}[changes]
	var notices []uint64
	for _, m := range w.mails {
		if m.Account() == account && m.Withdrawal.Status != event.WithdrawalNew &&
			(m.Change.Account != 0) == changes {
			notices = append(notices, m.ID)
		}
	}
	if len(notices) > most {
		w.mails = slices.DeleteFunc(w.mails, func(m Mail) bool { return m.ID == notices[0] })
	}
}

// useless takes the mail with the code of a withdrawal out.
func (w *world) useless(withdrawal uint64) {
	w.mails = slices.DeleteFunc(w.mails, func(m Mail) bool {
		return m.Withdrawal.ID == withdrawal && m.Withdrawal.Status == event.WithdrawalNew
	})
}

func mailsOf(s *State) (list []Mail) {
	for m := range s.MailsAfter(0) {
		list = append(list, *m)
	}
	return list
}

func (w *world) use(key uint32, nonce uint64) {
	if key != 0 && !w.revoked[key] {
		w.nonces[key] = max(w.nonces[key], nonce)
	}
}

// rates returns an account's in a pair: its own, or the usual ones.
func (w *world) rates(account uint32, pair uint16) FeeRates {
	if r, own := w.own[account][pair]; own {
		return r
	}
	return FeeRates{Maker: 100_000, Taker: 200_001}
}

func heldOf(s *State, currency uint16) (sum money.Balance) {
	for _, a := range s.Accounts() {
		sum = sum.Add(a.Wallet.Get(currency).Balance)
	}
	return sum
}

// differs returns the first difference between a state and this world, "" if there is none.
func (w *world) differs(s *State) string {
	for i, c := range s.Currencies() {
		n := uint16(i + 1)
		sum := heldOf(s, n)
		if c.Deposited != w.in[n] || c.Withdrawn != w.out[n] || c.Adjusted != w.adjusted[n] ||
			sum != w.in[n].Sub(w.out[n]).Sub(w.adjusted[n]) {
			return fmt.Sprintf("%s: %+v, all hold %v; in came %v, out went %v, adjusted %v", c.Code,
				c, sum, w.in[n], w.out[n], w.adjusted[n])
		}
	}
	for _, k := range s.Keys() {
		if k.Revoked != w.revoked[k.Number] {
			return fmt.Sprintf("key %d is revoked: %v, want %v", k.Number, k.Revoked,
				w.revoked[k.Number])
		}
		if k.Nonce != w.nonces[k.Number] {
			return fmt.Sprintf("key %d has used nonce %d, want %d", k.Number, k.Nonce,
				w.nonces[k.Number])
		}
	}
	if len(s.Withdrawals()) != len(w.withdrawals) || s.LastWithdrawal() != w.lastWithdrawal {
		return fmt.Sprintf("%d withdraws up to id %d, want %d up to %d", len(s.Withdrawals()),
			s.LastWithdrawal(), len(w.withdrawals), w.lastWithdrawal)
	}
	of := map[uint32][]Withdrawal{}
	for _, k := range w.withdrawals {
		if got := s.Withdrawal(k.ID); got == nil || *got != k || got != s.Withdrawals()[k.ID] {
			return fmt.Sprintf("withdraw %+v, want %+v", got, k)
		}
		of[k.Account] = append(of[k.Account], k)
	}
	if out := mailsOf(s); !slices.Equal(out, w.mails) {
		return fmt.Sprintf("the outbox is %+v, want %+v", out, w.mails)
	}
	if s.History() != w.history {
		return fmt.Sprintf("the history is %v, want %v", s.History(), w.history)
	}
	if s.Maintenance() != w.maintenance || s.Maintained() != w.maintainedUs {
		return fmt.Sprintf("maintenance is %+v, the last ended at %d us, want %+v and %d us",
			s.Maintenance(), s.Maintained(), w.maintenance, w.maintainedUs)
	}
	if what := w.differsInSettings(s); what != "" {
		return what
	}
	for _, p := range s.Pairs() {
		if p.Halted != w.halted[p.Number] {
			return fmt.Sprintf("the halt of %s is %v", p.Name, p.Halted)
		}
	}
	for account := range uint32(len(s.Accounts()) + 1) {
		if n := s.TradeCount(account); n != w.trades[account] {
			return fmt.Sprintf("account %d had %d trades, want %d", account, n, w.trades[account])
		}
	}
	return w.differsInAccounts(s, of)
}

// differsInAccounts returns the first difference in accounts; of has the pending withdrawals.
func (w *world) differsInAccounts(s *State, of map[uint32][]Withdrawal) string {
	for _, a := range s.Accounts() {
		if a.Frozen != w.frozen[a.ID] || !maps.Equal(a.Fees(), w.own[a.ID]) {
			return fmt.Sprintf("account %s is frozen: %v, with fees %v, want %v, %v", a.Name,
				a.Frozen, a.Fees(), w.frozen[a.ID], w.own[a.ID])
		}
		if a.Email != w.emails[a.ID] || a.HeldUs() != w.held[a.ID] ||
			a.ClosedUs() != w.closed[a.ID] {
			return fmt.Sprintf("account %s has the address %q, is held until %d, and was closed "+
				"at %d, want %q, %d, %d", a.Name, a.Email, a.HeldUs(), a.ClosedUs(),
				w.emails[a.ID], w.held[a.ID], w.closed[a.ID])
		}
		var own []Withdrawal
		for _, k := range a.Withdrawals() {
			own = append(own, *k)
			if s.Withdrawal(k.ID) != k {
				return fmt.Sprintf("withdraw %d is not what account %s has", k.ID, a.Name)
			}
		}
		if !slices.Equal(own, of[a.ID]) {
			return fmt.Sprintf("account %s has %+v pending, want %+v", a.Name, own, of[a.ID])
		}
	}
	return ""
}

// differsInSettings returns the first difference in settings and switches.
func (w *world) differsInSettings(s *State) string {
	var switches []event.Switch
	for _, a := range s.Accounts() {
		if switches = append(switches, a.Switches()...); a.SelfTrade() != w.selfTrade[a.ID] {
			return fmt.Sprintf("account %s has the self-trade mode %d", a.Name, a.SelfTrade())
		}
	}
	if !slices.Equal(switches, w.switches) {
		return fmt.Sprintf("armed are %+v, want %+v", switches, w.switches)
	}
	return ""
}
