package stream

import (
	"hash/crc32"
	"slices"
	"strconv"

	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/market"
	"exchange/core/money"
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
	full  bool   // trades have the orders of both sides
	chart string // timeframe of candles
	text  bool   // see kind
	body  []byte // of one event, reused
	sum   []byte // input of a checksum, reused
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
			b := encode.Trade(w.body[:0], t.ID, t.Price, w.pair, u.Side, u.TimeUs, t.Amount)
			if w.full {
				b = strconv.AppendUint(append(b, `,"taker_order":`...), u.ID, 10)
				b = strconv.AppendUint(append(b, `,"maker_order":`...), t.Maker, 10)
			}
			w.body = append(b, '}')
			dst = w.frame(dst)
		}
	}
	return dst
}

// diffs appends an event for each unit. best has the best levels after the last one; nil: the unit
// is not the last of its batch.
func (w *writer) diffs(dst []byte, units []committed.BookUpdate, best *market.Depth) []byte {
	for i := range units {
		u := &units[i]
		b := w.head(u.UpdateID)
		b = strconv.AppendUint(append(b, `,"prev_update_id":`...), u.UpdateID-1, 10)
		b = encode.Seconds(append(b, `,"timestamp":`...), u.TimeUs)
		b = w.changes(append(b, `,"sell":`...), u.Levels, trading.Sell)
		b = w.changes(append(b, `,"buy":`...), u.Levels, trading.Buy)
		if w.text && best != nil && i == len(units)-1 {
			b = w.checksum(b, best)
		}
		w.body = append(b, '}')
		dst = w.frame(dst)
	}
	return dst
}

func (w *writer) changes(b []byte, levels []committed.LevelChange, side trading.Side) []byte {
	b = append(b, '[')
	first := true
	for i := range levels {
		if l := &levels[i]; l.Side == side {
			if !first {
				b = append(b, ',')
			}
			first = false
			b = w.level(b, l.Price, l.Amount)
		}
	}
	return append(b, ']')
}

func (w *writer) level(b []byte, price money.Price, amount money.Total) []byte {
	if !w.text {
		return encode.Level(b, price, amount)
	}
	b = price.Append(append(b, `{"price":"`...))
	b = amount.Append(append(b, `","amount":"`...))
	return append(b, `"}`...)
}

func (w *writer) levels(b []byte, list []trading.Level) []byte {
	if !w.text {
		return encode.Levels(b, list)
	}
	b = append(b, '[')
	for i := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = w.level(b, list[i].Price, list[i].Amount)
	}
	return append(b, ']')
}

// checksum appends the CRC-32 (IEEE) of the best levels as text, price:amount, joined by colons:
// the best to buy, the best to sell, the second to buy, and so on. Missing levels are left out.
func (w *writer) checksum(b []byte, d *market.Depth) []byte {
	sum := w.sum[:0]
	for i := range committed.BestLevels {
		for _, side := range [...][]trading.Level{d.BuyLevels, d.SellLevels} {
			if i >= len(side) {
				continue
			}
			if len(sum) > 0 {
				sum = append(sum, ':')
			}
			sum = append(side[i].Price.Append(sum), ':')
			sum = side[i].Amount.Append(sum)
		}
	}
	w.sum = sum
	return strconv.AppendUint(append(b, `,"checksum":`...), uint64(crc32.ChecksumIEEE(sum)), 10)
}

// whole appends the whole book, the event before a sequence of differences.
func (w *writer) whole(dst []byte, v *committed.View) []byte {
	b := append(w.head(v.UpdateID), `,"prev_update_id":null,"snapshot":true`...)
	b = w.sides(b, v.Depth, len(v.Depth.SellLevels)+len(v.Depth.BuyLevels))
	if w.text {
		b = w.checksum(b, v.Depth)
	}
	w.body = append(b, '}')
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
	w.body = append(w.sides(w.head(v.UpdateID), v.Depth, shownTop), '}')
	return w.frame(dst)
}

func (w *writer) head(updateID uint64) []byte {
	b := encode.Text(append(w.body[:0], `{"pair":`...), w.pair)
	return strconv.AppendUint(append(b, `,"update_id":`...), updateID, 10)
}

// sides appends up to most levels of each side, without the closing brace.
func (w *writer) sides(b []byte, d *market.Depth, most int) []byte {
	b = encode.Seconds(append(b, `,"timestamp":`...), d.TimeUs)
	b = w.levels(append(b, `,"sell":`...), d.SellLevels[:min(most, len(d.SellLevels))])
	return w.levels(append(b, `,"buy":`...), d.BuyLevels[:min(most, len(d.BuyLevels))])
}

// bestOf appends the best level of each side.
func (w *writer) bestOf(dst []byte, v *committed.View) []byte {
	b := encode.Seconds(append(w.head(v.UpdateID), `,"timestamp":`...), v.Depth.TimeUs)
	b = bestLevel(append(b, `,"buy":`...), v.Depth.BuyLevels)
	b = bestLevel(append(b, `,"sell":`...), v.Depth.SellLevels)
	w.body = append(b, '}')
	return w.frame(dst)
}

func bestLevel(b []byte, side []trading.Level) []byte {
	if len(side) == 0 {
		return append(b, "null"...)
	}
	return encode.Level(b, side[0].Price, side[0].Amount)
}

// tickerOf appends the ticker.
func (w *writer) tickerOf(dst []byte, v *committed.View) []byte {
	w.body = encode.Ticker(w.body[:0], w.pair, &v.Ticker)
	return w.frame(dst)
}

// candle appends a candle. A closed one is final.
func (w *writer) candle(dst []byte, c *market.Candle, closed bool) []byte {
	b := encode.Text(append(encode.Candle(w.body[:0], c), `,"pair":`...), w.pair)
	b = encode.Text(append(b, `,"timeframe":`...), w.chart)
	w.body = append(strconv.AppendBool(append(b, `,"closed":`...), closed), '}')
	return w.frame(dst)
}

// status appends the whole status. Pairs that the exchange no longer serves are left out.
func (w *writer) status(dst []byte, s *committed.Status, pairs []*directory.Pair) []byte {
	b := encode.Seconds(append(w.body[:0], `{"snapshot":true,"timestamp":`...), s.TimeUs)
	b = append(maintenance(b, &s.Maintenance), `,"halted":[`...)
	first := true
	for _, p := range pairs {
		if slices.Contains(s.Halted, p.Number) {
			if !first {
				b = append(b, ',')
			}
			first = false
			b = encode.Text(b, p.Name)
		}
	}
	w.body = append(b, `]}`...)
	return w.frame(dst)
}

// statusChanges appends an event for each change.
func (w *writer) statusChanges(dst []byte, list []committed.StatusChange,
	pairs []*directory.Pair) []byte {
	for i := range list {
		x := &list[i]
		b := encode.Seconds(append(w.body[:0], `{"timestamp":`...), x.TimeUs)
		if x.Pair == 0 {
			b = maintenance(b, &x.Maintenance)
		} else {
			at := slices.IndexFunc(pairs, func(p *directory.Pair) bool {
				return p.Number == x.Pair
			})
			if at < 0 {
				continue
			}
			b = encode.Text(append(b, `,"pair":`...), pairs[at].Name)
			b = encode.Text(append(b, `,"status":`...), statusOf(x.Halted))
		}
		w.body = append(b, '}')
		dst = w.frame(dst)
	}
	return dst
}

// statusOf returns the words of exchange-info.
func statusOf(halted bool) string {
	if halted {
		return "halted"
	}
	return "trading"
}

func maintenance(b []byte, m *event.Maintenance) []byte {
	return encode.Maintenance(append(b, `,"maintenance":`...), m)
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
