package actors

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/actors/mailbox"
)

// An account gets its wallet with the first message to it, from the fold as it is then: most
// accounts are idle, and a start need not wait for their wallets.
//
// No settlement may be left out meanwhile, and none may count twice. The journal's writer says
// which records it releases before it looks which wallets there are; a wallet is found before its
// opener asks which records are released. So the wallet either gets a settlement, or begins with a
// state that has it. What the mailbox has for it waits until the state comes, and settlements that
// are in the state are dropped.

// An opening starts wallets. Any goroutine may use it.
type opening struct {
	mu      sync.Mutex
	wallets *mailbox.Spawner // guarded by mu
	// the newest record whose settlements the journal's writer sends, or has sent
	releasing atomic.Uint64
}

// toWallet gives an account's wallet a message. Any goroutine may call it.
func (e *Engine) toWallet(a *directory.Account, message any) {
	to := a.Wallet()
	if to == nil {
		to = e.openWallet(a)
	}
	e.root.Send(to, message)
}

// openWallet starts the wallet of an account that has none, unless another goroutine just did.
func (e *Engine) openWallet(a *directory.Account) *actor.PID {
	o := &e.opening
	o.mu.Lock()
	defer o.mu.Unlock()
	if pid := a.Wallet(); pid != nil {
		return pid
	}
	pid, err := o.wallets.Spawn("wallet/"+strconv.FormatUint(uint64(a.ID), 10),
		&wallet{account: a, out: e, early: new(mailbox.FIFO[any])})
	if err != nil {
		panic(fmt.Sprintf("BUG: the wallet of account %s does not start: %v", a.Name, err))
	}
	a.SetWallet(pid)
	side := e.committed
	side.LookBehind(o.releasing.Load(), func() {
		begin := newWallet(side.State().Account(a.ID), side)
		begin.account, begin.out = a, e
		e.root.Send(pid, begin)
	})
	return pid
}

// begun reports whether an account's wallet has begun, and a look for a client order id that begins
// now knows what the wallet has begun with.
func (e *Engine) begun(a *directory.Account) bool {
	seq := a.WalletBegan()
	return seq != 0 && e.committed.Folded() >= seq
}

// openForLook returns once an account's wallet has begun. A look for a client order id that began
// earlier might miss an order that closed between the two. Meanwhile the look is pending, as one
// that asks the store. Errors: ErrTimeout, because the engine has ended or the committed side
// stands still.
func (e *Engine) openForLook(a *directory.Account) error {
	if a.Wallet() == nil {
		e.openWallet(a)
	}
	ctx, cancel := context.WithTimeout(context.Background(), e.opts.Timing.Request)
	defer cancel()
	if e.until(ctx, func() bool { return e.begun(a) }) != nil {
		e.meter.UnknownOutcomes.Add(1)
		return committed.ErrTimeout
	}
	return nil
}

// begin takes a message of a wallet that has not begun. With its state the wallet begins.
func (w *wallet) begin(message any) {
	switch m := message.(type) {
	case *wallet:
		early := w.early
		*w = *m
		w.account.WalletBegins(w.applied)
		for early.Len() > 0 {
			next := early.Pop()
			if s, is := next.(*settled); is && s.seq <= w.applied {
				settlements.Put(s)
				continue
			}
			w.receive(next)
		}
	case *Command, *commandBatch, *settled, *releasedCancel, *committed.Read, forgetClosed,
		*keyEnded, *probe:
		w.early.Push(m)
	}
}
