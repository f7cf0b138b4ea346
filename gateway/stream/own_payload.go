package stream

import (
	"math"
	"strconv"

	"exchange/actors"
	"exchange/actors/committed"
	"exchange/core/ledger"
	"exchange/gateway/api"
	"exchange/gateway/encode"
	"exchange/gateway/socketio"
)

// ownPart is the maximum size of an own event in one frame, and of each part of a longer one, in
// bytes.
const ownPart = 256 << 10

// An ownMessage is an event or a snapshot of an account: head, lists, and tail.
type ownMessage struct {
	head, tail  []byte
	orders      []committed.Order
	trades      []committed.OwnTrade
	balances    []ownBalance
	deposits    []committed.Deposit    // the list is omitted if empty
	withdrawals []committed.Withdrawal // the same
	snapshot    bool                   // without trades and deposits
}

// An ownBalance is a holding with the code of its currency.
type ownBalance struct {
	code string
	ledger.Holding
}

// rows returns the number of rows of all lists.
func (m *ownMessage) rows() int {
	return len(m.orders) + len(m.trades) + len(m.balances) + len(m.deposits) + len(m.withdrawals)
}

// An ownWriter makes the frames of accounts. Its frames are shared and never changed.
type ownWriter struct {
	public  *actors.Public
	body    []byte      // of one event, reused
	message *ownMessage // an event, reused; nil: owned by a frame
}

// row appends row i of all rows of a message.
func (w *ownWriter) row(b []byte, m *ownMessage, i int) []byte {
	if i < len(m.orders) {
		return api.AppendOwnOrder(b, w.public, &m.orders[i])
	}
	if i -= len(m.orders); i < len(m.trades) {
		return api.AppendOwnTrade(b, w.public, &m.trades[i], true)
	}
	if i -= len(m.trades); i < len(m.balances) {
		x := &m.balances[i]
		return api.AppendHolding(b, x.code, x.Holding)
	}
	if i -= len(m.balances); i < len(m.deposits) {
		return api.AppendDeposit(b, w.public, &m.deposits[i])
	}
	return api.AppendWithdrawal(b, w.public, &m.withdrawals[i-len(m.deposits)])
}

// appendLists appends the rows [from, to) of a message in their lists, until these exceed most
// bytes.
func (w *ownWriter) appendLists(b []byte, m *ownMessage, from, to, most int) []byte {
	first := 0
	list := func(name string, n int) {
		b = append(append(append(b, `,"`...), name...), `":[`...)
		for i := max(from, first); i < min(to, first+n) && len(b) <= most; i++ {
			if b[len(b)-1] != '[' {
				b = append(b, ',')
			}
			b = w.row(b, m, i)
		}
		b = append(b, ']')
		first += n
	}
	list("orders", len(m.orders))
	if !m.snapshot {
		list("trades", len(m.trades))
	}
	list("balances", len(m.balances))
	if len(m.deposits) > 0 {
		list("deposits", len(m.deposits))
	}
	if len(m.withdrawals) > 0 || m.snapshot {
		list("withdraws", len(m.withdrawals))
	}
	return b
}

// An ownFrame is an encoded event or snapshot for the clients of an account: one frame, or parts
// that are made for each client as it reads them.
type ownFrame struct {
	whole  []byte // nil: in parts
	writer *ownWriter
	parts  *ownMessage
	cuts   []int // first row of each part, and the number of all rows
}

// frame returns the frame of a message.
func (w *ownWriter) frame(m *ownMessage) *ownFrame {
	b := w.appendLists(append(w.body[:0], m.head...), m, 0, m.rows(), ownPart)
	w.body = b
	if len(b)+len(m.tail)+1 <= ownPart {
		w.body = append(append(b, m.tail...), '}')
		return &ownFrame{whole: socketio.AppendFrame(nil, "/", "own", w.body)}
	}
	f := &ownFrame{writer: &ownWriter{public: w.public}, parts: m, cuts: []int{0}}
	room := ownPart - len(m.head) - len(m.tail) - ownPartOverhead
	size := 0
	b = b[:0]
	for i := range m.rows() {
		b = w.row(b[:0], m, i)
		if size += len(b) + 1; size > room && i > f.cuts[len(f.cuts)-1] {
			f.cuts, size = append(f.cuts, i), len(b)+1
		}
	}
	f.cuts = append(f.cuts, m.rows())
	w.body = nil
	return f
}

// ownPartOverhead bounds the bytes of a part besides its rows, its head and its tail.
const ownPartOverhead = 200

// part returns the frame of one part, nil after the last. It is made for one client, so nothing is
// shared.
func (f *ownFrame) part(n int) []byte {
	if f.whole != nil || n >= len(f.cuts)-1 {
		return nil
	}
	m := f.parts
	b := strconv.AppendInt(append(append([]byte(nil), m.head...), `,"part":`...), int64(n+1), 10)
	b = strconv.AppendInt(append(b, `,"parts":`...), int64(len(f.cuts)-1), 10)
	w := ownWriter{public: f.writer.public}
	b = w.appendLists(b, m, f.cuts[n], f.cuts[n+1], math.MaxInt)
	return socketio.AppendFrame(nil, "/", "own", append(append(b, m.tail...), '}'))
}

// sequence appends the sequences of a message and of the account's previous event.
func sequence(b []byte, seq, prev uint64) []byte {
	b = strconv.AppendUint(append(b, `"sequence":`...), seq, 10)
	if b = append(b, `,"prev":`...); prev == 0 {
		return append(b, "null"...)
	}
	return strconv.AppendUint(b, prev, 10)
}

var causes = [...]string{committed.CausePlaced: "placed", committed.CauseTrade: "trade",
	committed.CauseCancelled: "cancelled", committed.CauseTriggered: "triggered",
	committed.CauseAmended: "amended", committed.CauseExpired: "expired",
	committed.CauseSelfTrade: "self_trade", committed.CauseDeposit: "deposit",
	committed.CauseWithdraw: "withdraw", committed.CauseFreeze: "freeze"}

// event returns the frame of an event, which is made once.
func (w *ownWriter) event(x *committed.OwnEvent) *ownFrame {
	if f, ok := x.Encoded.(*ownFrame); ok {
		return f
	}
	if w.message == nil {
		w.message = &ownMessage{}
	}
	m := w.message
	b := sequence(append(m.head[:0], '{'), x.Seq, x.Prev)
	b = encode.Seconds(append(b, `,"timestamp":`...), x.TimeUs)
	b = encode.Text(append(b, `,"cause":`...), causes[x.Cause])
	if x.Reason != 0 {
		b = encode.Text(append(b, `,"cancel_reason":`...), x.Reason.String())
	}
	if x.Order != 0 {
		b = strconv.AppendUint(append(b, `,"order":`...), x.Order, 10)
	}
	if x.Cause == committed.CauseFreeze {
		b = strconv.AppendBool(append(b, `,"frozen":`...), x.Frozen)
	}
	m.head, m.orders, m.trades, m.balances = b, x.Orders, x.Trades, m.balances[:0]
	m.deposits, m.withdrawals = x.Deposits, x.Withdrawals
	for _, h := range x.Balances {
		m.balances = append(m.balances, ownBalance{w.public.CurrencyCode(h.Currency), h})
	}
	f := w.frame(m)
	if f.parts != nil {
		w.message = nil
	}
	x.Encoded = f
	return f
}

// snapshot returns the frame of a snapshot.
func (w *ownWriter) snapshot(s *committed.OwnSnapshot) *ownFrame {
	m := &ownMessage{head: sequence([]byte(`{"snapshot":true,`), s.Seq, 0), orders: s.Orders,
		withdrawals: s.Withdrawals, snapshot: true}
	for _, c := range w.public.Currencies() {
		m.balances = append(m.balances, ownBalance{c.Code, api.Holding(s.Holdings, c.Number)})
	}
	b := strconv.AppendBool([]byte(`,"orders_complete":`), s.Complete)
	b = strconv.AppendBool(append(b, `,"withdraws_complete":`...), s.WithdrawalsComplete)
	b = strconv.AppendBool(append(b, `,"frozen":`...), s.Frozen)
	b = append(b, `,"last_trades":{`...)
	for i, t := range s.LastTrades {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(encode.Text(b, w.public.Market(t.Pair).Name), ':')
		b = strconv.AppendUint(b, t.ID, 10)
	}
	m.tail = append(b, '}')
	return w.frame(m)
}

// ownTag is the tag of deliveries of own events.
const ownTag = answers - 1

// ownDelivery returns a delivery of frames in order. The part that does not fit into one write is
// made as the client reads it.
func ownDelivery(list []*ownFrame) socketio.Delivery {
	d := socketio.Delivery{Tag: ownTag, Policy: socketio.Keep}
	if len(list) == 1 && list[0].whole != nil {
		d.Frames = list[0].whole
		return d
	}
	r := &ownReel{list: list}
	d.Frames, d.More = r.next(), r.next
	return d
}

// An ownReel yields frames one after the other.
type ownReel struct {
	list []*ownFrame
	part int // of the first in list
}

// next returns the next frames: short ones joined, and of a long one a part. It is nil after the
// last.
func (r *ownReel) next() (frames []byte) {
	for len(r.list) > 0 {
		f := r.list[0]
		if f.whole == nil {
			if len(frames) > 0 {
				return frames
			}
			if b := f.part(r.part); b != nil {
				r.part++
				return b
			}
			r.list, r.part = r.list[1:], 0
			continue
		}
		if len(frames) > 0 && len(frames)+len(f.whole) > longestJoined {
			return frames
		}
		frames = append(frames, f.whole...)
		r.list = r.list[1:]
	}
	return frames
}
