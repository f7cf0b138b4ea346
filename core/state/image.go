package state

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"exchange/core/event"
	"exchange/core/ledger"
	"exchange/core/money"
	"exchange/core/trading"
)

// The image of a state begins with a head that has the history's id. It goes on with currencies,
// accounts, keys, pending withdrawals, mails, maintenance, and pairs with their markets and books.
// A list is a count and that many entries, in order of their numbers. Numbers are uvarints, and
// texts have their length before them. Derived indexes (names, open orders by account) are not
// stored.
const (
	imageMagic   = "exchange state\n"
	imageVersion = 6
)

// ErrImage is wrapped by every error of Decode.
var ErrImage = errors.New("damaged or unknown snapshot")

// ErrImageVersion is wrapped, beside ErrImage, for an image of an unknown version.
var ErrImageVersion = errors.New("unknown version")

// pieceBytes is the size from which on a piece of an image is full: some hundred microseconds of
// work.
const pieceBytes = 64 << 10

// Image yields the image of the whole state, piece by piece, until yield returns false. Equal
// states have equal images. The state must not change before the last piece. Each piece is the
// receiver's.
func (s *State) Image(yield func(piece []byte) bool) { s.image(pieceBytes, yield) }

// image is Image with pieces that are full from size bytes on.
func (s *State) image(size int, yield func(piece []byte) bool) {
	w := writer{size: size, yield: yield}
	if s.write(&w); !w.left {
		yield(w.buf)
	}
}

// AppendTo writes the image of the whole state behind dst.
func (s *State) AppendTo(dst []byte) []byte {
	w := writer{buf: dst, size: math.MaxInt}
	s.write(&w)
	return w.buf
}

// write writes the image, until the receiver of its pieces has left.
func (s *State) write(w *writer) {
	w.buf = append(append(w.buf, imageMagic...), imageVersion)
	w.counters(s)
	w.uint(uint64(len(s.accounts)))
	for _, a := range s.accounts {
		w.account(a)
		if w.uint(s.trades[a.ID]); w.over() {
			return
		}
	}
	w.uint(uint64(len(s.keys)))
	for _, k := range s.keys {
		if w.key(k); w.over() {
			return
		}
	}
	if w.withdrawals(s); w.left {
		return
	}
	w.maintenance(s)
	w.uint(uint64(len(s.pairs)))
	for _, p := range s.pairs {
		w.market(p)
		if w.orders(p, s.accounts); w.left {
			return
		}
	}
}

// general writes what is no account, key or pair.
func (w *writer) general(s *State) {
	w.counters(s)
	w.withdrawals(s)
	w.maintenance(s)
}

func (w *writer) counters(s *State) {
	w.uint(s.seq, uint64(s.timeUs), s.lastOrder, s.lastTrade, s.deposits, s.lastWithdrawal,
		s.lastMail, s.trades[0])
	w.buf = append(w.buf, s.history[:]...)
	w.uint(uint64(len(s.currencies)))
	for i := range s.currencies {
		c := &s.currencies[i]
		w.text(c.Code)
		w.balance(c.Deposited, c.Withdrawn)
	}
}

func (w *writer) maintenance(s *State) {
	w.bool(s.maintenance.On)
	w.text(s.maintenance.Message)
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
	buf   []byte // the piece that is forming
	size  int    // from which on it is full
	yield func([]byte) bool
	left  bool // the receiver wants no more pieces
}

// over ends an entry, and the piece if that is full. It reports whether the receiver has left.
func (w *writer) over() bool {
	if len(w.buf) >= w.size && !w.left {
		w.left = !w.yield(w.buf)
		w.buf = make([]byte, 0, cap(w.buf))
	}
	return w.left
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
	closed, past := a.ClientIDs.State()
	w.uint(closed, uint64(len(past)))
	for _, p := range past {
		w.text(p.ID.String())
		w.uint(p.Order, p.At)
	}
	w.bool(a.Frozen)
	fees := a.Fees()
	w.uint(uint64(len(fees)))
	for _, pair := range slices.Sorted(maps.Keys(fees)) {
		f := fees[pair]
		w.uint(uint64(pair), uint64(f.Maker), uint64(f.Taker))
	}
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
	w.uint(k.Nonce)
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
		if w.withdrawal(&m.Withdrawal); w.over() {
			return
		}
	}
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
	for _, side := range [...]trading.Side{trading.Buy, trading.Sell} {
		for o := range p.Book.Orders(side) {
			w.uint(uint64(o.Side), o.ID, uint64(o.Account), uint64(o.Price), uint64(o.Amount),
				uint64(o.Remaining), uint64(o.TimeUs))
			id := accounts[o.Account-1].ClientIDs.Of(o.ID)
			if w.text(id.String()); w.over() {
				return
			}
		}
	}
}

// Decode reads a state that AppendTo wrote.
func Decode(image []byte) (s *State, err error) {
	head := len(imageMagic) + 1
	if len(image) < head || !bytes.HasPrefix(image, []byte(imageMagic)) {
		return nil, fmt.Errorf("%w: it does not begin as a snapshot", ErrImage)
	}
	if v := image[head-1]; v != imageVersion {
		return nil,
			fmt.Errorf(
				"%w: %w: it is of version %d and this program reads version %d; run the program "+
					"that wrote it",
				ErrImage, ErrImageVersion, v, imageVersion)
	}
	defer func() { // a well-formed image of an impossible book makes the book panic
		if p := recover(); p != nil {
			s, err = nil, fmt.Errorf("%w: %v", ErrImage, p)
		}
	}()
	r := reader{b: image[head:]}
	s = New()
	s.seq, s.timeUs, s.lastOrder, s.lastTrade = r.uint(), int64(r.uint()), r.uint(), r.uint()
	s.deposits = r.upTo(s.seq) // each is a record
	s.lastWithdrawal, s.lastMail, s.trades[0] = r.uint(), r.uint(), r.uint()
	copy(s.history[:], r.take(len(s.history)))
	for range r.entries {
		r.currency(s)
	}
	for range r.entries {
		r.account(s)
	}
	for range r.entries {
		r.key(s)
	}
	r.withdrawals(s)
	s.maintenance = event.Maintenance{On: r.bool(), Message: r.text()}
	open := make([][]openOrder, len(s.accounts))
	for range r.entries {
		r.pair(s, open)
	}
	r.checkFees(s)
	if r.err == "" && len(r.b) != 0 {
		r.fail("bytes left over")
	}
	if r.err != "" {
		return nil, fmt.Errorf("%w: %s, %d bytes before its end", ErrImage, r.err, len(r.b))
	}
	for i, list := range open {
		slices.SortFunc(list, func(a, b openOrder) int { return cmp.Compare(a.id, b.id) })
		for _, o := range list {
			if !s.accounts[i].Open.AddSide(o.id, o.pair, o.side) {
				return nil, fmt.Errorf("%w: order %d is in two books", ErrImage, o.id)
			}
		}
	}
	return s, nil
}

// A reader reads an image. At the first fault it keeps the reason, and reads zeros from then on.
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

// count returns the number of entries that follow; each takes at least a byte.
func (r *reader) count() int {
	n := r.uint()
	if n > uint64(len(r.b)) {
		r.fail("more entries than bytes")
		return 0
	}
	return int(n)
}

// entries numbers the entries that follow, and ends behind the first that does not fit. So an image
// of a few bytes cannot make a state of many entries.
func (r *reader) entries(yield func(int) bool) {
	n := r.count()
	for i := 0; i < n && r.err == "" && yield(i); i++ {
	}
}

func (r *reader) upTo(most uint64) uint64 {
	v := r.uint()
	if v > most {
		r.fail("a number is too large")
		return 0
	}
	return v
}

func (r *reader) u8() uint8            { return uint8(r.upTo(math.MaxUint8)) }
func (r *reader) u16() uint16          { return uint16(r.upTo(math.MaxUint16)) }
func (r *reader) u32() uint32          { return uint32(r.upTo(math.MaxUint32)) }
func (r *reader) amount() money.Amount { return money.Amount(r.upTo(math.MaxInt64)) }
func (r *reader) bool() bool           { return r.upTo(1) == 1 }

func (r *reader) text() string {
	return string(r.take(r.count()))
}

// take reads n bytes.
func (r *reader) take(n int) []byte {
	if n > len(r.b) {
		r.fail("it is cut off")
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

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

// must notes an error of the rules that images share with records.
func (r *reader) must(err error) bool {
	if err != nil {
		r.fail(err.Error())
	}
	return r.err == ""
}

func (r *reader) currency(s *State) {
	number := uint16(len(s.currencies) + 1)
	if r.must(s.currency(&event.Currency{Number: number, Code: r.text()})) {
		c := &s.currencies[number-1]
		c.Deposited, c.Withdrawn = r.balance(), r.balance()
		if c.Deposited.Cmp(money.MaxSupply) >= 0 || c.Withdrawn.Cmp(c.Deposited) > 0 {
			r.fail("more deposited than there can be, or more withdrawn than that, of currency " +
				c.Code)
		}
	}
}

func (r *reader) account(s *State) {
	id := uint32(len(s.accounts) + 1)
	if !r.must(s.account(&event.Account{ID: id, Name: r.text(), Email: r.text()})) {
		return
	}
	a := s.accounts[id-1]
	var last uint16
	for range r.entries {
		h := ledger.Holding{Currency: r.u16(), Balance: r.balance(), Reserve: r.balance()}
		if h.Currency <= last || int(h.Currency) > len(s.currencies) ||
			h.Reserve.Cmp(h.Balance) > 0 || h.Balance.Cmp(money.MaxSupply) > 0 {
			r.fail("an impossible holding of account " + a.Name)
			return
		}
		last = h.Currency
		a.Wallet.Put(h)
	}
	closed := r.uint()
	var past []ledger.ClosedID
	var at uint64
	for range r.entries {
		p := ledger.ClosedID{ID: r.clientID(), Order: r.uint(), At: r.uint()}
		if p.ID.IsZero() || p.At <= at || p.At > closed || closed-p.At >= ledger.RememberedOrders {
			r.fail("an impossible closed order of account " + a.Name)
			return
		}
		at = p.At
		past = append(past, p)
	}
	a.ClientIDs.Restore(closed, past)
	a.Frozen = r.bool()
	r.fees(a)
	if s.trades[id] = r.uint(); s.trades[id] > s.trades[0] {
		r.fail("more trades than there were in all, of account " + a.Name)
	}
}

func (r *reader) rate() money.Rate { return money.Rate(r.upTo(uint64(money.MaxRate))) }

func (r *reader) fees(a *Account) {
	var last uint16
	for range r.entries {
		pair, rates := r.u16(), FeeRates{r.rate(), r.rate()}
		if pair <= last {
			r.fail("fees that are not in order of account " + a.Name)
			return
		}
		last = pair
		if own := a.own(); own.fees == nil {
			own.fees = make(map[uint16]FeeRates)
		}
		a.rare.fees[pair] = rates
	}
}

// checkFees looks for fees in pairs that are not there: pairs are read after accounts.
func (r *reader) checkFees(s *State) {
	for _, a := range s.accounts {
		for pair := range a.Fees() {
			if int(pair) > len(s.pairs) {
				r.fail("fees of account " + a.Name + " in a pair that is not there")
			}
		}
	}
}

func (r *reader) withdrawals(s *State) {
	var last uint64
	for range r.entries {
		w := r.withdrawal(s)
		if r.err != "" || !w.Pending() || w.ID <= last || w.ID > s.lastWithdrawal {
			r.fail(
				"a withdraw that is not pending, not in order, or has an id that was not given yet")
			return
		}
		if (w.Stale || w.Renewed) && w.Status != event.WithdrawalNew || w.Stale && w.Renewed {
			r.fail(
				"a code of an earlier history of a withdraw that needs none, or one that was " +
					"made anew")
			return
		}
		last = w.ID
		s.pend(s.accounts[w.Account-1], &w)
	}
	last = 0
	for range r.entries {
		m := &Mail{ID: r.uint(), TimeUs: int64(r.uint()), Withdrawal: r.withdrawal(s)}
		if r.err != "" || m.ID <= last || m.ID > s.lastMail {
			r.fail("a mail that is not in order, or has an id that was not given yet")
			return
		}
		if w := &m.Withdrawal; w.Status != event.WithdrawalNew &&
			w.Status != event.WithdrawalRefused ||
			w.ID > s.lastWithdrawal {
			r.fail("a mail about what none is sent about")
			return
		}
		if r.checkMail(s, m); r.err != "" {
			return
		}
		last = m.ID
		s.post(m)
	}
}

// checkMail checks a mail against the bounds of the outbox.
func (r *reader) checkMail(s *State, m *Mail) {
	if m.Withdrawal.Status == event.WithdrawalRefused {
		if own := s.Account(m.Withdrawal.Account).rare; own != nil &&
			len(own.notices) >= maxNotices {
			r.fail("more mails of refusals than are kept for an account")
		}
		return
	}
	w := s.withdrawals[m.Withdrawal.ID]
	if w == nil || w.Status != event.WithdrawalNew || w.Account != m.Withdrawal.Account ||
		w.Issue != m.Withdrawal.Issue || m.Withdrawal.Stale || s.outbox.codes[w.ID] != 0 {
		r.fail("a mail with a code that is of no use")
	}
}

func (r *reader) withdrawal(s *State) Withdrawal {
	w := Withdrawal{ID: r.uint(), Account: r.u32(), Currency: r.u16(), Amount: r.amount(),
		Status: r.u8(), TimeUs: int64(r.uint()),
		Address: r.text(), Details: r.text(), Issue: r.u32(), IssuedUs: int64(r.uint()),
		Tries: r.u32(), Stale: r.bool(), Renewed: r.bool()}
	if s.Account(w.Account) == nil || w.Currency == 0 || int(w.Currency) > len(s.currencies) ||
		w.Amount < 1 || w.Issue < 1 {
		r.fail("a withdraw of no account, currency, amount or code")
	}
	return w
}

func (r *reader) key(s *State) {
	k := event.Key{Number: uint32(len(s.keys) + 1), Account: r.u32(), Key: r.text()}
	if r.bool() {
		if r.err == "" && r.must(s.newKey(&k)) {
			r.must(s.revoke(k.Number))
		}
		return
	}
	k.Permissions = r.u8()
	for range r.entries {
		if k.Allow = append(k.Allow, r.text()); len(k.Allow) > event.MaxAllow ||
			k.Allow[len(k.Allow)-1] == "" {
			r.fail("an address prefix that is empty, or too many of them, of key " + k.Key)
		}
	}
	k.SealedBy, k.Sealed = r.uint(), []byte(r.text())
	if r.err == "" && r.must(s.newKey(&k)) {
		s.keys[k.Number-1].Nonce = r.uint()
	}
}

// An openOrder is an order of a book that was read, for the list of its account.
type openOrder struct {
	id   uint64
	pair uint16
	side trading.Side
}

func (r *reader) pair(s *State, open [][]openOrder) {
	number := uint16(len(s.pairs) + 1)
	if !r.must(s.pair(&event.Pair{Number: number, Name: r.text(), Base: r.u16(), Quote: r.u16()})) {
		return
	}
	p := s.pairs[number-1]
	p.lastOrder, p.lastTrade, p.timeUs = r.uint(), r.uint(), int64(r.uint())
	p.Halted = r.bool()
	rest, err := p.Market.Decode(r.b)
	if !r.must(err) {
		return
	}
	r.b = rest
	if p.lastOrder > s.lastOrder || p.lastTrade > s.lastTrade || p.timeUs > s.timeUs {
		r.fail("a pair that is ahead of the whole")
	}
	for range r.entries {
		o := trading.Order{Side: trading.Side(r.u8()), ID: r.uint(), Account: r.u32(),
			Price:  money.Price(r.amount()),
			Amount: r.amount(), Remaining: r.amount(), TimeUs: int64(r.uint())}
		id := r.clientID()
		a := s.Account(o.Account)
		if r.err != "" || a == nil || o.ID > p.lastOrder {
			r.fail("an order of no account, or with an id that was not given yet")
			return
		}
		if _, taken := a.ClientIDs.Order(id); taken {
			r.fail("a client order id of two orders")
			return
		}
		p.Book.Add(o)
		open[a.ID-1] = append(open[a.ID-1], openOrder{o.ID, number, o.Side})
		a.ClientIDs.Open(o.ID, id)
	}
	r.checkBest(p)
}

// checkBest compares the market's best prices with the book's.
func (r *reader) checkBest(p *Pair) {
	buy, _ := p.Book.Best(trading.Buy)
	sell, _ := p.Book.Best(trading.Sell)
	if t := p.Market.Ticker(0); t.Buy != buy || t.Sell != sell || t.TimeUs > p.timeUs {
		r.fail("a market with other best prices than its book, or ahead of it, of pair " + p.Name)
	}
}
