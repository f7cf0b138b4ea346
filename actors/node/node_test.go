package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"exchange/actors"
	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/actors/seal"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/state"
	"exchange/core/trading"
	"exchange/persistence"
	"exchange/persistence/memory"
	"exchange/persistence/replicated"
	"exchange/prove/memnet"
)

// A cluster is three nodes, each with a server that calls Lead.
type cluster struct {
	*testing.T
	net   *memnet.Network
	list  []replicated.Node
	disks []*memory.Disk
	dirs  []string
	nodes []*serving
	began chan *termAt // leads
	// change changes the options of a node; nil: they are the usual ones
	change func(i int, o *actors.Options)
	risen  *atomic.Bool // see risenFormat
}

// serving is a node that runs.
type serving struct {
	*Node
	store  persistence.Replica
	cancel context.CancelFunc
	ended  chan struct{} // closed when it no longer calls Lead
}

// termAt is a term and the index of its node.
type termAt struct {
	*actors.Engine
	at int
}

func newCluster(t *testing.T, change func(i int, o *actors.Options)) *cluster {
	t.Helper()
	const members = 3
	c := &cluster{T: t, net: new(memnet.Network), nodes: make([]*serving, members),
		began: make(chan *termAt, 1024), change: change}
	for i := range members {
		c.list = append(c.list, replicated.Node{Name: fmt.Sprint("n", i+1),
			Address: fmt.Sprint("127.0.0.1:", i+1)})
		c.disks, c.dirs = append(c.disks, memory.NewDisk()), append(c.dirs, t.TempDir())
	}
	c.startAll()
	t.Cleanup(c.killAll)
	return c
}

// startAll starts all nodes, each of which waits for another one.
func (c *cluster) startAll() {
	c.Helper()
	opened := make(chan error, len(c.list))
	for i := range c.list {
		go func() { opened <- c.start(i) }()
	}
	for range c.list {
		succeeds(c, <-opened)
	}
}

func (c *cluster) killAll() {
	c.Helper()
	for i := range c.nodes {
		c.kill(i)
	}
}

// start starts a node.
func (c *cluster) start(i int) error {
	ctx := c.Context()
	store, err := replicated.Open(ctx, replicated.Options{Cluster: "test", Name: c.list[i].Name,
		Nodes: c.list, Folder: c.dirs[i], Local: memory.Open(c.disks[i], persistence.Retention{}),
		Logger:   slog.New(slog.DiscardHandler),
		Listener: c.net.Listen(c.list[i].Address), Dial: c.net.Dial,
		Fatal: func(err error) { c.Error("fatal:", err) }})
	if err != nil {
		return err
	}
	o := testOptions(store)
	if c.change != nil {
		c.change(i, &o)
	}
	n, err := Start(ctx, o)
	if err != nil {
		return errors.Join(err, store.Close())
	}
	serves, stop := context.WithCancel(context.Background())
	s := &serving{n, store, stop, make(chan struct{})}
	c.nodes[i] = s
	go func() {
		defer close(s.ended)
		for {
			e, err := n.Lead(serves)
			if err != nil {
				return
			}
			c.began <- &termAt{e, i}
			<-e.Dead()
		}
	}()
	return nil
}

// kill ends a node as a crash does.
func (c *cluster) kill(i int) {
	c.Helper()
	if s := c.nodes[i]; s != nil {
		c.nodes[i] = nil
		s.cancel()
		s.abandon()
		<-s.ended
		if err := s.store.Close(); err != nil {
			c.Error(err)
		}
	}
}

// abandon ends the node's goroutines at once, as a crash would.
func (s *serving) abandon() {
	s.stopping.Store(true)
	if e := s.engine.Load(); e != nil {
		e.Abandon()
	}
	s.halt()
	<-s.journalDone
	s.life.End()
	<-s.work.Projector.Finished()
}

// next returns the next term.
func (c *cluster) next() *termAt {
	c.Helper()
	select {
	case r := <-c.began:
		return r
	case <-time.After(time.Minute):
		c.Fatal("no node leads")
	}
	return nil
}

// caughtUp waits until all nodes that run have folded what a term has released.
func (c *cluster) caughtUp(r *termAt) {
	c.Helper()
	eventually(c.T, "all nodes have folded all", func() bool {
		for _, s := range c.nodes {
			if s != nil && s.Folded() != r.Released() {
				return false
			}
		}
		return true
	})
}

// hash returns the hash of a node's fold, and checks it against Node.Hash.
func (s *serving) hash(t *testing.T) (sum [32]byte) {
	t.Helper()
	var at uint64
	if err := s.onSide(func() {
		at, sum = s.committed.State().Seq(), s.committed.State().Hash()
	}); err != nil {
		t.Error(err)
	}
	if seq, got, err := s.Hash(t.Context()); err != nil || seq != at || got != sum {
		t.Errorf("the fold is at %d with hash %x, and Hash returns %d, %x: %v", at, sum, seq, got,
			err)
	}
	return sum
}

// sold is a trader with a key at the current leader.
type sold struct {
	*testing.T
	nonce uint64
	ids   []uint64 // of orders that rest
}

func (s *sold) key(r *termAt) *directory.Key { return r.Key([]byte("key-of-ann")) }

// sell places an order that rests.
func (s *sold) sell(r *termAt) {
	s.Helper()
	s.nonce++
	var c *actors.Command
	var err error
	eventually(s.T, "the majority confirms the term", func() bool {
		c, err = r.Place(s.key(r), s.nonce, orderOf(r.Engine, trading.Sell, 100e8, coin))
		return !errors.Is(err, actors.ErrNotConfirmed)
	})
	succeeds(s, err)
	if c.Outcome() != actors.Accepted {
		s.Fatalf("an order is refused: %+v", c.Record())
	}
	s.ids = append(s.ids, c.Record().Order.ID)
	c.Free()
}

// has checks that all orders are open, and the account's funds.
func (s *sold) has(r *termAt) {
	s.Helper()
	s.nonce++
	orders := &committed.OpenOrders{Limit: 100}
	var err error
	eventually(s.T, "the majority confirms the term", func() bool {
		err = r.Ask(orders, s.key(r), s.nonce)
		return !errors.Is(err, actors.ErrNotConfirmed)
	})
	succeeds(s, err)
	open := map[uint64]bool{}
	for _, o := range orders.Orders {
		open[o.ID] = true
	}
	for _, id := range s.ids {
		if !open[id] {
			s.Errorf("order %d was accepted and is lost", id)
		}
	}
	if len(open) != len(s.ids) {
		s.Errorf("%d orders are open, %d were accepted", len(open), len(s.ids))
	}
}

// Orders accepted by a node exist when another one leads: after a crash of the first, after the
// lead was handed over, and after an orderly stop. A killed node restarts and follows, one that
// lost its term continues in the same process, and all nodes fold the same. A nonce that a read has
// used before a fail-over is refused after it.
func TestFailOverKeepsAcceptedOrders(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, nil)
		r := c.next()
		fund(t, r.Engine, "ann", map[string]money.Amount{"BTC": 10 * coin})
		ann := &sold{T: t}
		ann.sell(r)
		ann.has(r)
		used := ann.nonce

		c.caughtUp(r)
		eventually(t, "the nonce of the read is stored", func() bool {
			known := 0
			for _, s := range c.nodes {
				must[int](t)(0, s.store.Nonces(t.Context(), func(_ string, nonce uint64) {
					if nonce == used {
						known++
					}
				}))
			}
			return known == len(c.nodes)
		})
		killed := r.at
		c.kill(killed)
		r = c.next()
		if r.at == killed {
			t.Fatal("a node leads that was killed")
		}
		if err := r.Ask(new(committed.Wallet), ann.key(r), used); !errors.Is(err,
			committed.ErrNonce) {
			t.Errorf("a read with a nonce that was used before the fail-over: %v", err)
		}
		ann.has(r)
		ann.sell(r)
		succeeds(t, c.start(killed))
		c.caughtUp(r)
		r = c.handsOver(r, ann)
		ann.has(r)
		ann.sell(r)
		c.caughtUp(r)
		if err := r.VerifyAtRest(); err != nil {
			t.Error(err)
		}
		c.stop(r.at)
		r = c.next()
		ann.has(r)
		ann.sell(r)
		c.caughtUp(r)
		var sums [][32]byte
		for _, s := range c.nodes {
			if s != nil {
				sums = append(sums, s.hash(t))
			}
		}
		if len(sums) != 2 || sums[0] != sums[1] {
			t.Errorf("the nodes have folded other states: %x", sums)
		}
	})
}

// handsOver hands the lead over from a term, and returns the next one. The term before answers
// nothing then.
func (c *cluster) handsOver(before *termAt, ann *sold) (r *termAt) {
	t := c.T
	t.Helper()
	succeeds(t, c.nodes[before.at].store.Transfer(t.Context(), ""))
	r = c.next()
	if r.at == before.at {
		t.Fatal("the lead was handed over, and the same node leads")
	}
	select {
	case <-before.Dead():
	case <-time.After(time.Minute):
		t.Fatal("a term continues after the next one has begun")
	}
	if err := before.Ask(new(committed.Wallet), ann.key(before), ann.nonce+100); err == nil {
		t.Error("a read is answered by a term that is over")
	}
	if _, err := before.Place(ann.key(before), ann.nonce+100,
		orderOf(before.Engine, trading.Sell, 100e8, coin)); err == nil {
		t.Error("an order is taken by a term that is over")
	}
	return r
}

// stop stops a node in order.
func (c *cluster) stop(i int) {
	c.Helper()
	s := c.nodes[i]
	// while Stop waited for the mutex, the bubble's clock, for which a term may wait, would stand
	eventually(c.T, "no term is being built", func() bool {
		free := s.building.TryLock()
		if free {
			s.building.Unlock()
		}
		return free
	})
	if err := s.Stop(c.Context()); err != nil {
		c.Error(err)
	}
	<-s.ended
	if err := s.store.Close(); err != nil {
		c.Error(err)
	}
	c.nodes[i] = nil
}

// A record that no node can fold ends the folds, but not the votes: the nodes keep agreeing, and
// none serves.
func TestNodeWithFailedFoldStillVotes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, nil)
		r := c.next()
		fund(t, r.Engine, "ann", map[string]money.Amount{"BTC": coin})
		c.caughtUp(r)
		// an owner of another version
		data := event.BeginBatch(nil)
		record := event.Record{Kind: event.KindPair, TimeUs: 1,
			NewPair: event.Pair{Number: 99, Name: "A_B", Base: 1, Quote: 2}}
		data = record.Append(data)
		for _, s := range c.nodes {
			s.Node.opts.Exit = func(int) {} // of the leader
		}
		eventually(t, "an owner appends", func() bool {
			for _, s := range c.nodes {
				tok, last, err := s.store.Acquire(t.Context(), persistence.Claim{Owner: "another"})
				if err != nil {
					continue
				}
				bad := event.EndBatch(append([]byte(nil), data...), tok.Epoch(), last, 1)
				if s.store.Append(t.Context(), tok, last, last+1, bad) == nil {
					return true
				}
			}
			return false
		})
		for _, s := range c.nodes {
			select {
			case <-s.Dead():
				if s.Err() == nil {
					t.Error("a dead node has no reason")
				}
			case <-time.After(time.Minute):
				t.Fatal("a node folds an invalid record")
			}
		}
		eventually(t, "the nodes agree on", func() bool {
			for _, s := range c.nodes {
				if tok, _, err := s.store.Acquire(t.Context(),
					persistence.Claim{Owner: "another"}); err == nil {
					return s.store.Check(t.Context(), tok) == nil
				}
			}
			return false
		})
	})
}

// Nonces used by reads are refused by the next term even if the previous one ends in order before a
// projection is due.
func TestOrderlyEndOfTermStoresReadNonces(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, func(_ int, o *actors.Options) { o.Timing.Projection = time.Hour })
		r := c.next()
		fund(t, r.Engine, "ann", map[string]money.Amount{"BTC": coin})
		ann := &sold{T: t}
		ann.has(r) // a list has the projections written
		used := ann.nonce + 1
		succeeds(t, r.Ask(new(committed.Wallet), ann.key(r), used))
		c.stop(r.at)
		r = c.next()
		if err := r.Ask(new(committed.Wallet), ann.key(r), used); !errors.Is(err,
			committed.ErrNonce) {
			t.Errorf("a read with a nonce that was used before the hand-over: %v", err)
		}
	})
}

// stranger is the node of withStranger that has another server's key.
const stranger = 0

// claiming is a store that counts claims.
type claiming struct {
	persistence.Replica
	claims atomic.Int64
}

func (s *claiming) Acquire(ctx context.Context, claim persistence.Claim) (persistence.Token, uint64,
	error) {
	s.claims.Add(1)
	return s.Replica.Acquire(ctx, claim)
}

// withStranger is a cluster with a node that cannot serve once there is a key to open. Another one
// leads. claims counts those of the stranger.
func withStranger(t *testing.T) (c *cluster, r *termAt, claims *atomic.Int64) {
	t.Helper()
	var s claiming
	c = newCluster(t, func(i int, o *actors.Options) {
		if i == stranger {
			other := must[*seal.Sealer](t)(seal.New(bytes.Repeat([]byte{1}, seal.KeyBytes)))
			o.Sealer = func(bool) (*seal.Sealer, error) { return other, nil }
			s.Replica = o.Store.(persistence.Replica)
			o.Store = &s
		}
	})
	for r = c.next(); r.at == stranger; r = c.next() { // there is no key yet
		succeeds(t, c.nodes[r.at].store.Transfer(t.Context(), ""))
	}
	return c, r, &s.claims
}

// judging is a store that keeps why its node could not serve.
type judging struct {
	persistence.Replica
	why atomic.Pointer[error]
}

func (s *judging) Unfit(why error) {
	s.why.Store(&why)
	s.Replica.Unfit(why)
}

// unfit returns the last argument of Unfit; nil: fit, or never called.
func (s *judging) unfit() error {
	if why := s.why.Load(); why != nil {
		return *why
	}
	return nil
}

// A node reports to its store whether it could serve: when it starts, when another market part is
// applied, when it should serve, and when its fold has failed.
func TestNodeReportsWhetherItCouldServe(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var stores [3]judging
		var stranger, picky atomic.Int32 // has another server's key, cannot use a market part
		stranger.Store(-1)
		picky.Store(-1)
		const bad = "7"
		c := newCluster(t, func(i int, o *actors.Options) {
			stores[i].Replica = o.Store.(persistence.Replica)
			o.Store, o.Exit = &stores[i], func(int) {}
			if int(stranger.Load()) == i {
				other := must[*seal.Sealer](t)(seal.New(bytes.Repeat([]byte{1}, seal.KeyBytes)))
				o.Sealer = func(bool) (*seal.Sealer, error) { return other, nil }
			}
			o.Market = &actors.Market{
				Text: func(applied []byte, _ uint8) ([]byte, error) {
					if applied == nil {
						return []byte("1"), nil
					}
					return applied, nil
				},
				Use: func(text []byte, _ *actors.Options) error {
					if string(text) == bad && int(picky.Load()) == i {
						return actors.ErrConfig
					}
					return nil
				}}
		})
		r := c.next()
		fund(t, r.Engine, "ann", map[string]money.Amount{"BTC": coin})
		c.caughtUp(r)
		one, two := (r.at+1)%3, (r.at+2)%3
		picky.Store(int32(one))
		for _, x := range []struct {
			market string
			want   error
		}{{bad, actors.ErrConfig}, {"8", nil}} {
			succeeds(t, c.nodes[r.at].ApplyMarket(t.Context(), to(x.market)))
			eventually(t, "the node has the market part", func() bool {
				next, _ := c.nodes[one].store.Market()
				return string(next) == x.market
			})
			c.nodes[one].Recheck()
			if err := stores[one].unfit(); !errors.Is(err, x.want) || x.want == nil && err != nil {
				t.Errorf("with the market part %s: %v", x.market, err)
			}
		}
		if err := stores[r.at].unfit(); err != nil {
			t.Errorf("the leader: %v", err)
		}

		c.kill(two)
		stranger.Store(int32(two))
		succeeds(t, c.start(two))
		c.caughtUp(r)
		c.nodes[two].Recheck() // the missing records are there
		if err := stores[two].unfit(); !errors.Is(err, actors.ErrConfig) {
			t.Errorf("with another server's key: %v", err)
		}
		broken := errors.New("the fold is broken")
		c.nodes[two].fail(broken)
		c.nodes[two].setUnfit(nil)
		if err := stores[two].unfit(); !errors.Is(err, broken) {
			t.Errorf("without its fold: %v", err)
		}
	})
}

// A node that could not serve at its start is checked again when it has more records.
func TestUnfitNodeIsCheckedAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var stores [3]judging
		var least atomic.Uint64 // sequence that the state of a node must have to be served
		var picky atomic.Int32
		picky.Store(-1)
		c := newCluster(t, func(i int, o *actors.Options) {
			stores[i].Replica = o.Store.(persistence.Replica)
			o.Store = &stores[i]
			o.Check = func(s *state.State, _ func(*state.Key) ([]byte, error)) error {
				if int(picky.Load()) == i && s.Seq() < least.Load() {
					return actors.ErrConfig
				}
				return nil
			}
		})
		r := c.next()
		fund(t, r.Engine, "ann", map[string]money.Amount{"BTC": coin})
		c.caughtUp(r)
		one := (r.at + 1) % 3
		c.kill(one)
		picky.Store(int32(one))
		least.Store(c.nodes[r.at].Folded() + 1)
		succeeds(t, c.start(one))
		if err := stores[one].unfit(); !errors.Is(err, actors.ErrConfig) {
			t.Fatalf("behind: %v", err)
		}
		accounts := 0
		eventually(t, "the node could serve", func() bool {
			select {
			case r = <-c.began:
			default:
			}
			accounts++
			name := fmt.Sprint("later-", accounts)
			r.CreateAccount("test", name, "") //nolint:errcheck // the next may be made
			return stores[one].unfit() == nil
		})
	})
}

// The leader dies while a node that cannot serve has more of the log than the third. It sends that
// to the third one, which serves, and never owns the engine itself.
func TestUnfitNodeBringsOthersUpToDate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c, r, claims := withStranger(t)
		fund(t, r.Engine, "ann", map[string]money.Amount{"BTC": 10 * coin})
		c.caughtUp(r)
		behind := 3 - r.at
		c.kill(behind)
		ann := &sold{T: t}
		for range 3 {
			ann.sell(r)
		}
		before := claims.Load()
		c.kill(r.at)
		succeeds(t, c.start(behind))
		for r.at != behind {
			if r = c.next(); r.at == stranger {
				t.Fatal("a node serves that cannot open the secrets of keys")
			}
		}
		ann.has(r)
		ann.sell(r)
		if n := claims.Load() - before; n > 0 {
			t.Errorf("a node that cannot serve has claimed the engine %d times", n)
		}
	})
}

// A node with another server's key cannot open the others' sealed secrets. It follows, and hands
// over the lead when it gets it.
func TestUnfitNodeHandsOverLead(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c, r, _ := withStranger(t)
		fund(t, r.Engine, "ann", map[string]money.Amount{"BTC": coin})
		ann := &sold{T: t}
		for range 3 {
			c.caughtUp(r)
			store := c.nodes[r.at].store
			succeeds(t, store.Transfer(t.Context(), c.list[stranger].Name))
			// The previous term continues if its node gets the lead back: no other one has claimed
			// since.
			eventually(t, "another node serves", func() bool {
				select {
				case r = <-c.began:
				default:
				}
				if r.at == stranger {
					return true
				}
				ann.nonce++
				return r.Ask(new(committed.Wallet), ann.key(r), ann.nonce) == nil
			})
			if r.at == stranger {
				t.Fatal("a node serves that cannot open the secrets of keys")
			}
			ann.has(r)
		}
	})
}

// An audit compares the folds of a node that has folded nothing since its start.
func TestAuditBeforeFirstBatch(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, nil)
		r := c.next()
		fund(t, r.Engine, "ann", map[string]money.Amount{"BTC": coin})
		c.caughtUp(r)
		for i := range c.nodes {
			c.stop(i)
		}
		for len(c.began) > 0 { // leads between two stops
			<-c.began
		}
		c.startAll()
		r = c.next()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		report, err := r.Audit(ctx, nil, func(uint64, uint64) {})
		succeeds(t, err)
		if len(report.Differences) > 0 || report.Wallets != 1 {
			t.Errorf("%+v", report)
		}
	})
}

// A node whose store has ended, as after a removal, reports that to each caller of Lead, instead of
// ErrStopping.
func TestLeadReportsWhyStoreEnded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, nil)
		at := c.next().at
		s := c.nodes[at]
		c.nodes[at] = nil
		succeeds(t, s.store.Close())
		<-s.Ended()
		<-s.ended
		defer s.abandon()
		for range 64 { // both the node and its fold have ended, and either may be seen
			if _, err := s.Lead(t.Context()); err == nil || !errors.Is(err, s.Err()) {
				t.Fatalf("it ends with %v, and has ended with %v", err, s.Err())
			}
		}
	})
}
