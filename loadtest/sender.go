package loadtest

import (
	"exchange/loadtest/generator"
)

// A sender is the client of one generator. It chooses the requests of each connection and keeps the
// answers.
type sender struct {
	o            *Options
	generator    *generator.Generator
	model        *model
	conns        []*conn
	sockets      []*conn // the first connection of each socket
	writer       *writer
	stats        *stats
	availability []*availability // by the number of an address; shared by all senders
	witness      *witness        // shared by all senders; nil: none
	phase        generator.Phase
}

// A conn is a connection with its request in flight and the users that send on it in turn.
type conn struct {
	users     []*user
	at        int // number of its address
	turn      int
	readCount int

	user  *user  // of the request
	items []item // of the request: one, or those of a batch
}

// An item is one operation of a request, alone or in a batch.
type item struct {
	op    operation
	pair  *pair
	order int  // in the user's orders, of a place, a cancel or a change; -1: none
	rests bool // the order is open after the answer
	stage int  // in which the request was due
}

// run sends for a phase and waits for the answers.
func (l *sender) run(p generator.Phase) error {
	l.phase = p
	cpu, err := l.generator.Run(p)
	l.stats.cpu += cpu
	return err
}

// Request chooses the next request of a connection.
func (l *sender) Request(number, stage int) []byte {
	c := l.conns[number]
	l.writer.host = l.o.Addresses[c.at]
	c.turn++
	c.user, c.items = c.users[c.turn%len(c.users)], c.items[:0]
	share := l.model.rand.IntN(100)
	if share < l.o.Mix.Read {
		c.readCount++
		x := item{op: readOps[c.readCount%len(readOps)],
			pair: l.model.choose(c.user.pairs), order: -1,
			stage: stage}
		c.items = append(c.items, x)
		return l.writer.read(x.op, c.user, x.pair)
	}
	l.writer.begin()
	for {
		x := l.choose(c, share)
		x.stage = stage
		c.items = append(c.items, x)
		l.writer.add(x.op)
		if len(c.items) >= l.o.Batch {
			return l.writer.request(c.user, number)
		}
		share = l.o.Mix.Read + l.model.rand.IntN(100-l.o.Mix.Read)
	}
}

// choose chooses an order, a cancel or a change, and writes its fields. The first one of a request
// may choose another user.
func (l *sender) choose(c *conn, share int) item {
	m := l.o.Mix
	if level := l.level(); level > 0 {
		m.Cancel = 0 // the level decides
		if len(c.user.open) >= level {
			m.Cancel = 100
		}
	}
	ends := share < m.Read+m.Cancel
	if ends && c.hasOpen() {
		return l.end(c.user)
	}
	if len(c.user.open) >= mostOpen {
		l.stats.cancelsInstead++
		return l.end(c.user)
	}
	if ends {
		l.stats.ordersInstead++
	}
	u := c.user
	w := l.model.next(u.pairs)
	instructed := l.model.chooseInstruction(l.o.Instructed, &w)
	u.placed++
	o := sentOrder{price: priceOf(w), amount: amountOf(w), pair: uint16(w.pair.index), buy: w.buy,
		user: u.number, serial: u.placed, at: uint8(c.at),
		instruction: instructed}
	l.writer.place(&o, w.pair)
	return item{op: opPlace, pair: w.pair, order: u.keep(o)}
}

// end cancels or changes the user's oldest order.
func (l *sender) end(u *user) item {
	o := u.open[0]
	u.open = u.open[1:]
	x := item{op: opCancel, order: o.index}
	if x.order >= 0 {
		is := &u.orders[x.order]
		x.pair = l.model.pairOf(u.pairs, is.pair)
		if l.model.rand.IntN(100) < l.o.Instructed && is.instruction.mayChange() && !is.changed {
			x.op, is.changed, is.change = opAmend, true, unknown
			is.newPrice, is.newAmount = l.model.change(is, x.pair)
			l.writer.amend(o.id, is.newPrice, is.newAmount)
			return x
		}
		is.cancelSent, is.cancelOutcome = true, unknown // an earlier one was refused
	}
	l.writer.cancel(o.id)
	return x
}

// level returns the number of resting orders of each account; 0: the mix decides.
func (l *sender) level() int {
	if l.o.OpenOrders == 0 {
		return 0
	}
	return l.o.OpenOrders / l.o.Accounts
}

// over drops the order of a finished request, unless it rests. It does so without a verification at
// the end, so that a load of hours takes no more memory than one of minutes.
func (l *sender) over(u *user, x *item) {
	if l.o.NoVerify && x.order >= 0 && !x.rests {
		u.spare = append(u.spare, x.order)
	}
}

// hasOpen reports whether the user has an order to cancel. The first item of a request may switch
// to one of the next users in turn, who then owns the request.
func (c *conn) hasOpen() bool {
	if len(c.items) > 0 {
		return len(c.user.open) > 0
	}
	for range min(len(c.users), 8) {
		if c.user = c.users[c.turn%len(c.users)]; len(c.user.open) > 0 {
			return true
		}
		c.turn++
	}
	return false
}

// mostOpen is the maximum of resting orders of an account; then it cancels. With the orders in
// flight that stays below the usual limit of an account's open orders in one book, 5,000.
const mostOpen = 4_000
