package event

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"exchange/core/money"
	"exchange/core/trading"
	"exchange/core/wire"
)

// Sizes and limits of the encoding.
const (
	// version is the batch format that this program writes, and the only one that it reads.
	version = 4

	batchHeader  = 1 + 1 + 4 + 8 + 4
	batchTrailer = 4
	recordHeader = 1 + 2 + 4 + 8

	// maxText bounds, in bytes, a string in a record (names, references, sealed secrets), and a
	// payload that is a wire value.
	maxText = 4096
	// maxTrades bounds the trades of one record; the configured max_fills is below it.
	maxTrades = 1_000_000
	// MaxAllow bounds the address prefixes of one key.
	MaxAllow = 1000
)

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	le         = binary.LittleEndian
)

// Every decoding error except OtherVersion wraps errDamaged. The text names the fault and its
// place.
var errDamaged = errors.New("damaged journal record")

// A Batch is a batch header and its records, still encoded.
type Batch struct {
	Epoch   uint32
	Prev    uint64 // the records are Prev+1 ... Prev+Count
	Count   uint32
	Records []byte
}

// BeginBatch reserves the header of a batch in an empty buffer; the caller appends the records.
func BeginBatch(dst []byte) []byte {
	return append(dst[:0], make([]byte, batchHeader)...)
}

// EndBatch completes a buffer that began with BeginBatch and holds count records.
func EndBatch(b []byte, epoch uint32, prev uint64, count uint32) []byte {
	b[0], b[1] = version, 0
	le.PutUint32(b[2:], epoch)
	le.PutUint64(b[6:], prev)
	le.PutUint32(b[14:], count)
	return le.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// OpenBatch checks and parses a batch. Its Records alias b.
func OpenBatch(b []byte) (Batch, error) {
	if len(b) < batchHeader+batchTrailer {
		return Batch{}, fmt.Errorf("%w: a batch of %d bytes is too short", errDamaged, len(b))
	}
	body := b[:len(b)-batchTrailer]
	if got, want := crc32.Checksum(body, castagnoli), le.Uint32(b[len(body):]); got != want {
		return Batch{},
			fmt.Errorf("%w: checksum of the batch after sequence %d is %08x, stored is %08x",
				errDamaged, le.Uint64(b[6:]), got, want)
	}
	var other *wire.OtherVersion
	switch {
	case b[0] != version:
		other = &wire.OtherVersion{Found: uint64(b[0]), Oldest: version, Newest: version}
	case b[1] != 0:
		other = &wire.OtherVersion{Of: "flags", Found: uint64(b[1])}
	}
	if other != nil {
		return Batch{}, fmt.Errorf("the batch after sequence %d: %w", le.Uint64(b[6:]), other)
	}
	return Batch{Epoch: le.Uint32(b[2:]), Prev: le.Uint64(b[6:]), Count: le.Uint32(b[14:]),
		Records: body[batchHeader:]}, nil
}

// Append writes the record to dst. It panics when Decode would refuse the bytes, because an
// unreadable record must be found before its acknowledgement, not at its replay.
func (r *Record) Append(dst []byte) []byte {
	at := len(dst)
	kind := byte(r.Kind)
	if r.Operator != "" {
		kind |= operatorFlag
	}
	dst = append(dst, kind, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	le.PutUint16(dst[at+1:], r.Pair)
	le.PutUint64(dst[at+7:], uint64(r.TimeUs))
	switch r.Kind {
	case KindKey:
		dst = r.Key.append(dst)
	case KindKeyRevoked:
		n := uint64(r.KeyRevoked.Number)
		if r.KeyRevoked.Lost {
			n |= keyLost
		}
		dst = uv(dst, n)
	case KindDeposit:
		d := &r.Deposit
		dst = uv(uv(uv(dst, d.ID), uint64(d.Account)), uint64(d.Currency))
		dst = text(amount(dst, d.Amount), d.Reference)
	case KindOrder:
		dst = r.Order.append(dst)
	case KindCancel:
		dst = r.Cancel.append(dst)
	case KindRefusal:
		f := &r.Refusal
		dst = uv(uv(uv(dst, uint64(f.Account)), uint64(f.Key)), f.Nonce)
		dst = append(dst, f.Reason)
	default:
		dst = r.appendMore(dst)
	}
	if r.Operator != "" {
		dst = text(dst, r.Operator)
	}
	le.PutUint32(dst[at+3:], uint32(len(dst)-at-recordHeader))
	return dst
}

// appendMore writes a record of the rare kinds.
func (r *Record) appendMore(dst []byte) []byte {
	if payload := r.Kind.info().payload; payload != nil {
		before := len(dst)
		dst = wire.AppendValue(dst, payload(r))
		atMost(len(dst)-before, maxText)
		return dst
	}
	switch r.Kind {
	case KindWithdrawal:
		return r.Withdrawal.append(dst)
	case KindWithdrawalStatus:
		m := &r.WithdrawalStatus
		dst = uv(uv(uv(uv(uv(dst, m.ID), uint64(m.Account)), uint64(m.Key)), m.Nonce),
			uint64(m.Currency))
		return flag(text(append(amount(dst, m.Amount), m.To), m.Details), m.DespiteFreeze)
	case KindAdjusted:
		a := &r.Adjusted
		dst = uv(uv(uv(dst, a.ID), uint64(a.Account)), uint64(a.Currency))
		return a.ClientID.append(text(amount(dst, a.Amount), a.Reason))
	case KindEmail:
		m := &r.Email
		return uv(text(uv(dst, uint64(m.Account)), m.Address), moment(m.HoldEndsUs))
	case KindMaintenance:
		return text(append(dst, r.Maintenance.Mode()), r.Maintenance.Message)
	case KindFees:
		f := &r.Fees
		return rate(rate(flag(uv(dst, uint64(f.Account)), f.Own), f.Maker), f.Taker)
	case KindHistory:
		return append(dst, r.History[:]...)
	case KindNote:
		if r.Note == "" {
			panic("BUG: a record is written with an empty note")
		}
		return append(uv(dst, atMost(len(r.Note), MaxNote)), r.Note...)
	}
	return r.appendSpecial(dst)
}

func rate(dst []byte, r money.Rate) []byte {
	if r > money.MaxRate {
		panic(fmt.Sprintf("BUG: a record is written with the rate %d", uint32(r)))
	}
	return uv(dst, uint64(r))
}

func flag(dst []byte, on bool) []byte {
	if on {
		return append(dst, 1)
	}
	return append(dst, 0)
}

func (k *Key) append(dst []byte) []byte {
	dst = text(uv(uv(dst, uint64(k.Number)), uint64(k.Account)), k.Key)
	dst = uv(append(dst, k.Permissions), atMost(len(k.Allow), MaxAllow))
	for _, a := range k.Allow {
		dst = text(dst, a)
	}
	dst = le.AppendUint64(dst, k.SealedBy)
	dst = append(uv(dst, atMost(len(k.Sealed), maxText)), k.Sealed...)
	return uv(dst, atMost(int(k.NonceWindow), MaxParallel))
}

func (w *Withdrawal) append(dst []byte) []byte {
	dst = uv(uv(uv(uv(uv(dst, w.ID), uint64(w.Account)), uint64(w.Key)), w.Nonce),
		uint64(w.Currency))
	return w.ClientID.append(text(amount(dst, w.Amount), w.Address))
}

func (c *ClientID) append(dst []byte) []byte { return c.Append(append(dst, c.n)) }

func (c *Cancel) append(dst []byte) []byte {
	dst = uv(uv(uv(uv(uv(dst, c.ID), c.Order), uint64(c.Account)), uint64(c.Key)), c.Nonce)
	dst = append(dst, side(c.Side))
	return amount(amount(dst, money.Amount(c.Price)), c.Remaining)
}

const (
	cancelledFlag = 0x80    // beside the side, in one byte: Order.RestCancelled
	keyLost       = 1 << 32 // beside the number of a revoked key: KeyRevoked.Lost
	operatorFlag  = 0x80    // beside the kind: the field Operator follows the payload
)

// appendStart writes the start of every order: account, key and nonce.
func (o *Order) appendStart(dst []byte) []byte {
	dst = uv(uv(uv(uv(dst, o.ID), uint64(o.Account)), uint64(o.Key)), o.Nonce)
	flags := side(o.Side)
	if o.RestCancelled {
		flags |= cancelledFlag
	}
	return append(dst, flags)
}

func (o *Order) append(dst []byte) []byte {
	dst = o.appendStart(dst)
	dst = amount(amount(amount(dst, money.Amount(o.Price)), o.Amount), o.Remaining)
	dst = uv(dst, uint64(o.FeeAccount))
	dst = o.ClientID.append(dst)
	dst = uv(dst, atMost(len(o.Trades), maxTrades))
	for i := range o.Trades {
		t := &o.Trades[i]
		dst = uv(uv(uv(dst, t.ID), t.Maker), uint64(t.MakerAccount))
		dst = amount(amount(amount(dst, money.Amount(t.Price)), t.Amount), t.MakerRemaining)
		dst = wire.AppendBalance(wire.AppendBalance(dst, t.TakerFee), t.MakerFee)
	}
	return dst
}

func uv(dst []byte, v uint64) []byte { return binary.AppendUvarint(dst, v) }

func text(dst []byte, s string) []byte { return append(uv(dst, atMost(len(s), maxText)), s...) }

func atMost(n, most int) uint64 {
	if n > most {
		panic(fmt.Sprintf("BUG: a record is written with %d of what it can have %d of", n, most))
	}
	return uint64(n)
}

// moment returns a time that a record can hold.
func moment(timeUs int64) uint64 {
	if timeUs < 0 {
		panic(fmt.Sprintf("BUG: a record is written with the time %d us", timeUs))
	}
	return uint64(timeUs)
}

func amount(dst []byte, a money.Amount) []byte {
	if a < 0 {
		panic(fmt.Sprintf("BUG: a record is written with the price or amount %d", int64(a)))
	}
	return uv(dst, uint64(a))
}

func side(s trading.Side) byte {
	if s != trading.Buy && s != trading.Sell {
		panic(fmt.Sprintf("BUG: a record is written with side %d", s))
	}
	return byte(s)
}

// Decode reads the first record of b into r and returns what follows it. Strings and byte slices in
// r are copies; Trades reuses its memory.
func (r *Record) Decode(b []byte) (rest []byte, err error) {
	if len(b) < recordHeader {
		return nil, fmt.Errorf("%w: %d bytes are too few for a record", errDamaged, len(b))
	}
	r.Kind, r.Pair, r.TimeUs = Kind(b[0]&^operatorFlag), le.Uint16(b[1:]), int64(le.Uint64(b[7:]))
	n, hasWho := uint64(le.Uint32(b[3:])), b[0]&operatorFlag != 0
	b = b[recordHeader:]
	if n > uint64(len(b)) {
		return nil, fmt.Errorf("%w: a %v record of %d bytes in a batch with %d left", errDamaged,
			r.Kind, n, len(b))
	}
	d := decoder{wire.Read(b[:n:n])}
	switch r.Kind {
	case KindKey:
		d.key(&r.Key)
	case KindKeyRevoked:
		n := d.Uint()
		r.KeyRevoked = KeyRevoked{Number: uint32(n), Lost: n&keyLost != 0}
		if n >= 2*keyLost {
			d.fail()
		}
	case KindDeposit:
		r.Deposit = Deposit{ID: d.Uint(), Account: d.U32(), Currency: d.U16(), Amount: d.Amount(),
			Reference: d.text()}
	case KindOrder:
		d.order(&r.Order)
	case KindCancel:
		d.cancel(&r.Cancel)
	case KindRefusal:
		r.Refusal = Refusal{Account: d.U32(), Key: d.U32(), Nonce: d.Uint(), Reason: d.Byte()}
	default:
		if !d.more(r) {
			return nil, fmt.Errorf("a journal record: %w", &wire.OtherVersion{Of: "kind",
				Found: uint64(r.Kind), Oldest: uint64(KindCurrency), Newest: newestKind})
		}
	}
	r.Operator = ""
	if hasWho {
		if r.Operator = d.text(); r.Operator == "" {
			d.fail()
		}
	}
	if !d.End() {
		return nil, fmt.Errorf("%w: the payload of a %v record, %d bytes: %s", errDamaged, r.Kind,
			n, d.Fault())
	}
	return b[n:], nil
}

// more reads a record of the rare kinds. It returns false for an unknown kind.
func (d *decoder) more(r *Record) bool {
	if payload := r.Kind.info().payload; payload != nil {
		before := d.Len()
		d.Value(payload(r))
		d.Check(before-d.Len() <= maxText)
		return true
	}
	switch r.Kind {
	case KindWithdrawal:
		d.withdrawal(&r.Withdrawal)
	case KindWithdrawalStatus:
		r.WithdrawalStatus = WithdrawalStatus{ID: d.Uint(), Account: d.U32(), Key: d.U32(),
			Nonce:    d.Uint(),
			Currency: d.U16(), Amount: d.Amount(),
			To: d.Byte(), Details: d.text(), DespiteFreeze: d.Flag()}
	case KindAdjusted:
		a := &r.Adjusted
		*a = Adjusted{ID: d.Uint(), Account: d.U32(), Currency: d.U16(), Amount: d.Amount(),
			Reason: d.text()}
		d.clientID(&a.ClientID)
	case KindEmail:
		r.Email = Email{Account: d.U32(), Address: d.text(), HoldEndsUs: int64(d.UpTo(1<<63 - 1))}
	case KindMaintenance:
		m, ok := MaintenanceOf(d.Byte())
		if !ok {
			d.fail()
		}
		m.Message = d.text()
		r.Maintenance = m
	case KindFees:
		r.Fees = Fees{Account: d.U32(), Own: d.Flag(), Maker: d.Rate(), Taker: d.Rate()}
	case KindHistory:
		r.History = HistoryID{}
		copy(r.History[:], d.Take(len(r.History)))
	case KindNote:
		if r.Note = string(d.Bytes(MaxNote)); r.Note == "" {
			d.fail()
		}
	default:
		return d.special(r)
	}
	return true
}

// A decoder reads a payload.
type decoder struct{ wire.Reader }

func (d *decoder) fail() { d.Fail("it has a value that no record has") }

func (d *decoder) text() string { return d.Text(maxText) }

func (d *decoder) side() trading.Side {
	s := trading.Side(d.Byte())
	if s != trading.Buy && s != trading.Sell {
		d.fail()
	}
	return s
}

func (d *decoder) key(k *Key) {
	*k = Key{Number: d.U32(), Account: d.U32(), Key: d.text(), Permissions: d.Byte()}
	for n := d.UpTo(MaxAllow); n > 0 && !d.Bad(); n-- {
		k.Allow = append(k.Allow, d.text())
	}
	if by := d.Take(8); by != nil {
		k.SealedBy = le.Uint64(by)
	}
	k.Sealed = append([]byte(nil), d.Bytes(maxText)...)
	k.NonceWindow = uint16(d.UpTo(MaxParallel))
}

func (d *decoder) withdrawal(w *Withdrawal) {
	*w = Withdrawal{ID: d.Uint(), Account: d.U32(), Key: d.U32(), Nonce: d.Uint(),
		Currency: d.U16(), Amount: d.Amount(), Address: d.text()}
	d.clientID(&w.ClientID)
}

func (d *decoder) cancel(c *Cancel) {
	*c = Cancel{ID: d.Uint(), Order: d.Uint(), Account: d.U32(), Key: d.U32(), Nonce: d.Uint(),
		Side: d.side(), Price: d.Price(), Remaining: d.Amount()}
}

func (d *decoder) orderStart(o *Order) {
	o.ID, o.Account, o.Key, o.Nonce = d.Uint(), d.U32(), d.U32(), d.Uint()
	flags := d.Byte()
	o.RestCancelled, o.Side = flags&cancelledFlag != 0, trading.Side(flags&^cancelledFlag)
	if o.Side != trading.Buy && o.Side != trading.Sell {
		d.fail()
	}
}

func (d *decoder) order(o *Order) {
	d.orderStart(o)
	o.Price, o.Amount, o.Remaining, o.FeeAccount = d.Price(), d.Amount(), d.Amount(),
		d.U32()
	d.clientID(&o.ClientID)
	o.Trades = o.Trades[:0]
	for n := d.UpTo(maxTrades); n > 0 && !d.Bad(); n-- {
		o.Trades = append(o.Trades, Trade{ID: d.Uint(), Maker: d.Uint(), MakerAccount: d.U32(),
			Price:  d.Price(),
			Amount: d.Amount(), MakerRemaining: d.Amount(), TakerFee: d.Balance(),
			MakerFee: d.Balance()})
	}
}

// clientID reads a client id, or the zero one.
func (d *decoder) clientID(id *ClientID) {
	*id = ClientID{}
	if text := d.Bytes(MaxClientID); len(text) > 0 {
		var err error
		if *id, err = NewClientID(text); err != nil {
			d.fail()
		}
	}
}
