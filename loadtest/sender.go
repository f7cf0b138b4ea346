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
	order int // in the user's orders, of a place or a cancel; -1: none
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
	share := l.model.rand.IntN(100)
	switch m := &l.o.Mix; {
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
		if c.order >= 0 {
			u.orders[c.order].canceled = true
			c.pair = l.model.pairOf(u.pairs, u.orders[c.order].pair)
		}
		return l.writer.cancel(u, o.id)
	}
	c.user = u
	w := l.model.next(u.pairs)
	u.placed++
	o := sent{price: priceOf(w), amount: amountOf(w), pair: uint16(w.pair.index), buy: w.buy,
		user: u.number, serial: u.placed}
	c.op, c.pair, c.order = opPlace, w.pair, len(u.orders)
	u.orders = append(u.orders, o)
	return l.writer.place(u, &o, w.pair)
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
