package loadtest

import (
	"exchange/loadtest/generator"
)

// A sender is the client of one generator. It chooses the requests of each connection and keeps the
// answers.
type sender struct {
	o         *Options
	generator *generator.Generator
	model     *model
	conns     []*conn
	writer    *writer
	stats     *stats
}

// A conn is a connection with its request in flight and the users that send on it in turn.
type conn struct {
	users []*user
	turn  int
	reads int

	op    operation
	user  *user
	pair  *pair
	order int  // in the user's orders, of a place, a cancel or a change; -1: none
	rests bool // the order is open behind the answer
}

// run sends for a phase and waits for the answers.
func (l *sender) run(p generator.Phase) error {
	cpu, err := l.generator.Run(p)
	l.stats.cpu += cpu
	return err
}

// Request chooses the next request of a connection.
func (l *sender) Request(number int) []byte {
	c := l.conns[number]
	c.turn++
	u := c.users[c.turn%len(c.users)]
	c.user, c.order, c.pair = u, -1, nil
	c.rests = false
	share := l.model.rand.IntN(100)
	m := l.o.Mix
	if level := l.level(); level > 0 && share >= m.Read {
		m.Cancel = 0 // the level decides
		if len(u.open) >= level {
			m.Cancel = 100
		}
	}
	switch {
	case share < m.Read:
		c.reads++
		c.op = reads[c.reads%len(reads)]
		c.pair = l.model.choose(u.pairs)
		return l.writer.read(c.op, u, c.pair)
	case share < m.Read+m.Cancel && c.hasOpen(&u) || len(u.open) >= mostOpen:
		c.user = u
		o := u.open[0]
		u.open = u.open[1:]
		c.op, c.order = opCancel, o.index
		if c.order < 0 {
			return l.writer.cancel(u, o.id)
		}
		is := &u.orders[c.order]
		c.pair = l.model.pairOf(u.pairs, is.pair)
		if l.model.rand.IntN(100) < l.o.Instructed && is.instruction.mayChange() && !is.changed {
			c.op, is.changed, is.change = opAmend, true, unknown
			is.newPrice, is.newAmount = l.model.change(is, c.pair)
			return l.writer.amend(u, o.id, is.newPrice, is.newAmount)
		}
		is.canceled = true
		return l.writer.cancel(u, o.id)
	}
	c.user = u
	w := l.model.next(u.pairs)
	instructed := l.model.chooseInstruction(l.o.Instructed, &w)
	u.placed++
	o := sent{price: priceOf(w), amount: amountOf(w), pair: uint16(w.pair.index), buy: w.buy,
		user: u.number, serial: u.placed,
		instruction: instructed}
	c.op, c.pair, c.order = opPlace, w.pair, u.keep(o)
	return l.writer.place(u, &o, w.pair)
}

// level returns how many orders of each account are to rest; 0: as many as the mix leaves.
func (l *sender) level() int {
	if l.o.OpenOrders == 0 {
		return 0
	}
	return l.o.OpenOrders / l.o.Accounts
}

// over forgets the order of a request that is over, unless it rests. It does so where nothing is
// verified at the end, so that a load of hours takes no more memory than one of minutes.
func (l *sender) over(c *conn) {
	if l.o.NoVerify && c.order >= 0 && !c.rests {
		c.user.spare = append(c.user.spare, c.order)
	}
}

// hasOpen finds a user with an order to cancel: *u, otherwise one of the users whose turns come
// next.
func (c *conn) hasOpen(u **user) bool {
	for range min(len(c.users), 8) {
		if *u = c.users[c.turn%len(c.users)]; len((*u).open) > 0 {
			return true
		}
		c.turn++
	}
	return false
}

// mostOpen is how many resting orders an account keeps at most; then it cancels. With the orders in
// flight that stays below the usual limit of an account's open orders in one book, 5,000.
const mostOpen = 4_000
