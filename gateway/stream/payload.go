package stream

import (
	"strconv"

	"exchange/actors/committed"
	"exchange/core/event"
	"exchange/core/trading"
	"exchange/gateway/encode"
	"exchange/gateway/socketio"
)

// shownTop is the number of levels of each side in orderbook.20.
const shownTop = 20

// A writer makes the frames of one channel. Its frames are shared and never changed.
type writer struct {
	pair  string
	event string
	body  []byte // of one event, reused
}

// frame appends the body as an event.
func (w *writer) frame(dst []byte) []byte {
	return socketio.AppendFrame(dst, "/", w.event, w.body)
}

// tradesOf appends an event for each trade of the units.
func (w *writer) tradesOf(dst []byte, units []committed.BookUpdate) []byte {
	for i := range units {
		u := &units[i]
		for j := range u.Trades {
			t := &u.Trades[j]
			w.body = append(encode.Trade(w.body[:0], t.ID, t.Price, w.pair, u.Side, u.TimeUs,
				t.Amount), '}')
			dst = w.frame(dst)
		}
	}
	return dst
}

// diffs appends an event for each unit.
func (w *writer) diffs(dst []byte, units []committed.BookUpdate) []byte {
	for i := range units {
		u := &units[i]
		b := w.head(u.UpdateID)
		b = strconv.AppendUint(append(b, `,"prev_update_id":`...), u.UpdateID-1, 10)
		b = encode.Seconds(append(b, `,"timestamp":`...), u.TimeUs)
		b = changes(append(b, `,"sell":`...), u.Levels, trading.Sell)
		b = changes(append(b, `,"buy":`...), u.Levels, trading.Buy)
		w.body = append(b, '}')
		dst = w.frame(dst)
	}
	return dst
}

func changes(b []byte, levels []committed.LevelChange, side trading.Side) []byte {
	b = append(b, '[')
	first := true
	for i := range levels {
		if l := &levels[i]; l.Side == side {
			if !first {
				b = append(b, ',')
			}
			first = false
			b = encode.Level(b, l.Price, l.Amount)
		}
	}
	return append(b, ']')
}

// whole appends the whole book, the event before a sequence of differences.
func (w *writer) whole(dst []byte, v *committed.View) []byte {
	b := append(w.head(v.UpdateID), `,"prev_update_id":null,"snapshot":true`...)
	w.body = sides(b, v, len(v.Depth.SellLevels)+len(v.Depth.BuyLevels))
	dst = w.frame(dst)
	if cap(w.body) > keptBody {
		w.body = nil
	}
	return dst
}

// keptBody is the most memory that a writer keeps, in bytes.
const keptBody = 64 << 10

// topOf appends the best levels.
func (w *writer) topOf(dst []byte, v *committed.View) []byte {
	w.body = sides(w.head(v.UpdateID), v, shownTop)
	return w.frame(dst)
}

func (w *writer) head(updateID uint64) []byte {
	b := encode.Text(append(w.body[:0], `{"pair":`...), w.pair)
	return strconv.AppendUint(append(b, `,"update_id":`...), updateID, 10)
}

func sides(b []byte, v *committed.View, most int) []byte {
	d := v.Depth
	b = encode.Seconds(append(b, `,"timestamp":`...), d.TimeUs)
	b = encode.Levels(append(b, `,"sell":`...), d.SellLevels[:min(most, len(d.SellLevels))])
	b = encode.Levels(append(b, `,"buy":`...), d.BuyLevels[:min(most, len(d.BuyLevels))])
	return append(b, '}')
}

// tickerOf appends the ticker.
func (w *writer) tickerOf(dst []byte, v *committed.View) []byte {
	w.body = encode.Ticker(w.body[:0], w.pair, &v.Ticker)
	return w.frame(dst)
}

// orders appends events for each unit, in the form of the book_ channels.
func (w *writer) orders(dst []byte, units []committed.BookUpdate) []byte {
	for i := range units {
		u := &units[i]
		for j := range u.Gone {
			dst = w.cancel(dst, u.TimeUs, &u.Gone[j])
		}
		switch {
		case u.Silent:
		case u.Cancel:
			dst = w.cancel(dst, u.TimeUs, &committed.Gone{ID: u.ID, Order: u.Cancelled,
				Side: u.Side, Price: u.Price, Remaining: u.Remaining})
		default:
			b := w.oid(u.TimeUs, u.ID)
			b = encode.Side(append(b, `,"type":`...), u.Side)
			b = u.Price.Append(append(b, `,"price":`...))
			b = u.Remaining.Append(append(b, `,"amount":`...))
			w.body = append(madeBy(append(b, `,"trades":`...), u.Trades, u.Side.Opposite()), '}')
			dst = w.frame(dst)
		}
	}
	return dst
}

// oid begins the body of an event of the book_ channels.
func (w *writer) oid(timeUs int64, id uint64) []byte {
	b := encode.Seconds(append(w.body[:0], `{"success":true,"date":`...), timeUs)
	return strconv.AppendUint(append(b, `,"oid":`...), id, 10)
}

// cancel appends the event of an order that has left the book. The contract's order of fields
// differs from a new order's.
func (w *writer) cancel(dst []byte, timeUs int64, g *committed.Gone) []byte {
	b := strconv.AppendUint(append(w.oid(timeUs, g.ID), `,"cancel_order_id":`...), g.Order, 10)
	b = g.Price.Append(append(b, `,"price":`...))
	b = encode.Side(append(b, `,"type":`...), g.Side)
	b = g.Remaining.Append(append(b, `,"amount":`...))
	b = encode.Text(append(b, `,"pair":`...), w.pair)
	w.body = append(b, `,"cancelled":true}`...)
	return w.frame(dst)
}

// madeBy writes the trades of a new order. Here, and only here, price and amount are text.
func madeBy(b []byte, list []event.Trade, side trading.Side) []byte {
	b = append(b, '[')
	for i := range list {
		t := &list[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendUint(append(b, `{"tid":`...), t.ID, 10)
		b = encode.Side(append(b, `,"type":`...), side)
		b = append(t.Price.Append(append(b, `,"price":"`...)), '"')
		b = append(t.Amount.Append(append(b, `,"amount":"`...)), '"')
		b = strconv.AppendUint(append(b, `,"o_id":`...), t.Maker, 10)
		b = append(b, '}')
	}
	return append(b, ']')
}

// success and failure are the answers to a subscription to one channel.
func success(channel string, timeUs int64) []byte {
	b := encode.Text([]byte(`{"channel":`), channel)
	b = append(encode.Seconds(append(b, `,"timestamp":`...), timeUs), '}')
	return socketio.AppendFrame(nil, "/", "subscribe.success", b)
}

func failure(channel string, err error) []byte {
	b := encode.Text([]byte(`{"channel":`), channel)
	b = append(encode.Text(append(b, `,"message":`...), err.Error()), '}')
	return socketio.AppendFrame(nil, "/", "subscribe.error", b)
}
