package state

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"exchange/core/event"
	"exchange/core/ledger"
	"exchange/core/matching"
	"exchange/core/money"
)

// The image of a state: a head, then currencies, accounts, keys, references and pairs with their
// books, each as a count and that many entries, in order of their numbers. Numbers are uvarints,
// texts have their length before them. What follows from the rest (names, open orders by account)
// is not stored.
const (
	imageMagic   = "exchange state\n"
	imageVersion = 1
)

// ErrImage is wrapped by every error of Decode.
var ErrImage = errors.New("damaged or unknown snapshot")

// AppendTo writes the whole state behind dst. Equal states have equal images.
func (s *State) AppendTo(dst []byte) []byte {
	w := writer(append(append(dst, imageMagic...), imageVersion))
	w.uint(s.seq, uint64(s.timeUs), s.lastOrder, s.lastTrade, s.lastDeposit)
	w.uint(uint64(len(s.currencies)))
	for i := range s.currencies {
		c := &s.currencies[i]
		w.text(c.Code)
		w.balance(c.Deposited, c.Withdrawn)
	}
	w.uint(uint64(len(s.accounts)))
	for _, a := range s.accounts {
		w.account(a)
	}
	w.uint(uint64(len(s.keys)))
	for _, k := range s.keys {
		w.key(k)
	}
	w.references(s.references)
	w.uint(uint64(len(s.pairs)))
	for _, p := range s.pairs {
		w.pair(p, s.accounts)
	}
	return w
}

// Hash is a digest of the whole state: equal for equal states, and only for them.
func (s *State) Hash() [sha256.Size]byte { return sha256.Sum256(s.AppendTo(nil)) }

type writer []byte

func (w *writer) uint(vs ...uint64) {
	for _, v := range vs {
		*w = binary.AppendUvarint(*w, v)
	}
}

func (w *writer) text(s string) {
	w.uint(uint64(len(s)))
	*w = append(*w, s...)
}

func (w *writer) bool(b bool) {
	if b {
		*w = append(*w, 1)
	} else {
		*w = append(*w, 0)
	}
}

func (w *writer) balance(bs ...money.Balance) {
	for _, b := range bs {
		hi, lo := b.Bits()
		w.uint(lo, hi)
	}
}

func (w *writer) account(a *Account) {
	w.text(a.Name)
	w.text(a.Email)
	w.uint(uint64(len(a.Wallet.Holdings())))
	for _, h := range a.Wallet.Holdings() {
		w.uint(uint64(h.Currency))
		w.balance(h.Balance, h.Reserve)
	}
	closed, past := a.ClientIDs.State()
	w.uint(closed, uint64(len(past)))
	for _, p := range past {
		w.text(p.ID.String())
		w.uint(p.Order, p.At)
	}
}

func (w *writer) key(k *Key) {
	w.uint(uint64(k.Account))
	w.text(k.Key.Key)
	w.uint(uint64(k.Permissions), uint64(len(k.Allow)))
	for _, a := range k.Allow {
		w.text(a)
	}
	w.uint(k.SealedBy)
	w.text(string(k.Sealed))
	w.uint(k.Nonce)
	w.bool(k.Revoked)
}

// references are written in the order of their deposits, whose ids are dense.
func (w *writer) references(m map[string]Reference) {
	names := make([]string, len(m))
	for name, r := range m {
		names[r.Deposit-1] = name
	}
	w.uint(uint64(len(names)))
	for _, name := range names {
		r := m[name]
		w.text(name)
		w.uint(uint64(r.Account), uint64(r.Currency), uint64(r.Amount))
	}
}

func (w *writer) pair(p *Pair, accounts []*Account) {
	w.text(p.Name)
	w.uint(uint64(p.Base), uint64(p.Quote), p.lastOrder, p.lastTrade, uint64(p.timeUs))
	w.uint(p.Market.UpdateID, uint64(p.Market.TimeUs))
	w.uint(uint64(p.Book.Len()))
	for _, side := range [...]matching.Side{matching.Buy, matching.Sell} {
		for o := range p.Book.Orders(side) {
			w.uint(uint64(o.Side), o.ID, uint64(o.Account), uint64(o.Price), uint64(o.Amount), uint64(o.Remaining), uint64(o.TimeUs))
			id := accounts[o.Account-1].ClientIDs.Of(o.ID)
			w.text(id.String())
		}
	}
}

// Decode is the inverse of AppendTo.
func Decode(image []byte) (s *State, err error) {
	head := len(imageMagic) + 1
	if len(image) < head || !bytes.HasPrefix(image, []byte(imageMagic)) || image[head-1] != imageVersion {
		return nil, fmt.Errorf("%w: it does not begin as a snapshot of version %d", ErrImage, imageVersion)
	}
	defer func() { // a well-formed image of an impossible book makes the book panic
		if p := recover(); p != nil {
			s, err = nil, fmt.Errorf("%w: %v", ErrImage, p)
		}
	}()
	r := reader{b: image[head:]}
	s = New()
	s.seq, s.timeUs, s.lastOrder, s.lastTrade, s.lastDeposit = r.uint(), int64(r.uint()), r.uint(), r.uint(), r.uint()
	for range r.count() {
		s.currencies = append(s.currencies, Currency{Code: r.text(), Deposited: r.balance(), Withdrawn: r.balance()})
	}
	for range r.count() {
		a := r.account()
		a.ID = uint32(len(s.accounts) + 1)
		s.accounts = append(s.accounts, a)
		s.names[a.Name] = a.ID
	}
	for range r.count() {
		k := r.key()
		k.Number = uint32(len(s.keys) + 1)
		s.keys = append(s.keys, k)
		s.keyNames[k.Key.Key] = k.Number
		if a := s.Account(k.Account); a != nil {
			a.Keys = append(a.Keys, k.Number)
		} else {
			r.fail("a key of no account")
		}
	}
	for i := range r.count() {
		s.references[r.text()] = Reference{Deposit: uint64(i + 1), Account: r.u32(), Currency: r.u16(), Amount: money.Amount(r.uint())}
	}
	open := make([][]ledger.OpenOrder, len(s.accounts))
	for range r.count() {
		p := r.pair(s, open)
		p.Number = uint16(len(s.pairs) + 1)
		s.pairs = append(s.pairs, p)
	}
	if r.err == "" && len(r.b) != 0 {
		r.fail("bytes left over")
	}
	if r.err != "" {
		return nil, fmt.Errorf("%w: %s, %d bytes before its end", ErrImage, r.err, len(r.b))
	}
	for i, list := range open {
		slices.SortFunc(list, func(a, b ledger.OpenOrder) int {
			if a.ID < b.ID {
				return -1
			}
			return 1
		})
		for _, o := range list {
			s.accounts[i].Open.Add(o.ID, o.Pair)
		}
	}
	return s, nil
}

// A reader reads an image. At the first thing that does not fit it keeps why, and reads zeros.
type reader struct {
	b   []byte
	err string
}

func (r *reader) fail(why string) {
	if r.err == "" {
		r.err = why
	}
	r.b = nil
}

func (r *reader) uint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail("a number is cut off")
		return 0
	}
	r.b = r.b[n:]
	return v
}

// count is the number of entries that follow; each takes at least a byte.
func (r *reader) count() int {
	n := r.uint()
	if n > uint64(len(r.b)) {
		r.fail("more entries than bytes")
		return 0
	}
	return int(n)
}

func (r *reader) u16() uint16 {
	v := r.uint()
	if v > 1<<16-1 {
		r.fail("a number is too large")
	}
	return uint16(v)
}

func (r *reader) u32() uint32 {
	v := r.uint()
	if v > 1<<32-1 {
		r.fail("a number is too large")
	}
	return uint32(v)
}

func (r *reader) text() string {
	n := r.count()
	s := string(r.b[:n])
	r.b = r.b[n:]
	return s
}

func (r *reader) bool() bool { return r.uint() != 0 }

func (r *reader) balance() money.Balance {
	lo, hi := r.uint(), r.uint()
	return money.BalanceFromBits(hi, lo)
}

func (r *reader) clientID() event.ClientID {
	s := r.text()
	if s == "" {
		return event.ClientID{}
	}
	id, err := event.NewClientID(s)
	if err != nil {
		r.fail("a client order id of other characters")
	}
	return id
}

func (r *reader) account() *Account {
	a := &Account{Name: r.text(), Email: r.text()}
	for range r.count() {
		a.Wallet.Put(ledger.Holding{Currency: r.u16(), Balance: r.balance(), Reserve: r.balance()})
	}
	closed := r.uint()
	var past []ledger.ClosedID
	for range r.count() {
		past = append(past, ledger.ClosedID{ID: r.clientID(), Order: r.uint(), At: r.uint()})
	}
	a.ClientIDs.Restore(closed, past)
	return a
}

func (r *reader) key() *Key {
	k := &Key{}
	k.Account, k.Key.Key, k.Permissions = r.u32(), r.text(), uint8(r.uint())
	for range r.count() {
		k.Allow = append(k.Allow, r.text())
	}
	k.SealedBy, k.Sealed = r.uint(), []byte(r.text())
	k.Nonce, k.Revoked = r.uint(), r.bool()
	return k
}

func (r *reader) pair(s *State, open [][]ledger.OpenOrder) *Pair {
	p := &Pair{Name: r.text(), Base: r.u16(), Quote: r.u16(), Book: matching.New()}
	p.lastOrder, p.lastTrade, p.timeUs = r.uint(), r.uint(), int64(r.uint())
	p.Market.UpdateID, p.Market.TimeUs = r.uint(), int64(r.uint())
	number := uint16(len(s.pairs) + 1)
	for range r.count() {
		o := matching.Order{Side: matching.Side(r.uint()), ID: r.uint(), Account: r.u32(), Price: money.Price(r.uint()),
			Amount: money.Amount(r.uint()), Remaining: money.Amount(r.uint()), TimeUs: int64(r.uint())}
		id := r.clientID()
		a := s.Account(o.Account)
		if r.err != "" || a == nil {
			r.fail("an order of no account")
			return p
		}
		p.Book.Add(o)
		open[a.ID-1] = append(open[a.ID-1], ledger.OpenOrder{ID: o.ID, Pair: number})
		a.ClientIDs.Open(o.ID, id)
	}
	return p
}
