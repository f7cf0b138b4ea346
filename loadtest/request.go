package loadtest

import (
	"strconv"

	"exchange/core/money"
	"exchange/loadtest/generator"
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

// readOps are the requests of the share of reads, in turn.
var readOps = [...]operation{opBook, opWallets, opTicker, opOrders, opTrades}

// A writer makes requests, in reused memory.
type writer struct {
	host    string // of the request's address
	run     []byte // prefix of this run's client ids
	batches bool   // orders, cancels and changes go in batches
	sockets bool   // they are events of Socket.IO
	op      operation
	form    []byte // fields of the newest command
	list    []byte // all of a batch, as JSON
	text    []byte // of an event
	out     []byte
	signer
}

func newWriter(o *Options, run string) *writer {
	return &writer{run: []byte(run), batches: o.Batch > 0, sockets: o.Sockets > 0,
		signer: *newSigner()}
}

// appendClientID appends the client_order_id of an order.
func appendClientID(b, run []byte, user, serial uint32) []byte {
	b = append(b, run...)
	b = strconv.AppendUint(append(b, '-'), uint64(user), 36)
	return strconv.AppendUint(append(b, '-'), uint64(serial), 36)
}

func (w *writer) place(o *sentOrder, p *pair) {
	w.form = o.fields(w.form[:0], func(b []byte) []byte {
		return appendClientID(b, w.run, o.user, o.serial)
	}, p)
}

func (w *writer) cancel(id uint64) {
	w.form = strconv.AppendUint(append(w.form[:0], "order="...), id, 10)
}

// Last parts of the paths of orders, cancels and changes, which are the names of events too, and
// their kinds in a batch.
var (
	commandNames = [...]string{opPlace: "order", opCancel: "order-cancel", opAmend: "order-amend"}
	itemKinds    = [...]string{opPlace: "place", opCancel: "cancel", opAmend: "amend"}
)

const batchName = "order-batch"

// begin starts a request for the commands added next.
func (w *writer) begin() { w.list = w.list[:0] }

// add adds the command whose fields were written last.
func (w *writer) add(op operation) {
	if w.op = op; !w.batches {
		return
	}
	if len(w.list) > 0 {
		w.list = append(w.list, ',')
	}
	w.list = append(append(append(w.list, `{"do":"`...), itemKinds[op]...), `",`...)
	w.list = append(appendMembers(w.list, w.form), '}')
}

// request makes the request, for a connection of the generator.
func (w *writer) request(u *user, conn int) []byte {
	name := commandNames[w.op]
	if w.batches {
		name = batchName
	}
	if w.sockets {
		return w.event(name, conn)
	}
	if w.batches {
		w.form = append(w.form[:0], "orders=%5B"...)
		w.form = append(appendEscaped(w.form, w.list), "%5D"...)
	}
	return w.post(name, u)
}

// event makes an event of Socket.IO with an acknowledgement id.
func (w *writer) event(name string, number int) []byte {
	b := strconv.AppendInt(append(w.text[:0], "42"...), int64(number), 10)
	b = append(append(append(b, `["`...), name...), `",{`...)
	if w.batches {
		b = append(append(append(b, `"orders":[`...), w.list...), ']')
	} else {
		b = appendMembers(b, w.form)
	}
	w.text = append(b, "}]"...)
	w.out = generator.AppendFrame(w.out[:0], w.text)
	return w.out
}

// appendMembers appends the fields of a form as members of an object, without escaping.
func appendMembers(b, form []byte) []byte {
	b = append(b, '"')
	for _, d := range form {
		switch d {
		case '=':
			b = append(b, `":"`...)
		case '&':
			b = append(b, `","`...)
		default:
			b = append(b, d)
		}
	}
	return append(b, '"')
}

// appendEscaped appends a text as a value of a form.
func appendEscaped(b, text []byte) []byte {
	const digits = "0123456789ABCDEF"
	for _, d := range text {
		switch {
		case d >= '0' && d <= '9', d >= 'a' && d <= 'z', d >= 'A' && d <= 'Z', d == '-', d == '_',
			d == '.':
			b = append(b, d)
		default:
			b = append(b, '%', digits[d>>4], digits[d&15])
		}
	}
	return b
}

// post makes a signed request of the form.
func (w *writer) post(name string, u *user) []byte {
	u.nonce++
	b := append(append(append(w.out[:0], "POST /api/v1/"...), name...), "/ HTTP/1.1\r\nHost: "...)
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
func readTaken(all []takerTrade, trades []byte, pair uint16, buy bool) ([]takerTrade, error) {
	if len(trades) == 2 { // []
		return all, nil
	}
	err := eachItem(trades, func(item []byte) error {
		t := takerTrade{pair: pair, buy: buy}
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

// eachResult calls fn with the answer to each item of a batch.
func eachResult(body []byte, fn func(generator.Answer)) error {
	var list []byte
	if err := eachField(body, func(name, v []byte) bool {
		if string(name) == "results" {
			list = v
		}
		return list == nil
	}); err != nil {
		return err
	}
	return eachItem(list, func(result []byte) error {
		var a generator.Answer
		err := eachField(result, func(name, v []byte) bool {
			switch string(name) {
			case "status":
				a.Status = int(number(v))
			case "body":
				a.Body = v
			}
			return true
		})
		if err == nil {
			fn(a)
		}
		return err
	})
}
