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

// An account's first message starts its wallet from the current fold: most accounts are idle, and a
// start need not wait for their wallets.
//
// No settlement may be lost meanwhile, and none applied twice. The journal's writer publishes which
// records it releases before it looks up wallets. A wallet can be looked up before its opener reads
// which records are released. So the wallet either receives a settlement, or starts with a state
// that contains it. Its mailbox holds messages until the state arrives, and drops settlements that
// the state contains.

// A walletOpener starts wallets. Any goroutine may use it.
type walletOpener struct {
	mu      sync.Mutex
	wallets *mailbox.Spawner // guarded by mu
	// the newest record whose settlements the journal's writer sends, or has sent
	settlingSeq atomic.Uint64
}

// openAtOnce bounds the open orders copied for a wallet on the fold's turn: some 0.5 ms. Accounts
// with more at the start get their wallet then.
const openAtOnce = 1000

// spawn starts and publishes a wallet's actor. The caller holds mu.
func (o *walletOpener) spawn(w *wallet) (*actor.PID, error) {
	pid, err := o.wallets.Spawn("wallet/"+strconv.FormatUint(uint64(w.account.ID), 10), w)
	if err == nil {
		w.account.SetWallet(pid)
	}
	return pid, err
}

// startWallets starts wallets from the fold, before anything uses them.
func (e *Engine) startWallets(accounts []*directory.Account) error {
	side, list := e.committed, make([]*wallet, len(accounts))
	err := mailbox.AtOnce(len(list), func(i int) error {
		list[i] = newWallet(side.State().Account(accounts[i].ID), side)
		list[i].account, list[i].out = accounts[i], e
		return nil
	})
	e.opener.mu.Lock()
	defer e.opener.mu.Unlock()
	for _, w := range list {
		if err == nil {
			w.account.WalletBegins(w.applied)
			_, err = e.opener.spawn(w)
		}
	}
	return err
}

// toWallet sends a message to an account's wallet. Any goroutine may call it.
func (e *Engine) toWallet(a *directory.Account, message any) {
	to := a.Wallet()
	if to == nil {
		to = e.openWallet(a)
	}
	e.root.Send(to, message)
}

// openWallet starts an account's wallet, unless another goroutine just did.
func (e *Engine) openWallet(a *directory.Account) *actor.PID {
	o := &e.opener
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
	side.AfterRecord(o.settlingSeq.Load(), func() {
		if e.Err() != nil {
			return // its messages' outcome is unknown, and the fold may be another engine's
		}
		begin := newWallet(side.State().Account(a.ID), side)
		begin.account, begin.out = a, e
		e.root.Send(pid, begin)
	})
	return pid
}

// receiveEarly holds a message for a wallet without state. With its state the wallet starts.
func (w *wallet) receiveEarly(message any) {
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
