package spec

import (
	"fmt"
	"maps"
	"slices"

	"exchange/core/event"
)

// A Withdrawal is an owner's request for money.
type Withdrawal struct {
	event.Withdrawal
	Seq    uint64 // sequence of its record
	Status uint8
	Was    uint8  // the status before
	Moved  uint64 // sequence of the record of its newest status; 0: it is new
	Tries  int    // wrong codes
	Issue  int    // number of its newest code, from 1
	TimeUs int64

	FirstIssue int // number of the first code that is good in the newest history

	IssuedUs int64 // time of its newest code
	Stale    bool  // its code is of an earlier history, or of an earlier e-mail address
	Renewed  bool  // the history renewed its code, while the mail was pending
	ClosedUs int64 // when it closed; 0: it is pending
	Details  string
}

// Pending reports whether its money is reserved.
func (w *Withdrawal) Pending() bool {
	return w.Status == event.WithdrawalNew || w.Status == event.WithdrawalVerified
}

// follows are the allowed transitions between statuses.
var follows = map[[2]uint8]bool{
	{event.WithdrawalNew, event.WithdrawalVerified}:       true,
	{event.WithdrawalNew, event.WithdrawalCancelled}:      true,
	{event.WithdrawalNew, event.WithdrawalRefused}:        true,
	{event.WithdrawalVerified, event.WithdrawalApproved}:  true,
	{event.WithdrawalVerified, event.WithdrawalRefused}:   true,
	{event.WithdrawalVerified, event.WithdrawalCancelled}: true,
}

// MayMove reports whether a withdrawal may get a status next.
func (w *Withdrawal) MayMove(to uint8) bool { return follows[[2]uint8{w.Status, to}] }

func (m *Exchange) applyWithdrawal(r *event.Record) error {
	w := r.Withdrawal
	a := m.Accounts[w.Account-1]
	if err := m.takeNonce(r.Kind, w.Key, w.Account, w.Nonce); err != nil {
		return err
	}
	if err := m.mayLeave(w.Account, r.TimeUs); err != nil {
		return err
	}
	if m.Withdrawals[w.ID] != nil || w.ID <= a.lastWithdrawal || w.Amount <= 0 {
		return fmt.Errorf("withdrawal %d of %v, after withdrawal %d of %s, or its id is used twice",
			w.ID, w.Amount, a.lastWithdrawal, a.Name)
	}
	if other := m.WithdrawalNamed(a, w.ClientID); other != 0 {
		return fmt.Errorf("withdrawal %d has the client id %v of withdrawal %d", w.ID, w.ClientID,
			other)
	}
	a.lastWithdrawal = w.ID
	m.Withdrawals[w.ID] = &Withdrawal{Withdrawal: w, Seq: m.Seq, Status: event.WithdrawalNew,
		Issue: 1, TimeUs: r.TimeUs, IssuedUs: r.TimeUs}
	m.sendCode(m.Withdrawals[w.ID], r.TimeUs)
	m.touched = append(m.touched, w.Account)
	return nil
}

// WithdrawalNamed returns the withdrawal that holds a client id, among the account's pending ones
// and the newest 1,000 with an id; 0: none.
func (m *Exchange) WithdrawalNamed(a *Account, id event.ClientID) uint64 {
	kept := 1000
	for _, number := range slices.Backward(slices.Sorted(maps.Keys(m.Withdrawals))) {
		w := m.Withdrawals[number]
		if w.Account != a.ID || w.ClientID.IsZero() {
			continue
		}
		if kept--; w.ClientID == id && (kept >= 0 || w.Pending()) {
			return number
		}
	}
	return 0
}

func (m *Exchange) applyMove(r *event.Record) error {
	k := &r.WithdrawalStatus
	if err := m.takeNonce(r.Kind, k.Key, k.Account, k.Nonce); err != nil {
		return err
	}
	if k.Key != 0 && k.To != event.WithdrawalCancelled {
		if err := m.mayCommand(m.Keys[k.Key-1], false); err != nil {
			return err
		}
	}
	w := m.Withdrawals[k.ID]
	if w == nil || w.Account != k.Account || w.Currency != k.Currency || w.Amount != k.Amount ||
		!w.MayMove(k.To) {
		return fmt.Errorf("withdrawal %d goes to status %d, and is %+v", k.ID, k.To, w)
	}
	if k.To == event.WithdrawalVerified || k.To == event.WithdrawalApproved {
		if err := m.mayLeave(k.Account, r.TimeUs); err != nil {
			return err
		}
	}
	if k.To == event.WithdrawalVerified && m.isExpired(w, r.TimeUs) {
		return fmt.Errorf("withdrawal %d is verified at %d us, by a code of %d us", k.ID, r.TimeUs,
			w.IssuedUs)
	}
	if frozen := m.Accounts[w.Account-1].Frozen; !says(m, &k.DespiteFreeze,
		frozen && k.To == event.WithdrawalApproved) {
		return fmt.Errorf(
			"withdrawal %d goes to status %d, despite a freeze: %v; its account is frozen: %v",
			k.ID, k.To, k.DespiteFreeze, frozen)
	}
	w.Was, w.Status, w.Moved, w.Details = w.Status, k.To, m.Seq, k.Details
	w.Stale, w.Renewed = false, false
	m.dropCode(w)
	if k.To == event.WithdrawalRefused {
		m.send(Mail{TimeUs: r.TimeUs, Account: w.Account, About: Refusal, Withdrawal: *w})
	}
	if k.To == event.WithdrawalApproved {
		n := ofAmount(w.Amount)
		m.Accounts[w.Account-1].debit(w.Currency, n)
		m.supply[w.Currency-1].Sub(m.supply[w.Currency-1], n)
	}
	if !w.Pending() {
		w.ClosedUs = r.TimeUs
	}
	m.touched = append(m.touched, k.Account)
	return nil
}

// applyAdjusted takes money out of an account; the adjustment is listed among its withdrawals.
func (m *Exchange) applyAdjusted(r *event.Record) error {
	j := r.Adjusted
	a := m.Accounts[j.Account-1]
	if m.Withdrawals[j.ID] != nil || j.ID <= a.lastWithdrawal || j.Amount <= 0 ||
		r.Operator == "" || j.Reason == "" || j.ClientID.IsZero() {
		return fmt.Errorf("adjustment %+v of %q, after withdrawal %d of %s", j, r.Operator,
			a.lastWithdrawal, a.Name)
	}
	if other := m.WithdrawalNamed(a, j.ClientID); other != 0 {
		return fmt.Errorf("adjustment %d has the reference %v of withdrawal %d", j.ID, j.ClientID,
			other)
	}
	a.lastWithdrawal = j.ID
	m.Withdrawals[j.ID] = &Withdrawal{Withdrawal: event.Withdrawal{ID: j.ID, Account: j.Account,
		Currency: j.Currency, Amount: j.Amount, ClientID: j.ClientID}, Seq: m.Seq, Moved: m.Seq,
		Status: event.WithdrawalAdjusted, TimeUs: r.TimeUs, ClosedUs: r.TimeUs, Details: j.Reason}
	n := ofAmount(j.Amount)
	a.debit(j.Currency, n)
	m.supply[j.Currency-1].Sub(m.supply[j.Currency-1], n)
	m.touched = append(m.touched, j.Account)
	return nil
}

func (m *Exchange) applyRefusedCode(r *event.Record) error {
	c := &r.CodeRefused
	if err := m.takeNonce(event.KindCodeRefused, c.Key, c.Account, c.Nonce); err != nil {
		return err
	}
	w := m.Withdrawals[c.Withdrawal]
	if w == nil || w.Account != c.Account || w.Status != event.WithdrawalNew {
		return fmt.Errorf("a code for withdrawal %d, which is %+v", c.Withdrawal, w)
	}
	if expired := m.isExpired(w, r.TimeUs) || w.Renewed; !says(m, &c.Expired, expired) {
		return fmt.Errorf("the code of withdrawal %d, of %d us, has expired at %d us: %v, not %v",
			c.Withdrawal, w.IssuedUs, r.TimeUs, c.Expired, expired)
	}
	if c.Expired {
		m.renewCode(w, r.TimeUs, false)
	} else {
		w.Tries++
	}
	if !says(m, &c.Tries, uint32(w.Tries)) {
		return fmt.Errorf("withdrawal %d has had %d wrong codes, and the record counts %d", w.ID,
			w.Tries, c.Tries)
	}
	m.touched = append(m.touched, c.Account)
	return nil
}

// isExpired reports whether a withdrawal's code is too old or of an earlier history.
func (m *Exchange) isExpired(w *Withdrawal, timeUs int64) bool {
	return w.Stale || timeUs-w.IssuedUs > m.CodeValid.Microseconds()
}

// renewCode gives a withdrawal a new code, and mails it.
func (m *Exchange) renewCode(w *Withdrawal, timeUs int64, byHistory bool) {
	w.Issue++
	w.IssuedUs, w.Stale, w.Renewed = timeUs, false, byHistory
	m.sendCode(w, timeUs)
}

// applyHistory begins a history. The codes of the previous one expire, and those whose mails are
// pending are renewed.
func (m *Exchange) applyHistory(r *event.Record) error {
	id := r.History
	if id.IsZero() || id == m.History {
		return fmt.Errorf("history %v begins after %v", id, m.History)
	}
	m.History, m.HistorySeq = id, m.Seq
	for _, w := range m.Withdrawals {
		w.Stale, w.Renewed = w.Status == event.WithdrawalNew, false
		w.FirstIssue = w.Issue + 1
	}
	m.Renewed = 0
	for _, mail := range slices.Clone(m.Mails) {
		if mail.About == Code {
			m.Renewed++
			w := m.Withdrawals[mail.Withdrawal.ID]
			m.renewCode(w, r.TimeUs, true)
		}
	}
	return nil
}
