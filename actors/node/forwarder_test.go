package node

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"exchange/actors"
	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/trading"
	"exchange/core/wire"
	"exchange/persistence"
	"exchange/persistence/line"
)

// A branch is a follower with a client.
type branch struct {
	*testing.T
	*Follower
	actors.Commands
	key   *directory.Key
	nonce uint64
}

// branch makes a follower serve ann, who has an account.
func (c *cluster) branch(i int) *branch {
	c.Helper()
	a := c.follower(i)
	b := &branch{T: c.T, Follower: a, Commands: a.Commands()}
	b.connected()
	b.key = b.Commands.Key([]byte("key-of-ann"))
	if b.key == nil || b.key.Material != "secret" {
		c.Fatalf("the node has %+v of ann's key", b.key)
	}
	return b
}

func (b *branch) connected() {
	b.Helper()
	eventually(b.T, "commands are forwarded to the leader",
		func() bool { return b.Commands.Writable() == nil })
}

func (b *branch) next() uint64 {
	b.nonce++
	return b.nonce
}

// does sends a command, and returns how it ended.
func (b *branch) does(c *actors.Command) *actors.Command {
	b.Helper()
	return must[*actors.Command](b.T)(b.Commands.Do(c))
}

// placed is an order at a price.
func (b *branch) placed(side trading.Side, price money.Price, amount money.Amount,
	id string) *actors.Command {
	b.Helper()
	return actors.NewOrder(b.key, b.next(), b.order(side, price, amount, id))
}

// order is one of the first pair.
func (b *branch) order(side trading.Side, price money.Price, amount money.Amount,
	id string) *actors.OrderRequest {
	b.Helper()
	w := &actors.OrderRequest{Pair: b.Pairs()[0], Side: side, Price: price, Amount: amount}
	if id != "" {
		w.ClientID = must[event.ClientID](b.T)(event.NewClientID(id))
	}
	return w
}

// Commands of each kind are executed for a follower's client, or refused for the same reasons as at
// the leader, and its reads contain their effects.
func TestFollowerForwardsCommandsToLeader(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, nil)
		r := c.next()
		fund(t, r.Engine, "ann", map[string]money.Amount{"BTC": 100 * coin,
			"USD": 1_000_000 * coin})
		b := c.branch((r.at + 1) % len(c.nodes))

		sold := b.does(b.placed(trading.Sell, 100e8, coin, "first"))
		if sold.Outcome() != actors.Accepted || sold.Record().Order.ID == 0 {
			t.Fatalf("an order is refused: %+v", sold.Record())
		}
		first := sold.Record().Order.ID
		sold.Free()
		b.buysFrom(first)
		l, m := &c.nodes[(r.at+1)%len(c.nodes)].Links().To, &c.nodes[r.at].Links().From
		eventually(t, "all requests are counted on both sides", func() bool {
			n := l.Answered.Load()
			return n > 0 && n == m.Answered.Load() && l.InFlight.Load()+m.InFlight.Load() == 0
		})
		if n := l.Unknown.Load() + m.Unknown.Load() + l.Full.Load() + m.Full.Load(); n > 0 {
			t.Errorf("%d requests are not answered", n)
		}
	})
}

// buysFrom continues: the resting order is bought, and commands are refused.
func (b *branch) buysFrom(first uint64) {
	t := b.T
	bought := b.does(b.placed(trading.Buy, 101e8, 2*coin, ""))
	if o := bought.Record().Order; len(o.Trades) != 1 || o.Trades[0].Maker != first ||
		o.Trades[0].Price != 100e8 {
		t.Fatalf("it has traded %+v", o)
	}
	second := bought.Record().Order.ID
	bought.Free()

	refused := func(what string, c *actors.Command, reason uint8) *actors.Command {
		t.Helper()
		if c.Outcome() != actors.Refused || c.Record().Refusal.Reason != reason {
			t.Errorf("%s: %v %+v", what, c.Outcome(), c.Record().Refusal)
		}
		return c
	}
	x := refused("too little money", b.does(b.placed(trading.Sell, 100e8, 1000*coin, "")),
		event.RefusedFunds)
	if _, missing := x.Shortfall(); missing != (900 * coin).Balance() {
		t.Errorf("%v is missing", missing)
	}
	x = actors.NewOrder(b.key, 1, b.order(trading.Sell, 100e8, coin, ""))
	if x = refused("an old nonce", b.does(x), event.RefusedNonce); x.LastNonce() != b.nonce {
		t.Errorf("the last nonce is %d, and not %d", x.LastNonce(), b.nonce)
	}
	x = refused("a name that is taken", b.does(b.placed(trading.Sell, 100e8, coin, "first")),
		event.RefusedClientID)
	if x.TakenBy() != first {
		t.Errorf("order %d has the name", x.TakenBy())
	}
	refused("nothing to cancel", b.does(actors.NewCancel(b.key, b.next(), first, event.ClientID{})),
		event.RefusedNotOpen)
	if o, found, err := b.OrderOf(b.key.Account.ID, first); err != nil || !found ||
		o.Status != trading.StatusDone {
		t.Errorf("the order is %+v %v %v", o, found, err)
	}
	x = refused("a price of too many digits", b.does(actors.NewAmend(b.key, b.next(),
		&actors.AmendRequest{Order: second, Price: 101e8 + 1})), event.RefusedRules)
	if len(x.Faults()) != 1 || x.Faults()[0].Field != "price" {
		t.Errorf("the faults are %v", x.Faults())
	}
	if x = b.does(actors.NewAmend(b.key, b.next(), &actors.AmendRequest{Order: second,
		Price: 99e8})); x.Outcome() != actors.Accepted || x.Record().Kind != event.KindAmended {
		t.Errorf("an amend: %+v", x.Record())
	}
	if x = b.does(actors.NewSettings(b.key, b.next(), trading.SelfTradeCancelBoth)); x.Outcome() !=
		actors.Accepted {
		t.Errorf("settings: %+v", x.Record())
	}
	if x = b.does(actors.NewSwitch(b.key, b.next(), 60,
		actors.CancelFilter{})); x.Outcome() != actors.Accepted ||
		b.Commands.SwitchFires(x) != x.Record().Switch.DueUs {
		t.Errorf("a switch: %+v", x.Record())
	}
	b.several(second)
	b.reads()
}

// reads reads ann's private data.
func (b *branch) reads() {
	t := b.T
	wallet := must[*committed.Wallet](t)(b.Wallet(committed.Client{Key: b.key, Nonce: b.next()}))
	if len(wallet.Holdings) != 2 || wallet.Holdings[0].Balance != (100*coin).Balance() {
		t.Errorf("ann has %+v", wallet.Holdings)
	}
	old := committed.Client{Key: b.key, Nonce: b.nonce}
	var nonce *committed.NonceError
	if _, err := b.Wallet(old); !errors.As(err, &nonce) || nonce.Last != b.nonce {
		t.Errorf("a nonce that a read has used: %v", err)
	}
	if c := b.does(actors.NewCancelAll(b.key, b.nonce,
		actors.CancelFilter{})); c.Outcome() != actors.Refused ||
		c.Record().Refusal.Reason != event.RefusedNonce {
		t.Errorf("a nonce that a read has used: %+v", c.Record())
	}
	if _, err := b.Wallet(committed.Client{Key: b.key, Nonce: 1}); !errors.Is(err,
		committed.ErrNonce) {
		t.Errorf("an old nonce: %v", err)
	}
}

// several sends commands together.
func (b *branch) several(order uint64) {
	t, nonce := b.T, b.next()
	list := []*actors.Command{actors.NewOrder(b.key, nonce, b.order(trading.Sell, 200e8, coin,
		"one")),
		actors.NewOrder(b.key, nonce, b.order(trading.Sell, 200e8, coin, "one")),
		actors.NewOrder(b.key, nonce, b.order(trading.Sell, 201e8, coin, "")),
		actors.NewCancel(b.key, nonce, order, event.ClientID{})}
	errs := make([]error, len(list))
	if err := b.Commands.DoAll(list, errs); err != nil || errors.Join(errs...) != nil {
		t.Fatal(err, errs)
	}
	for i, want := range []actors.Outcome{actors.Accepted, actors.Refused, actors.Accepted,
		actors.Accepted} {
		if list[i].Outcome() != want {
			t.Errorf("item %d: %v %+v", i, list[i].Outcome(), list[i].Record())
		}
	}
	all := b.does(actors.NewCancelAll(b.key, b.next(), actors.CancelFilter{}))
	if n := len(all.CancelledOrders()); all.Outcome() != actors.Accepted || n != 2 {
		t.Errorf("%v, %d orders are cancelled", all.Outcome(), n)
	}
	if all = b.does(actors.NewCancelAll(b.key, b.next(),
		actors.CancelFilter{})); all.Outcome() != actors.Refused ||
		all.Record().Refusal.Reason != event.RefusedNoOrders {
		t.Errorf("nothing is to be cancelled: %+v", all.Record())
	}
}

// Funds shown by one node can be used at once at every other one: funds seen at a follower are
// spent through the leader and through the third node, and vice versa.
func TestSeenFundsAreUsableAtEveryNode(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, nil)
		r := c.next()
		ann := fund(t, r.Engine, "ann", nil)
		var at []*branch
		for i := range c.nodes {
			if i != r.at {
				at = append(at, c.branch(i))
			}
		}
		has := func(b *branch) bool {
			q := new(committed.Wallet)
			q.Account = ann.Account.ID
			succeeds(t, b.Ask(q, nil, 0))
			return len(q.Holdings) > 0 && !q.Holdings[0].Balance.Sub(q.Holdings[0].Reserve).IsZero()
		}
		const rounds = 60
		nonce := uint64(0)
		for i := range rounds {
			sees, spends := at[i%2], at[(i+1)%2]
			done := make(chan error, 1)
			go func() {
				_, err := r.Deposit("test", "ann", "BTC", coin, fmt.Sprint("round ", i))
				done <- err
			}()
			for !has(sees) {
			}
			nonce++
			spends.nonce = nonce - 1
			c := spends.does(spends.placed(trading.Sell, 100e8, coin, ""))
			if c.Outcome() != actors.Accepted {
				t.Fatalf("round %d: money that was seen cannot be used: %+v", i, c.Record().Refusal)
			}
			c.Free()
			succeeds(t, <-done)
		}
	})
}

// Requests in flight to a crashed leader have an unknown outcome, and the next leader gets later
// commands. Each acknowledged order exists exactly once.
func TestFollowerClientSurvivesLeaderCrash(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, nil)
		r := c.next()
		fund(t, r.Engine, "ann", map[string]money.Amount{"BTC": 100 * coin})
		b := c.branch((r.at + 1) % len(c.nodes))
		var answered, unknown []uint64
		var some sync.WaitGroup
		begun := make(chan struct{})
		some.Go(func() {
			for i := uint64(1); i <= 300; i++ {
				if i == 100 {
					close(begun)
				}
				w := &actors.OrderRequest{Pair: b.Pairs()[0], Side: trading.Sell, Price: 100e8,
					Amount: money.Amount(i)}
				x, err := b.Commands.Do(actors.NewOrder(b.key, i, w))
				switch {
				case err == nil:
					answered = append(answered, i)
					x.Free()
				case errors.Is(err, committed.ErrTimeout):
					unknown = append(unknown, i)
				default: // refused before any actor saw it
					leads := b.node.replica.Leads
					b.node.life.Until(t.Context(), //nolint:errcheck // the next command shows it
						func() bool { return b.Commands.Writable() == nil || leads() })
					if leads() { // the node is no longer a follower
						return
					}
				}
			}
		})
		<-begun
		c.kill(r.at)
		some.Wait()
		for r = c.next(); r.Err() != nil; r = c.next() {
		}
		orders := &committed.OpenOrders{Account: b.key.Account.ID, Limit: 1000}
		eventually(t, "the majority confirms the term",
			func() bool { return r.Ask(orders, nil, 0) == nil })
		open := map[money.Amount]int{}
		for _, o := range orders.Orders {
			open[o.Amount]++
		}
		for _, i := range answered {
			if open[money.Amount(i)] != 1 {
				t.Errorf("order %d was acknowledged, and is there %d times", i,
					open[money.Amount(i)])
			}
			delete(open, money.Amount(i))
		}
		for _, i := range unknown {
			delete(open, money.Amount(i))
		}
		if len(open) > 0 {
			t.Errorf("orders are there that were refused: %v", open)
		}
	})
}

// The orders of a socket reach the wallet in the order in which they passed its gate, even if some
// wait for a lookup.
func TestSocketCommandsKeepTheirOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, nil)
		r := c.next()
		fund(t, r.Engine, "ann", map[string]money.Amount{"BTC": 100 * coin})
		b := c.branch((r.at + 1) % len(c.nodes))
		var all sync.WaitGroup
		send := func(what string, x *actors.Command) {
			x.Through(openGate{})
			if err := b.Commands.(*forwarder).send([]*actors.Command{x}); err != nil {
				t.Fatal(err)
			}
			all.Go(func() {
				if !x.Await(&b.node.life) || x.Outcome() != actors.Accepted {
					t.Errorf("%s: %v %+v", what, x.Outcome(), x.Record())
				}
			})
		}
		const n = 120 // and all of it below the limit of an account
		for i := range n {
			id := must[event.ClientID](t)(event.NewClientID(fmt.Sprint("order-", i)))
			send(fmt.Sprint("order ", i), actors.NewOrder(b.key, 0, &actors.OrderRequest{
				Pair: b.Pairs()[0], Side: trading.Sell, Price: 100e8, Amount: coin / 100,
				ClientID: id}))
			if i%3 == 0 { // an amend may have to wait, and a cancel not
				send(fmt.Sprint("amend ", i), actors.NewAmend(b.key, 0, &actors.AmendRequest{
					ClientID: id, Amount: coin / 200}))
				send(fmt.Sprint("cancel ", i), actors.NewCancel(b.key, 0, 0, id))
			}
		}
		all.Wait()
		orders := &committed.OpenOrders{Account: b.key.Account.ID, Limit: 1000}
		if err := r.Ask(orders, nil, 0); err != nil || len(orders.Orders) != n-(n+2)/3 {
			t.Fatal(len(orders.Orders), err)
		}
		last := n
		for _, o := range orders.Orders { // newest first
			for last--; last%3 == 0; last-- {
			}
			if want := fmt.Sprint("order-", last); o.ClientID != want {
				t.Fatalf("an order is named %q, want %q", o.ClientID, want)
			}
		}
	})
}

// A session at a follower ends with its client, or with the connection of its node; then the node's
// clients are disconnected.
func TestSessionEndsWithItsConnection(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, nil)
		r := c.next()
		fund(t, r.Engine, "ann", map[string]money.Amount{"BTC": 100 * coin})
		b := c.branch((r.at + 1) % len(c.nodes))
		begins := func(number uint64) {
			t.Helper()
			x := b.does(actors.NewSession(b.key, &actors.Session{Number: number,
				Seconds: 60}).Through(openGate{}))
			if x.Outcome() != actors.Accepted {
				t.Fatalf("a session is refused: %v", x.Faults())
			}
			x.Free()
		}
		armed := func(want bool) {
			t.Helper()
			eventually(t, fmt.Sprint("the switch has a time: ", want), func() bool {
				var has bool
				if err := c.nodes[r.at].onSide(func() {
					for _, s := range c.nodes[r.at].committed.State().Account(
						b.key.Account.ID).Switches() {
						has = has || s.Session && s.DueUs != 0
					}
				}); err != nil {
					t.Fatal(err)
				}
				return has == want
			})
		}
		begins(1)
		begins(2)
		b.Commands.SessionLost(b.key, 1)
		armed(false)
		b.Commands.SessionLost(b.key, 2)
		armed(true)
		begins(3)
		armed(false)
		f := b.Commands.(*forwarder)
		f.mu.Lock()
		f.to.Close()
		f.mu.Unlock()
		armed(true)
		eventually(t, "the node sees that sessions were lost", f.lostSessions)
		if err := b.Await(t.Context()); !errors.Is(err, errSessions) {
			t.Errorf("the node continues: %v", err)
		}
	})
}

// A node whose fold lags too far behind fails reads like one that is cut off.
func TestNodeWithLateFoldIsNotCurrent(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, nil)
		r := c.next()
		fund(t, r.Engine, "ann", nil)
		b := c.branch((r.at + 1) % len(c.nodes))
		held, free, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		go func() { ended <- b.node.onSide(func() { close(held); <-free }) }()
		<-held
		committed.SetPatience(b.Door, time.Millisecond)
		must[actors.Admin](t)(r.Deposit("test", "ann", "BTC", coin, "late"))
		if err := b.Commands.AwaitCurrent(); !errors.Is(err, actors.ErrNotConfirmed) {
			t.Errorf("a node that is late: %v", err)
		}
		committed.SetPatience(b.Door, time.Minute)
		close(free)
		if err := errors.Join(<-ended, b.Commands.AwaitCurrent()); err != nil {
			t.Error(err)
		}
	})
}

// The nonces of reads are recorded at their wallets. A node that records one late could accept the
// nonce again as the leader.
func TestFollowerRecordsNoReadNonces(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, nil)
		r := c.next()
		fund(t, r.Engine, "ann", nil)
		b := c.branch((r.at + 1) % len(c.nodes))
		succeeds(t, b.Ask(new(committed.Wallet), b.key, b.next()))
		for i, n := range c.nodes {
			var noted, want int
			if i == r.at {
				want = 1
			}
			succeeds(t, n.onSide(func() { noted = committed.ReadNonces(n.committed) }))
			if noted != want {
				t.Errorf("node %d recorded nonces of %d keys, want %d", i, noted, want)
			}
		}
	})
}

// A follower applies accounts, keys, freezes, halts and maintenance.
func TestFollowerLearnsKeysFreezesAndMaintenance(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, nil)
		r := c.next()
		fund(t, r.Engine, "ann", nil)
		b := c.branch((r.at + 1) % len(c.nodes))
		fund(t, r.Engine, "bob", map[string]money.Amount{"BTC": coin})
		learns := func(what string, is func() bool) {
			t.Helper()
			succeeds(t, b.Ask(new(committed.StatusNow), nil, 0))
			if !is() {
				t.Errorf("the node has not applied %s", what)
			}
		}
		learns("bob", func() bool { return b.Commands.Key([]byte("key-of-bob")) != nil })
		bob := b.Commands.Key([]byte("key-of-bob"))
		for nonce := uint64(1); nonce <= 5; nonce++ { // the node applies both a moment later
			must[actors.Admin](t)(r.Freeze("test", "bob", true))
			if err := b.Ask(new(committed.Wallet), bob, nonce); !errors.Is(err,
				committed.ErrFrozen) {
				t.Errorf("a read of a frozen account: %v", err)
			}
			learns("a freeze", bob.Account.Frozen)
			must[actors.Admin](t)(r.Freeze("test", "bob", false))
			if err := b.Commands.AwaitCurrent(); err != nil || bob.Account.Frozen() {
				t.Error("an account that is free again counts as frozen", err)
			}
		}
		must[actors.Admin](t)(r.Halt("test", r.Pairs()[0].Name, true))
		learns("a halt", b.Pairs()[0].Halted)
		must[actors.Admin](t)(r.Halt("test", r.Pairs()[0].Name, false))
		learns("its end", func() bool { return !b.Pairs()[0].Halted() })
		r.maintains(t, true)
		learns("maintenance", func() bool {
			return b.Commands.Maintenance() != nil && b.Commands.Writable() == actors.ErrMaintenance
		})
		r.maintains(t, false)
		learns("its end", func() bool { return b.Commands.Writable() == nil })
		must[any](t)(r.RevokeKey("test", "key-of-bob"))
		learns("the end of a key", func() bool {
			return bob.Revoked() && b.Commands.Key([]byte("key-of-bob")) == nil
		})
		x := actors.NewCancelAll(bob, 1, actors.CancelFilter{})
		if _, err := b.Commands.Do(x); !errors.Is(err, committed.ErrKeyRevoked) {
			t.Errorf("a command of a key that has ended: %v", err)
		}
	})
}

// maintains begins or ends a maintenance.
func (r *termAt) maintains(t *testing.T, on bool) {
	t.Helper()
	if _, err := r.SetMaintenance(t.Context(), "test", event.Maintenance{On: on}); err != nil {
		t.Fatal(err)
	}
}

// A node that sends malformed messages loses its connection, and changes nothing.
func TestMalformedMessagesOfNodeChangeNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, nil)
		r := c.next()
		fund(t, r.Engine, "ann", map[string]money.Amount{"BTC": 100 * coin})
		_, part := c.nodes[r.at].store.Market()
		digest := sha256.Sum256(part)
		key := "key-of-ann"
		order := func(nonce uint64, gated byte, n uint64, rest ...byte) []byte {
			b := wire.AppendUints([]byte{forwardCommands}, 1)
			b = append(wire.AppendUints(wire.AppendText(b, key), nonce), gated)
			return append(wire.AppendUints(b, n), rest...)
		}
		approval := struct {
			Currency uint16
			Amount   money.Amount
			Address  string
			ClientID event.ClientID
			ID       uint64
			To       uint8
			Code     string
		}{ID: 1, To: event.WithdrawalApproved}
		for name, message := range map[string][]byte{
			"an unknown kind":             {77},
			"an answer":                   {forwardOutcomes, 1, 1, 0},
			"no commands":                 order(1, 0, 0),
			"very many commands":          order(1, 0, 1<<40),
			"commands that are not there": order(1, 0, 5),
			"a nonce and a gate": order(1, 1, 1, actors.AppendCommand(nil,
				actors.NewCancel(keyOfNobody,
					1, 1, event.ClientID{}))...),
			"an operator's kind": order(1, 0, 1, byte(event.KindDeposit), 1, 1, 1),
			"a pair that is not there": order(1, 0, 1, byte(event.KindOrder), 99, 1, 1, 1,
				0, 0),
			"a negative amount": order(1, 0, 1, append([]byte{byte(event.KindOrder), 1, 1,
				1}, wire.AppendUints(nil, 1<<63)...)...),
			"a withdrawal that is approved": order(1, 0, 1, wire.AppendValue([]byte{byte(
				event.KindWithdrawalStatus)}, &approval)...),
			"something after the commands": order(1, 0, 1, append(actors.AppendCommand(nil,
				actors.NewCancel(keyOfNobody, 1, 1, event.ClientID{})), 1, 2, 3)...),
		} {
			conn, err := c.strange(t, r, forwardVersion, digest[:])
			succeeds(t, err)
			l := line.New(conn, lineOptions(&actors.DefaultTiming))
			if err := l.Send(func(b []byte) []byte { return append(b, message...) }); err != nil {
				t.Fatal(name, err)
			}
			answered := errors.New("it is answered")
			if err := l.Run(func([]byte) error { return answered }); err == nil || err == answered {
				t.Error(name, err)
			}
			if err := r.Err(); err != nil {
				t.Fatal(name, err)
			}
		}
		_, version := c.strange(t, r, 99, digest[:])
		_, market := c.strange(t, r, forwardVersion, []byte("other"))
		for want, err := range map[string]error{"another market part": market,
			"version 5 and this program reads version 99": version} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("a greeting that is to be refused for %q: %v", want, err)
			}
		}
		orders := &committed.OpenOrders{Account: 1, Limit: 10}
		if err := r.Ask(orders, nil, 0); err != nil || len(orders.Orders) > 0 {
			t.Error(orders.Orders, err)
		}
	})
}

// strange opens a connection for commands as a stranger.
func (c *cluster) strange(t *testing.T, r *termAt, version uint64,
	digest []byte) (net.Conn, error) {
	t.Helper()
	here, there := net.Pipe()
	go c.nodes[r.at].accept("stranger", here)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := line.Greet(ctx, there, callCommands, version, digest)
	return there, err
}

// keyOfNobody is a key that no exchange has.
var keyOfNobody = &directory.Key{Account: new(directory.Account)}

// lingering is a store that delays the confirmation of appends.
type lingering struct {
	persistence.Replica
	until atomic.Pointer[chan struct{}] // nil: it says so at once
	alone atomic.Bool                   // nothing confirms that its node leads
}

func (s *lingering) Confirm(ctx context.Context, tok persistence.Token) (uint64, error) {
	if s.alone.Load() {
		return 0, context.DeadlineExceeded
	}
	return s.Replica.Confirm(ctx, tok)
}

func (s *lingering) Append(ctx context.Context, tok persistence.Token, prev, next uint64,
	batch []byte) error {
	err := s.Replica.Append(ctx, tok, prev, next, batch)
	if until := s.until.Load(); until != nil {
		<-*until
	}
	return err
}

// lingers is a cluster whose stores can linger, and a branch of it.
func lingers(t *testing.T, funds map[string]money.Amount) (c *cluster, r *termAt, b *branch,
	at *lingering) {
	stores := make([]lingering, 3)
	c = newCluster(t, func(i int, o *actors.Options) {
		stores[i].Replica = o.Store.(persistence.Replica)
		o.Store = &stores[i]
	})
	r = c.next()
	fund(t, r.Engine, "ann", funds)
	return c, r, c.branch((r.at + 1) % len(c.nodes)), &stores[r.at]
}

// linger makes the store delay the confirmation of appends until the returned function is called.
func (s *lingering) linger() (end func()) {
	until := make(chan struct{})
	s.until.Store(&until)
	return func() {
		s.until.Store(nil)
		close(until)
	}
}

// sees waits until the follower shows a durable deposit of ann's.
func (b *branch) sees(r *termAt) (deposited chan error) {
	b.Helper()
	deposited = make(chan error, 1)
	go func() {
		_, err := r.Deposit("test", "ann", "BTC", 100*coin, "late")
		deposited <- err
	}()
	eventually(b.T, "the money is seen", func() bool {
		q := committed.Wallet{Account: b.key.Account.ID}
		return b.Ask(&q, nil, 0) == nil && len(q.Holdings) > 0
	})
	return deposited
}

// A former leader does not report an unknown key as revoked: the new leader may have made it.
func TestOnlyLeaderReportsRevokedKeys(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c, r, b, store := lingers(t, map[string]money.Amount{"BTC": coin})
		c.caughtUp(r)
		actors.ForgetKey(r.Public, r.Key([]byte("key-of-ann")))
		id := must[event.ClientID](t)(event.NewClientID("a"))
		ask := map[string]func() error{
			"a command": func() error {
				_, err := b.Commands.Do(actors.NewCancelAll(b.key, b.next(), actors.CancelFilter{}))
				return err
			},
			"a command that has passed its gate": func() error {
				x := actors.NewCancelAll(b.key, 0, actors.CancelFilter{}).Through(passedGate{})
				_, err := b.Commands.Do(x)
				return err
			},
			"a read": func() error { return b.Ask(new(committed.Wallet), b.key, b.next()) },
			"a read of an order by its client id": func() error {
				q := &committed.OpenOrders{Account: b.key.Account.ID, ClientID: id, Limit: 1}
				return b.Ask(q, b.key, b.next())
			},
			"a fence": func() error { return b.Commands.DrainGates(b.key) },
		}
		for _, alone := range []bool{true, false} {
			store.alone.Store(alone)
			want := committed.ErrKeyRevoked
			if alone {
				want = actors.ErrNotConfirmed
			}
			for what, does := range ask {
				if err := does(); !errors.Is(err, want) {
					t.Errorf("%s, alone: %t: %v", what, alone, err)
				}
			}
		}
	})
}

// After Settle no command that passed a gate is in flight, whatever it waits for.
func TestSettleDrainsInFlightCommands(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, r, b, store := lingers(t, nil)
		end := store.linger()
		deposited := b.sees(r)
		x := actors.NewOrder(b.key, 0, &actors.OrderRequest{Pair: b.Pairs()[0], Side: trading.Sell,
			Price:  100e8,
			Amount: coin}).Through(openGate{})
		if err := b.Commands.(*forwarder).send([]*actors.Command{x}); err != nil {
			t.Fatal(err)
		}
		if err := b.DrainGates(b.key); err != nil {
			t.Error(err)
		}
		if !x.AwaitSince(time.Time{}, &b.node.life) { // the leader has given it up
			t.Error("a command is still in flight")
		}
		end()
		if err := <-deposited; err != nil {
			t.Error(err)
		}
	})
}

// A durable order whose answer is lost with the connection has an unknown outcome.
func TestBrokenConnectionLeavesUnknownOutcomes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c, r, b, store := lingers(t, map[string]money.Amount{"BTC": 100 * coin})
		to := &c.nodes[(r.at+1)%len(c.nodes)].Links().To
		from := &c.nodes[r.at].Links().From
		end := store.linger()
		ended := make(chan error, 1)
		order := b.placed(trading.Sell, 100e8, coin, "")
		go func() {
			_, err := b.Commands.Do(order)
			ended <- err
		}()
		eventually(t, "the order is durable", func() bool {
			q := committed.OpenOrders{Account: b.key.Account.ID, Limit: 10}
			return b.Ask(&q, nil, 0) == nil && len(q.Orders) == 1
		})
		if up, n, there := to.Up.Load(), to.InFlight.Load(), from.InFlight.Load(); up != 1 ||
			n != 1 || there != 1 {
			t.Errorf("%d connections, %d requests in flight, and %d there", up, n, there)
		}
		f := b.Commands.(*forwarder)
		f.mu.Lock()
		f.to.Close()
		f.mu.Unlock()
		if err := <-ended; err != committed.ErrTimeout {
			t.Errorf("the order is open, and its client gets %v", err)
		}
		if n, unknown := to.Answered.Load(), to.Unknown.Load(); n != 0 || unknown != 1 {
			t.Errorf("%d requests are answered, and %d have an unknown outcome", n, unknown)
		}
		end()
		eventually(t, "it is released", func() bool { return from.InFlight.Load() == 0 })
		if n, unknown := from.Answered.Load(), from.Unknown.Load(); n+unknown != 1 {
			t.Errorf("%d requests are answered there, and %d have an unknown outcome", n, unknown)
		}
	})
}

// Two commands in flight at once each get their own outcome.
func TestEachCommandGetsItsOwnAnswer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c, r, b, store := lingers(t, map[string]money.Amount{"BTC": 100 * coin})
		to := &c.nodes[(r.at+1)%len(c.nodes)].Links().To
		end := store.linger()
		do := func(x *actors.Command) <-chan actors.Outcome {
			ended := make(chan actors.Outcome, 1)
			go func() {
				x, err := b.Commands.Do(x)
				if err != nil {
					t.Error(err)
					ended <- 0
					return
				}
				ended <- x.Outcome()
			}()
			return ended
		}
		good := do(b.placed(trading.Sell, 100e8, coin, ""))
		eventually(t, "an order is in flight", func() bool { return to.InFlight.Load() == 1 })
		bad := do(b.placed(trading.Sell, 100e8, 1000*coin, ""))
		eventually(t, "another one was sent, too", func() bool {
			f := b.Commands.(*forwarder)
			f.mu.Lock()
			defer f.mu.Unlock()
			return f.number >= 2
		})
		end()
		if x := <-good; x != actors.Accepted {
			t.Errorf("the funded order gets %v", x)
		}
		if x := <-bad; x != actors.Refused {
			t.Errorf("the unfunded order gets %v", x)
		}
	})
}

// A follower may show records that the leader has yet to release. Commands wait for these,
// whichever way they arrive: decisions include everything their client may have seen.
func TestCommandsWaitForAllThatClientsMayHaveSeen(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, r, b, store := lingers(t, nil)
		end := store.linger()
		deposited := b.sees(r)
		sell := func(what string, to actors.Commands, key *directory.Key, nonce uint64) error {
			t.Helper()
			w := &actors.OrderRequest{Pair: b.Pairs()[0], Side: trading.Sell, Price: 100e8,
				Amount: coin}
			x, err := to.Do(actors.NewOrder(key, nonce, w))
			if err == nil && x.Outcome() != actors.Accepted {
				t.Errorf("%s: the money that was seen cannot be used: %+v", what,
					x.Record().Refusal)
			}
			return err
		}
		for what, to := range map[string]actors.Commands{"at the leader": r,
			"elsewhere": b.Commands} {
			key := to.Key([]byte("key-of-ann"))
			if err := sell(what, to, key, 1); err != actors.ErrNotConfirmed &&
				err != actors.ErrStalled {
				t.Errorf("%s: %v", what, err)
			}
		}
		end()
		eventually(t, "the store takes writes again", func() bool {
			return r.Writable() == nil && b.Commands.Writable() == nil
		})
		for nonce, to := range []actors.Commands{b.Commands, r} {
			key := to.Key([]byte("key-of-ann"))
			if err := sell("released", to, key, uint64(nonce)+1); err != nil {
				t.Error(err)
			}
		}
		if err := <-deposited; err != nil {
			t.Error(err)
		}
	})
}
