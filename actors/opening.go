package actors

import (
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

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

// openAtOnce is how many open orders of a wallet are copied on the turn of the fold: some 0.5 ms of
// work. An account has no more than at the start before it has a wallet.
const openAtOnce = 1000

// spawn starts a wallet's actor, and lets others find it. The caller holds mu.
func (o *opening) spawn(w *wallet) (*actor.PID, error) {
	pid, err := o.wallets.Spawn("wallet/"+strconv.FormatUint(uint64(w.account.ID), 10), w)
	if err == nil {
		w.account.SetWallet(pid)
	}
	return pid, err
}

// beginWallets starts wallets from the fold, before there are others that use them.
func (e *Engine) beginWallets(accounts []*directory.Account) error {
	side, list := e.committed, make([]*wallet, len(accounts))
	err := mailbox.AtOnce(len(list), func(i int) error {
		list[i] = newWallet(side.State().Account(accounts[i].ID), side)
		list[i].account, list[i].out = accounts[i], e
		return nil
	})
	e.opening.mu.Lock()
	defer e.opening.mu.Unlock()
	for _, w := range list {
		if err == nil {
			w.account.WalletBegins(w.applied)
			_, err = e.opening.spawn(w)
		}
	}
	return err
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
	pid, err := o.spawn(&wallet{account: a, out: e, early: new(mailbox.FIFO[any])})
	if err != nil {
		panic(fmt.Sprintf("BUG: the wallet of account %s does not start: %v", a.Name, err))
	}
	side := e.committed
	side.AfterRecord(o.releasing.Load(), func() {
		if e.Err() != nil {
			return // what was sent to the wallet is unknown, and the fold may be another engine's
		}
		begin := newWallet(side.State().Account(a.ID), side)
		begin.account, begin.out = a, e
		e.root.Send(pid, begin)
	})
	return pid
}

// begin takes a message of a wallet that has not begun. With its state the wallet begins.
func (w *wallet) begin(message any) {
	switch m := message.(type) {
	case *wallet:
		early := w.early
		*w = *m
		w.account.WalletBegins(m.applied)
		for early.Len() > 0 {
			next := early.Pop()
			if s, is := next.(*settled); is && s.seq <= m.applied {
				settlements.Put(s)
				continue
			}
			w.receive(next)
		}
	case actor.SystemMessage, actor.AutoReceiveMessage, *actor.Started, *actor.Stopping,
		*actor.Stopped:
	default:
		w.early.Push(m)
	}
}
