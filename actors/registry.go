package actors

import (
	"errors"
	"slices"
	"sync/atomic"

	"exchange/actors/committed"
	"exchange/core/event"
	"exchange/core/money"
)

// A registry decides operators' commands about engine-wide unique things: accounts, keys, deposit
// references, pairs, maintenance. It decides on the fold, in the committed side's turns, without a
// copy: so it decides with nothing of its own in flight. Commands wait in a queue. Commands without
// a common name are decided as one round, and mostly durable with one append. The next round begins
// when all of them are folded.
type registry struct {
	*Engine
	index *committed.Index
	queue []*Command // for the next round, oldest first
	// references being looked up, or of an unanswered deposit, each with the deposits that wait for
	// it
	references map[string][]*Command
	lastTimeUs int64
	undecided  atomic.Int64 // commands

	round
}

// A decider decides a command on the fold, and fills in its record and answer. submit is false if
// nothing changes. Each follows the method that operators call.
type decider func(g *registry, c *Command) (submit bool, err error)

// A round holds the commands that were decided together and are not folded yet.
type round struct {
	inFlight       int // commands
	names          map[string]struct{}
	accounts, keys int // new ones
	deposits       uint64
	depositSums    map[uint16]money.Balance // by currency
}

// decidedAtOnce bounds a round, which takes a turn of the fold: some 1 ms.
const decidedAtOnce = 256

func newRegistry(e *Engine) *registry {
	g := &registry{Engine: e, references: map[string][]*Command{},
		lastTimeUs: e.committed.State().TimeUs()}
	g.index = committed.NewIndex(e.opts.Store, e.opts.Timing.Request/2, e.log, e.meter)
	return g
}

// turn runs a function in a turn of the fold, after everything released before. It does not wait.
func (g *registry) turn(do func()) { g.committed.AfterRecord(0, do) }

// enter hands a command to the registry. Any goroutine may call it.
func (g *registry) enter(c *Command) {
	g.undecided.Add(1)
	g.turn(func() { g.receive(c) })
}

// done takes back a command that is durable, or refused by its wallet. Any goroutine may call it;
// for a durable one only after the release of its batch.
func (g *registry) done(c *Command) {
	g.turn(func() {
		g.inFlight--
		g.answer(c, c.outcome)
		g.decideNext()
	})
}

// UserMessageCount returns the number of waiting commands.
func (g *registry) UserMessageCount() int { return int(g.undecided.Load()) }

// receive queues a command, a deposit after the lookup of its reference. Other commands do not wait
// for the store's answer.
func (g *registry) receive(c *Command) {
	if c.kind != event.KindDeposit {
		g.enqueue(c)
		return
	}
	if c.adminErr = g.depositable(&c.admin); c.adminErr != nil {
		g.undecided.Add(-1)
		g.finish(c, Refused)
		return
	}
	reference := c.admin.Reference
	if waiting, busy := g.references[reference]; busy {
		g.references[reference] = append(waiting, c)
		return
	}
	g.references[reference] = nil
	l := g.committed.LookUp(reference)
	if c.admin.lookup = l; l.Deposit.ID != 0 {
		g.enqueue(c)
		return
	}
	g.index.Start(l, func() { g.turn(func() { g.enqueue(c) }) })
}

func (g *registry) enqueue(c *Command) {
	g.queue = append(g.queue, c)
	g.decideNext()
}

// decideNext begins the next round, if none is in flight.
func (g *registry) decideNext() {
	for g.inFlight == 0 && len(g.queue) > 0 && g.Err() == nil {
		g.round = round{names: map[string]struct{}{}, depositSums: map[uint16]money.Balance{}}
		n := 0
		g.queue = slices.DeleteFunc(g.queue, func(c *Command) (decided bool) {
			if n < decidedAtOnce && g.decide(c) {
				n++
				return true
			}
			return false
		})
	}
}

// decide decides a command. It returns false if that must wait for the next round.
func (g *registry) decide(c *Command) bool {
	names := g.namesOf(c)
	for _, name := range names {
		if _, taken := g.names[name]; taken {
			return false
		}
	}
	if c.kind == event.KindEmail { // by the current clock: an earlier one may have been ahead
		c.admin.HoldEndsUs = c.timeUs + withdrawalHold.Microseconds()
	}
	// A halt has the time of its pair, which its book holds. A later time from a wrong clock would
	// expire the pair's orders.
	if c.kind != event.KindHalt {
		c.timeUs = max(c.timeUs, g.lastTimeUs)
		g.lastTimeUs = c.timeUs
	}
	c.begin(c.kind, 0)
	submit, err := c.decide(g, c)
	var limit *limitError
	if errors.As(err, &limit) && g.inFlight > 0 {
		return false // a refusal shows only durable facts
	}
	g.undecided.Add(-1)
	switch {
	case err != nil:
		c.adminErr = err
		g.answer(c, Refused)
	case !submit:
		g.answer(c, Accepted)
	default:
		for _, name := range names {
			g.names[name] = struct{}{}
		}
		g.submit(c)
	}
	return true
}

// submit sends on a command that has an effect.
func (g *registry) submit(c *Command) {
	g.inFlight++
	c.outcome = Accepted
	switch c.kind {
	case event.KindHalt: // the book decides: it orders the halt among its orders
		g.toBook(c)
	case event.KindFreeze, event.KindEmail, event.KindAccountClosed:
		// the wallet decides: it orders these among approvals and orders
		g.toWallet(g.dir.Account(c.admin.AccountID), c)
	default:
		c.encode()
		g.journal.submit(&c.entry)
	}
}

// answer finishes a command: from now on its handler owns it.
func (g *registry) answer(c *Command, o Outcome) {
	for _, next := range g.references[c.admin.Reference] { // other commands have none
		g.turn(func() { g.receive(next) })
	}
	delete(g.references, c.admin.Reference)
	g.finish(c, o)
}

// namesOf returns the names that a command changes, or that its decision depends on.
func (g *registry) namesOf(c *Command) []string {
	account, key := "account "+c.admin.Account, "key "+c.admin.Key
	switch c.kind {
	case event.KindHalt:
		return []string{"pair " + c.admin.Pair}
	case event.KindMaintenance, event.KindMailed, event.KindNote:
		return []string{c.kind.String()}
	case event.KindKey:
		return []string{account, key}
	case event.KindKeyRevoked:
		s := g.committed.State()
		if k := s.KeyByName(c.admin.Key); k != nil {
			account = "account " + s.Account(k.Account).Name
		}
		return []string{account, key}
	}
	return []string{account}
}
