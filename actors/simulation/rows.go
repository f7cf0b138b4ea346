package simulation

import (
	"cmp"
	"math"
	"math/big"
	"slices"

	"exchange/core/event"
	"exchange/core/market"
	"exchange/core/money"
	"exchange/core/trading"
	"exchange/persistence"
)

// A Row is one row of the history, with the sequence of its record.
type Row[T any] struct {
	seq uint64
	row T
}

// Rows are the history that all records give rise to.
type Rows struct {
	Trades      []Row[persistence.Trade]
	Orders      []Row[persistence.Order]
	Deposits    []Row[persistence.Deposit]
	Withdrawals []Row[persistence.Withdrawal]
	Actions     []Row[persistence.Action] // without their words
}

// UpTo returns the rows of the records up to a sequence, by id.
func UpTo[T any](list []Row[T], seq uint64, id func(*T) uint64) (rows []T) {
	for i := range list {
		if list[i].seq <= seq {
			rows = append(rows, list[i].row)
		}
	}
	slices.SortFunc(rows, func(a, b T) int { return cmp.Compare(id(&a), id(&b)) })
	return rows
}

// Of returns the rows of the record of a sequence.
func Of[T any](list []Row[T], seq uint64) (rows []T) {
	for i := range list {
		if list[i].seq == seq {
			rows = append(rows, list[i].row)
		}
	}
	return rows
}

func (m *Model) addClosed(p *Pair, o *Order, status uint8, timeUs int64) {
	m.closed[o.ID] = Closed{*o, m.Seq}
	m.Rows.Orders = append(m.Rows.Orders,
		Row[persistence.Order]{m.Seq, persistence.Order{ID: o.ID, Account: o.Account,
			Pair: p.Number, Side: o.Side,
			Status: status, Price: o.Price, Amount: o.Amount, Remaining: o.Remaining,
			TimeUs: o.TimeUs, ClosedUs: timeUs, ClosedSeq: m.Seq,
			ClientID: o.ClientID.String(), Instructed: o.Packed()}})
}

// Packed returns an order's instructions and what became of them, as rows have them.
func (o *Order) Packed() trading.Packed {
	if o.isPlain() {
		return ""
	}
	x := trading.Instructed{Instructions: o.Says, Trigger: o.trigger, Triggered: o.triggered}
	if o.value != nil {
		low := new(big.Int).And(o.value, new(big.Int).SetUint64(math.MaxUint64))
		x.Value = money.BalanceFromBits(new(big.Int).Rsh(o.value, 64).Uint64(), low.Uint64())
	}
	return x.Pack()
}

func (m *Model) addTrade(p *Pair, r *event.Record, t *event.Trade) {
	o := &r.Order
	m.Rows.Trades = append(m.Rows.Trades,
		Row[persistence.Trade]{m.Seq, persistence.Trade{ID: t.ID, Pair: p.Number, TakerSide: o.Side,
			Price:  t.Price,
			Amount: t.Amount, TimeUs: r.TimeUs, Taker: o.Account, Maker: t.MakerAccount,
			TakerOrder: o.ID, MakerOrder: t.Maker,
			TakerFee: t.TakerFee, MakerFee: t.MakerFee}})
}

// Candles returns the candles of one pair and frame at a sequence, oldest first.
func (m *Model) Candles(pair uint16, frame market.Frame, seq uint64) (list []persistence.Candle) {
	volume := new(big.Int)
	for i := range m.Rows.Trades {
		t := &m.Rows.Trades[i].row
		if m.Rows.Trades[i].seq > seq || t.Pair != pair {
			continue
		}
		at := t.TimeUs / 1e6 / frame.Seconds() * frame.Seconds()
		if n := len(list); n == 0 || list[n-1].Time != at {
			volume.SetInt64(0)
			list = append(list, persistence.Candle{Pair: pair, Frame: uint8(frame), Time: at,
				Open: t.Price, High: t.Price, Low: t.Price})
		}
		c := &list[len(list)-1]
		volume.Add(volume, big.NewInt(int64(t.Amount)))
		c.High, c.Low, c.Close = max(c.High, t.Price), min(c.Low, t.Price), t.Price
		high, low := new(big.Int).Rsh(volume, 64),
			new(big.Int).And(volume, new(big.Int).SetUint64(^uint64(0)))
		c.Volume = money.TotalFromBits(high.Uint64(), low.Uint64())
	}
	return list
}
