package spec

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"

	"exchange/core/event"
)

// An Account is a client's account.
type Account struct {
	ID         uint32
	Name       string
	Frozen     bool
	Freezes    int // number of freezes
	Email      string
	HoldEndsUs int64 // end of the time in which no money leaves it
	// ClosedUs is the time of its closing; 0: it is open.
	ClosedUs   int64
	emailHolds []int64 // ends of the holds that changes of its e-mail address began

	balances       []*big.Int // by currency-1
	versions       []version
	rates          map[uint16][]Rates          // by pair, the newest last
	clientIDs      map[event.ClientID][]uint64 // orders that used them, newest last
	closedIDs      []closedID                  // of its closed orders
	free           int                         // number of the oldest that no longer keep their id
	lastWithdrawal uint64
	modes          []mode // its setting for orders that name no mode
}

// KeptIDs bound the closed orders of an account that keep their client order ids: at least Newest,
// at most Most, and those between for SpanUs.
type KeptIDs struct {
	Newest, Most int
	SpanUs       int64
}

// A closedID is the client order id of a closed order.
type closedID struct {
	order   uint64
	id      event.ClientID
	seq     uint64 // of the record that closed it
	untilUs int64  // when the id is free, unless the order is one of the newest
}

// closeID records the close of an order with a client order id. Ids that are already free stay
// free. The clock of its pair may lag behind another pair's.
func (m *Exchange) closeID(o *Order, timeUs int64) {
	a := m.Accounts[o.Account-1]
	for kept := len(a.closedIDs) - a.free; kept >= m.KeptIDs.Newest && (kept >= m.KeptIDs.Most ||
		a.closedIDs[a.free].untilUs <= timeUs); kept-- {
		a.free++
	}
	e := closedID{o.ID, o.ClientID, m.Seq, (timeUs+999)/1000*1000 + m.KeptIDs.SpanUs}
	if n := len(a.closedIDs); n > 0 {
		e.untilUs = max(e.untilUs, a.closedIDs[n-1].untilUs)
	}
	a.closedIDs = append(slices.Clip(a.closedIDs), e)
}

// takenBy returns the order of an account that holds a client order id at a time; 0: none.
func (m *Exchange) takenBy(a *Account, id event.ClientID, timeUs int64) uint64 {
	list := a.clientIDs[id]
	if len(list) == 0 {
		return 0
	}
	newest := list[len(list)-1]
	if _, done := m.closed[newest]; done && !m.keeps(a, newest, len(a.closedIDs), a.free, timeUs) {
		return 0
	}
	return newest
}

// keeps reports whether a closed order of an account keeps its client order id at a time. n orders
// have closed, of which the oldest free ones no longer keep their ids.
func (m *Exchange) keeps(a *Account, order uint64, n, free int, timeUs int64) bool {
	i := slices.IndexFunc(a.closedIDs[free:n], func(e closedID) bool { return e.order == order })
	return i >= 0 && (n-free-i <= m.KeptIDs.Newest || timeUs < a.closedIDs[free+i].untilUs)
}

// MayRefuseID reports whether an order may be refused at a time because the order by holds its
// client order id: by was open at a sequence, was placed since, or kept its id then.
func (m *Exchange) MayRefuseID(a *Account, id event.ClientID, by, since uint64,
	timeUs int64) bool {
	if !a.HasTaken(id, by) {
		return false
	}
	c, done := m.Closed(by)
	if !done || c.Seq > since {
		return true
	}
	n := len(a.closedIDs)
	for a.closedIDs[n-1].seq > since {
		n--
	}
	return m.keeps(a, by, n, max(0, n-m.KeptIDs.Most), timeUs)
}

// KeptBy returns the client order ids of an account, sorted, that closed orders keep at a time.
func (m *Exchange) KeptBy(a *Account, timeUs int64) (ids []event.ClientID) {
	for _, e := range a.closedIDs {
		if m.takenBy(a, e.id, timeUs) == e.order {
			ids = append(ids, e.id)
		}
	}
	slices.SortFunc(ids, func(a, b event.ClientID) int {
		return cmp.Compare(a.String(), b.String())
	})
	return ids
}

// Uses returns the number of the account's orders that used a client order id.
func (a *Account) Uses(id event.ClientID) int { return len(a.clientIDs[id]) }

// HasTaken reports whether an order of the account used a client order id.
func (a *Account) HasTaken(id event.ClientID, order uint64) bool {
	return slices.Contains(a.clientIDs[id], order)
}

// A Key is an API key.
type Key struct {
	Number  uint32
	Name    string
	Account uint32
	Nonce   uint64 // the highest that a command has used
	Revoked bool
	// Parallel is the number of nonces that a key for parallel use keeps, and Kept those of its
	// records; 0: its nonces grow.
	Parallel int
	Kept     []uint64

	floor    uint64 // Nonce when the engine started
	sealedBy uint64 // the server's key that seals its secret
}

// A KeyNonce is a nonce with its key.
type KeyNonce struct {
	Key   uint32
	Nonce uint64
}

// Account returns the account of a name, or nil.
func (m *Exchange) Account(name string) *Account {
	for _, a := range m.Accounts {
		if a.Name == name {
			return a
		}
	}
	return nil
}

// Key returns the key of a name, or nil.
func (m *Exchange) Key(name string) *Key {
	for _, k := range m.Keys {
		if k.Name == name {
			return k
		}
	}
	return nil
}

func (m *Exchange) applyAccount(a *event.Account) error {
	if int(a.ID) != len(m.Accounts)+1 ||
		slices.ContainsFunc(m.Accounts, func(o *Account) bool { return o.Name == a.Name }) {
		return fmt.Errorf("account %d, %s, after %d others", a.ID, a.Name, len(m.Accounts))
	}
	m.Accounts = append(m.Accounts,
		&Account{ID: a.ID, Name: a.Name, Email: a.Email, clientIDs: map[event.ClientID][]uint64{}})
	if a.Name == m.FeeAccount {
		m.feeAccount = m.Accounts[a.ID-1]
	}
	return nil
}

func (m *Exchange) applyKey(k *event.Key) error {
	if old := m.Key(k.Key); old != nil && old.Number == k.Number &&
		old.Account == k.Account && old.Parallel == int(k.NonceWindow) &&
		old.sealedBy != k.SealedBy {
		old.sealedBy = k.SealedBy // its secret is sealed again
		return nil
	}
	if int(k.Number) != len(m.Keys)+1 || m.Key(k.Key) != nil || int(k.Account) > len(m.Accounts) ||
		m.Accounts[k.Account-1].ClosedUs != 0 {
		return fmt.Errorf("key %d, %s, of account %d after %d others", k.Number, k.Key, k.Account,
			len(m.Keys))
	}
	m.Keys = append(m.Keys, &Key{Number: k.Number, Name: k.Key, Account: k.Account,
		Parallel: int(k.NonceWindow), sealedBy: k.SealedBy})
	return nil
}

// applyRevoked revokes a key. The owner of lost keys is notified, unless that mail is still
// pending.
func (m *Exchange) applyRevoked(e *event.KeyRevoked, timeUs int64) error {
	k := m.Keys[e.Number-1]
	if k.Revoked {
		return fmt.Errorf("key %s is revoked twice", k.Name)
	}
	k.Revoked = true
	a := m.Accounts[k.Account-1]
	if e.Lost && a.Email != "" && !slices.ContainsFunc(m.Mails, func(x Mail) bool {
		return x.Account == a.ID && x.About == keysLost
	}) {
		m.send(Mail{TimeUs: timeUs, Account: a.ID, About: keysLost, To: a.Email})
	}
	return nil
}

// takeNonce uses the nonce of a command that left a record. A nonce is valid for one command, and
// must be above all that the engine found at its start, except for keys for parallel use.
func (m *Exchange) takeNonce(kind event.Kind, key, account uint32, nonce uint64) error {
	if key == 0 || kind == event.KindSwitchCancel {
		return nil
	}
	k := m.Keys[key-1]
	if k.Account != account {
		return fmt.Errorf("key %s is not of account %d", k.Name, account)
	}
	cancels := kind == event.KindCancel || kind == event.KindWithdrawalStatus
	if err := m.mayCommand(k, cancels); err != nil || nonce == 0 { // a login replaces it
		return err
	}
	if nonce <= k.floor && k.Parallel == 0 {
		return fmt.Errorf("nonce %d of key %s, which had used %d before the engine started", nonce,
			k.Name, k.floor)
	}
	at := KeyNonce{key, nonce}
	m.records[at]++
	if before, twice := m.usedNonces[at]; twice && !m.CancelAlls[at] &&
		m.records[at] > m.Batches[at] {
		return fmt.Errorf("nonce %d of key %s was used before, for a %v", nonce, k.Name, before)
	}
	m.usedNonces[at] = kind
	k.use(nonce)
	return nil
}

// use adds the nonce of a record.
func (k *Key) use(nonce uint64) {
	k.Nonce = max(k.Nonce, nonce)
	if k.Parallel > 0 && nonce > 0 {
		k.Kept = greatest(append(k.Kept, nonce), k.Parallel)
	}
}

// greatest returns the few greatest distinct numbers, in ascending order.
func greatest(list []uint64, few int) []uint64 {
	list = slices.Compact(slices.Sorted(slices.Values(list)))
	return list[max(0, len(list)-few):]
}

// MayRefuse reports whether a command or a read of a key may be refused for its nonce. reads are
// the nonces of reads, which leave no record; a read's own is not among them.
func (k *Key) MayRefuse(nonce uint64, reads []uint64) bool {
	if k.Parallel == 0 {
		return nonce <= k.Nonce || slices.ContainsFunc(reads, func(n uint64) bool {
			return nonce <= n
		})
	}
	kept := greatest(slices.Concat(k.Kept, reads), k.Parallel)
	return nonce == 0 || slices.Contains(k.Kept, nonce) || slices.Contains(reads, nonce) ||
		len(kept) == k.Parallel && nonce < kept[0]
}

// IsUsed reports whether a record of a command used a nonce.
func (m *Exchange) IsUsed(at KeyNonce) bool {
	_, taken := m.usedNonces[at]
	return taken
}

// applyRefusal uses the nonce of a refused command. A command that is refused for its nonce, or
// before the wallet checks its nonce, may repeat one of a command or a read.
func (m *Exchange) applyRefusal(f *event.Refusal) error {
	if f.Nonce == 0 && f.Key != 0 { // of a session
		return m.mayCommand(m.Keys[f.Key-1], mayRefuseCancel(f.Reason))
	}
	if f.Reason != event.RefusedNonce && f.Reason != event.RefusedKey {
		kind := event.KindRefusal
		if mayRefuseCancel(f.Reason) {
			kind = event.KindCancel
		}
		return m.takeNonce(kind, f.Key, f.Account, f.Nonce)
	}
	if f.Key == 0 {
		return nil
	}
	k := m.Keys[f.Key-1]
	if f.Reason == event.RefusedNonce && !k.MayRefuse(f.Nonce, m.ReadNonces[f.Key]) {
		return fmt.Errorf("nonce %d of key %s is refused; its records had up to %d, and reads %v",
			f.Nonce, k.Name, k.Nonce, m.ReadNonces[f.Key])
	}
	k.use(f.Nonce)
	return m.mayCommand(k, true)
}

// mayRefuseCancel reports whether a refusal's reason may be that of a cancel.
func mayRefuseCancel(reason uint8) bool {
	switch reason {
	case event.RefusedNonce, event.RefusedKey, event.RefusedFrozen, event.RefusedNotOpen,
		event.RefusedNoOrders, event.RefusedWithdrawal:
		return true
	}
	return false
}

// mayCommand returns an error during maintenance, unless the command may be a cancel, and clients
// may cancel. Maintenance begins when no client's command is in flight.
func (m *Exchange) mayCommand(k *Key, cancels bool) error {
	if m.Maintenance.On && !(cancels && m.Maintenance.Cancels) {
		return fmt.Errorf("a command of key %s during maintenance, in which clients may "+
			"cancel: %v", k.Name, m.Maintenance.Cancels)
	}
	return nil
}
