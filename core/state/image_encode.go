package state

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"math"
	"slices"

	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/trading"
	"exchange/core/wire"
)

// The image of a state is a header with the history's id, then currencies, accounts, keys, pending
// withdrawals, mails, maintenance, and pairs with their markets, books and stops. A list is a count
// and that many entries, in order of their numbers. Numbers are uvarints, and texts have a length
// prefix. Derived indexes (names, open orders by account) are not stored.
const (
	imageMagic = "exchange state\n"
	// imageVersion is the version that this program writes, and the only one that it reads. Never
	// reuse a number.
	imageVersion = 15
)

// pieceBytes is the size from which a piece of an image is full: some hundred microseconds of work.
const pieceBytes = 64 << 10

// Image yields the image of the whole state, piece by piece, until yield returns false. Equal
// states have equal images. The state must not change before the last piece. The receiver owns each
// piece.
func (s *State) Image(yield func(piece []byte) bool) { s.image(pieceBytes, yield) }

// image is Image with pieces of at least size bytes.
func (s *State) image(size int, yield func(piece []byte) bool) {
	w := writer{size: size, yield: yield}
	if s.write(&w); !w.done {
		yield(w.buf)
	}
}

// AppendTo appends the image of the whole state to dst.
func (s *State) AppendTo(dst []byte) []byte {
	w := writer{buf: dst, size: math.MaxInt}
	s.write(&w)
	return w.buf
}

// write writes the image, until the receiver stops.
func (s *State) write(w *writer) {
	if w.begin(s); w.done {
		return
	}
	w.uint(uint64(len(s.pairs)))
	for _, p := range s.pairs {
		w.market(p)
		if w.orders(p, s.accounts); w.done {
			return
		}
		if w.stops(p, s.accounts); w.done {
			return
		}
	}
}

// begin writes the image up to its pairs.
func (w *writer) begin(s *State) {
	w.buf = append(append(w.buf, imageMagic...), imageVersion)
	w.counters(s)
	w.uint(uint64(len(s.accounts)))
	for _, a := range s.accounts {
		w.account(a)
		w.uint(s.tradeCounts[a.ID])
		if w.closedIDs(a); w.over() {
			return
		}
	}
	w.uint(uint64(len(s.keys)))
	for _, k := range s.keys {
		if w.key(k); w.over() {
			return
		}
	}
	if w.withdrawals(s); w.done {
		return
	}
	w.maintenance(s)
}

func (w *writer) counters(s *State) {
	w.uint(s.seq, uint64(s.timeUs), s.lastOrder, s.lastTrade, s.depositCount, s.lastWithdrawal,
		s.lastMail, s.tradeCounts[0])
	w.buf = append(w.buf, s.history[:]...)
	w.uint(uint64(len(s.currencies)))
	for i := range s.currencies {
		c := &s.currencies[i]
		w.text(c.Code)
		w.balance(c.Deposited, c.Withdrawn, c.Adjusted)
	}
}

func (w *writer) maintenance(s *State) {
	w.buf = append(w.buf, s.maintenance.Mode())
	w.text(s.maintenance.Message)
	w.uint(uint64(s.maintainedUs))
}

// Hash returns a digest of the whole state: equal for equal states, and only for them.
func (s *State) Hash() (digest [sha256.Size]byte) {
	h := sha256.New()
	for piece := range s.Image {
		h.Write(piece)
	}
	h.Sum(digest[:0])
	return digest
}

// A writer writes an image.
type writer struct {
	buf   []byte // present piece
	size  int    // of a full piece, bytes
	yield func([]byte) bool
	done  bool // the receiver stopped
}

// over ends an entry, and the piece if it is full. It reports whether the receiver stopped.
func (w *writer) over() bool {
	if len(w.buf) >= w.size && !w.done {
		w.done = !w.yield(w.buf)
		w.buf = make([]byte, 0, cap(w.buf))
	}
	return w.done
}

func (w *writer) uint(vs ...uint64) {
	for _, v := range vs {
		w.buf = binary.AppendUvarint(w.buf, v)
	}
}

func (w *writer) text(s string) {
	w.uint(uint64(len(s)))
	w.buf = append(w.buf, s...)
}

func (w *writer) bool(b bool) {
	if b {
		w.buf = append(w.buf, 1)
	} else {
		w.buf = append(w.buf, 0)
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
	w.uint(a.Closed, a.lastEvent)
	w.bool(a.Frozen)
	fees := a.Fees()
	w.uint(uint64(len(fees)))
	for _, pair := range slices.Sorted(maps.Keys(fees)) {
		f := fees[pair]
		w.uint(uint64(pair), uint64(f.Maker), uint64(f.Taker))
	}
	w.uint(uint64(a.SelfTrade()), uint64(len(a.Switches())))
	for i := range a.Switches() {
		w.armed(&a.Switches()[i])
	}
	w.withdrawalIDs(a.WithdrawalIDs())
	o := a.Operated()
	w.buf = wire.AppendValue(w.buf, &o)
}

// closedIDs writes the client order ids of closed orders. They may be many, so each may end a
// piece.
func (w *writer) closedIDs(a *Account) {
	w.uint(uint64(a.ClientIDs.ClosedLen()))
	last := int64(0)
	for id := range a.ClientIDs.Closed {
		w.buf = binary.BigEndian.AppendUint64(w.buf, id.Hash)
		w.uint(id.Order, uint64(id.Closed-last))
		if last = id.Closed; w.over() {
			return
		}
	}
}

// withdrawalIDs writes the client ids of withdrawals, including pending ones.
func (w *writer) withdrawalIDs(ids *WithdrawalIDs) {
	w.uint(uint64(ids.Len()))
	for i := range ids.list {
		w.uint(ids.list[i].number)
		w.text(ids.list[i].id.String())
	}
}

// armed writes a switch of the present account.
func (w *writer) armed(s *event.Switch) {
	w.uint(uint64(s.Key))
	w.bool(s.Session)
	w.uint(uint64(s.DueUs), uint64(s.Seconds), uint64(s.Pair), uint64(s.Side))
	w.text(s.Prefix.String())
}

func (w *writer) key(k *Key) {
	w.uint(uint64(k.Account))
	w.text(k.Key.Key)
	if w.bool(k.Revoked); k.Revoked {
		return
	}
	w.uint(uint64(k.Permissions), uint64(len(k.Allow)))
	for _, a := range k.Allow {
		w.text(a)
	}
	w.uint(k.SealedBy)
	w.text(string(k.Sealed))
	if w.uint(uint64(k.NonceWindow)); k.NonceWindow == 0 {
		w.uint(k.Nonce)
		return
	}
	w.uint(uint64(k.Used.count()))
	for nonce := range k.Used.All() {
		w.uint(nonce)
	}
}

func (w *writer) withdrawals(s *State) {
	w.uint(uint64(len(s.withdrawals)))
	for _, id := range slices.Sorted(maps.Keys(s.withdrawals)) {
		if w.withdrawal(s.withdrawals[id]); w.over() {
			return
		}
	}
	w.uint(uint64(s.Mails()))
	for m := range s.MailsAfter(0) {
		w.uint(m.ID, uint64(m.TimeUs))
		if w.mail(m); w.over() {
			return
		}
	}
}

// mail writes the content of a mail.
func (w *writer) mail(m *Mail) {
	change := &m.Change
	if w.bool(change.Account != 0); change.Account == 0 {
		w.withdrawal(&m.Withdrawal)
		return
	}
	w.uint(uint64(change.Account))
	w.text(change.To)
	w.buf = append(w.buf, byte(change.Kind))
	w.uint(uint64(change.HoldEndsUs))
}

func (w *writer) withdrawal(d *Withdrawal) {
	w.uint(d.ID, uint64(d.Account), uint64(d.Currency), uint64(d.Amount), uint64(d.Status),
		uint64(d.TimeUs))
	w.text(d.Address)
	w.text(d.Details)
	w.uint(uint64(d.Issue), uint64(d.IssuedUs), uint64(d.Tries))
	w.bool(d.Stale)
	w.bool(d.Renewed)
}

// market writes a pair without its orders.
func (w *writer) market(p *Pair) {
	w.text(p.Name)
	w.uint(uint64(p.Base), uint64(p.Quote), p.lastOrder, p.lastTrade, uint64(p.timeUs))
	w.bool(p.Halted)
	w.buf = p.Market.AppendTo(w.buf)
	w.uint(uint64(p.Book.Len()))
}

func (w *writer) orders(p *Pair, accounts []*Account) {
	for o := range p.Book.Open(nil) {
		x := p.Instructed(o.ID)
		if w.order(&o.Order, x, accounts); x != nil {
			w.uint(uint64(o.Hidden))
		}
		if w.over() {
			return
		}
	}
}

// hasInstructions is a flag beside the side of an order.
const hasInstructions = 1 << 2

// order writes an open order with its client order id and instructions.
func (w *writer) order(o *trading.Order, x *trading.Instructed, accounts []*Account) {
	flags := uint64(o.Side)
	if x != nil {
		flags |= hasInstructions
	}
	w.uint(flags, o.ID, uint64(o.Account), uint64(o.Price), uint64(o.Amount), uint64(o.Remaining),
		uint64(o.TimeUs))
	id := accounts[o.Account-1].ClientIDs.Of(o.ID)
	if w.text(id.String()); x != nil {
		w.buf = x.Append(w.buf)
	}
}

// Flags of a stop.
const (
	stopQueued = 1 << iota
	stopRests
)

// stops writes the orders that wait for a trigger. For one that also rests in the book it writes
// the id alone.
func (w *writer) stops(p *Pair, accounts []*Account) {
	w.uint(uint64(p.Stops.Len()))
	for stop := range p.Stops.All(nil) {
		flags := uint64(0)
		if stop.Queued {
			flags |= stopQueued
		}
		if stop.InBook {
			w.uint(flags|stopRests, stop.Order.ID)
		} else {
			w.uint(flags)
			w.order(&stop.Order, p.Instructed(stop.Order.ID), accounts)
		}
		if w.over() {
			return
		}
	}
}
