package loadtest

import (
	"strconv"

	"exchange/core/money"
)

// An operation is a kind of request.
type operation uint8

const (
	opPlace operation = iota
	opCancel
	opAmend
	opBook
	opTicker
	opTrades
	opWallets
	opOrders
	operations
)

var operationNames = [operations]string{"place", "cancel", "amend", "read book", "read ticker",
	"read trades", "read wallets", "read own orders"}

// reads are the requests of the share of reads, in turn.
var reads = [...]operation{opBook, opWallets, opTicker, opOrders, opTrades}

// A writer makes requests, in memory that it uses again.
type writer struct {
	host string
	run  []byte // the begin of the client ids of this run
	form []byte
	out  []byte
	signer
}

func newWriter(host, run string) *writer {
	return &writer{host: host, run: []byte(run), signer: *newSigner()}
}

// appendClientID appends the client_order_id of an order.
func appendClientID(b, run []byte, user, serial uint32) []byte {
	b = append(b, run...)
	b = strconv.AppendUint(append(b, '-'), uint64(user), 36)
	return strconv.AppendUint(append(b, '-'), uint64(serial), 36)
}

func (w *writer) place(u *user, o *sent, p *pair) []byte {
	w.form = o.fields(w.form[:0], func(b []byte) []byte {
		return appendClientID(b, w.run, o.user, o.serial)
	}, p)
	return w.post("/api/v1/order/", u)
}

func (w *writer) cancel(u *user, id uint64) []byte {
	w.form = strconv.AppendUint(append(w.form[:0], "order="...), id, 10)
	return w.post("/api/v1/order-cancel/", u)
}

// post makes a signed request of the form.
func (w *writer) post(path string, u *user) []byte {
	u.nonce++
	b := append(append(append(w.out[:0], "POST "...), path...), " HTTP/1.1\r\nHost: "...)
	b = append(append(append(b, w.host...),
		"\r\nContent-Type: application/x-www-form-urlencoded\r\nX-KEY: "...), u.key...)
	b = w.sign(append(b, "\r\nX-SIGN: "...), &u.secret, u.key, w.form)
	b = strconv.AppendUint(append(b, "\r\nX-NONCE: "...), u.nonce, 10)
	b = strconv.AppendInt(append(b, "\r\nContent-Length: "...), int64(len(w.form)), 10)
	w.out = append(append(b, "\r\n\r\n"...), w.form...)
	return w.out
}

// read makes a request that reads. Private requests are the user's.
func (w *writer) read(op operation, u *user, p *pair) []byte {
	switch op {
	case opBook:
		return w.get(nil, "/api/v1/orderbook/", p.name, "/?group=1&limit_sell=20&limit_buy=20")
	case opTicker:
		return w.get(nil, "/api/v1/ticker/?pair=", p.name)
	case opTrades:
		return w.get(nil, "/api/v1/exchanges/?limit=20&pair=", p.name)
	case opWallets:
		return w.get(u, "/api/v1/wallets/")
	}
	return w.get(u, "/api/v1/orders/own/?limit=20&status=1&pair=", p.name)
}

func (w *writer) get(u *user, path ...string) []byte {
	b := append(w.out[:0], "GET "...)
	for _, part := range path {
		b = append(b, part...)
	}
	b = append(append(b, " HTTP/1.1\r\nHost: "...), w.host...)
	if u != nil {
		u.nonce++
		b = append(append(b, "\r\nX-KEY: "...), u.key...)
		b = append(append(b, "\r\nX-SIGN: "...), u.get...)
		b = strconv.AppendUint(append(b, "\r\nX-NONCE: "...), u.nonce, 10)
	}
	w.out = append(b, "\r\n\r\n"...)
	return w.out
}

// A placed is the answer to an order.
type placed struct {
	id             uint64
	remaining      money.Amount
	filled, cutOff money.Amount
	trades         []byte
	prevented      []byte // nil: none
}

func readPlaced(body []byte) (a placed, err error) {
	amount := func(b []byte) money.Amount {
		v, e := money.ParseAmount(b)
		if e != nil {
			err = e
		}
		return v
	}
	seen := 0
	e := eachField(body, func(name, v []byte) bool {
		switch string(name) {
		case "oid":
			a.id = number(v)
			seen++
		case "amount":
			a.remaining = amount(v)
			seen++
		case "amount_filled":
			a.filled = amount(v)
			seen++
		case "amount_cancelled":
			a.cutOff = amount(v)
		case "trades":
			a.trades = v
			seen++
		case "prevented":
			a.prevented = v
		}
		return true
	})
	if err == nil {
		err = e
	}
	if err == nil && (seen != 4 || a.id == 0) {
		err = errJSON
	}
	return a, err
}

// readTaken appends the trades of an answer to an order.
func readTaken(all []taken, trades []byte, pair uint16, buy bool) ([]taken, error) {
	if len(trades) == 2 { // []
		return all, nil
	}
	err := eachItem(trades, func(item []byte) error {
		t := taken{pair: pair, buy: buy}
		var bad error
		err := eachField(item, func(name, v []byte) bool {
			switch string(name) {
			case "tid":
				t.id = number(v)
			case "o_id":
				t.maker = number(v)
			case "price":
				t.price, bad = money.ParsePrice(v)
			case "amount":
				t.amount, bad = money.ParseAmount(v)
			}
			return bad == nil
		})
		if err == nil {
			err = bad
		}
		if err == nil && (t.id == 0 || t.maker == 0) {
			err = errJSON
		}
		all = append(all, t)
		return err
	})
	return all, err
}
