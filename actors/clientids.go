package actors

import (
	"exchange/actors/committed"
	"exchange/actors/directory"
)

// A client order id is taken by an open order, and by every order that was placed within
// Limits.ClientIDHold. The wallet knows the open orders. The handler looks the closed ones up at
// the committed side, before any actor sees the command, and its look knows all records up to one
// sequence. So the wallet also remembers the orders that closed above the oldest look in flight.
// Rounds tell which look that may be.

// sendNamed looks for a closed order with the client order id of a command, and sends the command
// with the answer to its wallet. After an error no actor has seen the command.
func (e *Engine) sendNamed(c *Command) error {
	if c.account.WalletBegan() == 0 {
		defer e.Announce(c.account.ID, c.order.clientID).End()
		if err := e.awaitWallet(c.account); err != nil {
			return err
		}
	}
	if !e.look(c) {
		pending, err := e.ask(c)
		defer pending.End()
		if err != nil {
			return err
		}
	}
	return e.send(c)
}

// look looks for a closed order with the client order id of a command, waiting for nothing. It
// returns false if ask must follow.
func (e *Engine) look(c *Command) bool {
	c.round = e.rounds.join()
	look, complete := e.FilterClientID(c.account.ID, c.order.clientID,
		e.limits().placedAfter(c.timeUs))
	c.looked(look)
	return complete
}

// ask looks on, after look. The caller ends the pending look when the command is in its wallet's
// mailbox, or has come to nothing.
func (e *Engine) ask(c *Command) (*committed.PendingLook, error) {
	look, pending, err := e.LookUpClientID(c.account.ID, c.order.clientID,
		e.limits().placedAfter(c.timeUs))
	c.looked(look)
	return pending, err
}

// looked notes a look that has begun behind the wallet. A wallet may begin in the midst of a batch.
// The committed side has noted the orders before that by then, and not yet the batch's end, so the
// look knows more than it says.
func (c *Command) looked(look committed.ClientIDLook) {
	look.Seq = max(look.Seq, c.account.WalletBegan())
	c.order.look = look
}

func (e *Engine) remembers(a *directory.Account, upTo uint64) {
	e.remembering.mu.Lock()
	defer e.remembering.mu.Unlock()
	e.remembering.line.Push(rememberingWallet{a, upTo})
}

// forget begins a new round, and tells the wallets that may forget now.
func (e *Engine) forget() {
	e.rounds.next(e.committed.Folded())
	known := e.rounds.known.Load()
	r := &e.remembering
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.line.Len() > 0 && r.line.First().upTo <= known {
		e.toWallet(r.line.Pop().account, forgetClosed{known})
	}
}
