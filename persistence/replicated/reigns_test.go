package replicated

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"exchange/actors"
	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/actors/seal"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/core/trading"
	"exchange/persistence"
	"exchange/persistence/memory"
)

var reignSeeds = flag.Int("reigns", 2, "how many exchanges of three nodes are played")

const (
	reignTick    = 10 * time.Millisecond
	reignClients = 3
	coin         = money.Amount(1e8)
)

// A realm is three nodes with real engines. Their disks and the network between them are simulated:
// power fails, frames are lost, doubled, late and swapped, and links are cut one way or both. A
// seed draws the faults; what goroutines do meanwhile is not repeated.
type realm struct {
	*testing.T
	mu    sync.Mutex // of rng and cut
	rng   *rand.Rand
	cut   [voters][voters]bool // from, to
	nodes [voters]*reigning
	users []*client
	acks  atomic.Int64
	stop  chan struct{}
	ends  sync.WaitGroup // of crashed nodes
}

// reigning is the place of a node.
type reigning struct {
	r     *realm
	at    int
	disk  *disk
	local *memory.Disk
	life  atomic.Pointer[nodeLife] // nil: it is down
}

// A nodeLife is a node from its start to its crash.
type nodeLife struct {
	store  *store
	local  *memory.Store
	node   *actors.Node
	engine atomic.Pointer[actors.Engine] // nil: it does not reign
	dead   atomic.Bool                   // its power has failed
	ticker *time.Ticker
	cancel context.CancelFunc
	ended  chan struct{}
}

func (r *realm) draw(n int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rng.IntN(n)
}

// send takes a frame to a node, perhaps late, twice or not at all.
func (r *realm) send(from *nodeLife, at, to int, frame []byte) {
	r.mu.Lock()
	lost := from.dead.Load() || r.cut[at][to] || r.rng.IntN(100) == 0
	times, late := 1+r.rng.IntN(50)/49, time.Duration(r.rng.IntN(40)/37)*2*time.Millisecond
	r.mu.Unlock()
	if lost {
		return
	}
	frame = slices.Clone(frame)
	arrive := func() {
		if l := r.nodes[to].life.Load(); l != nil && !l.dead.Load() {
			l.store.receive(nodeNames[at], slices.Clone(frame))
		}
	}
	for range times {
		if late > 0 {
			time.AfterFunc(late, arrive)
		} else {
			arrive()
		}
	}
}

func reignOptions(s persistence.Store) (actors.Options, error) {
	sealer, err := seal.New(make([]byte, seal.KeyBytes))
	limits, timing := actors.DefaultLimits, actors.DefaultTiming
	limits.ClientIDFilter = 64 << 10
	timing.Request, timing.StallMax = 100*time.Millisecond, 3*time.Second
	return actors.Options{Store: s, Owner: s.String(), Limits: limits, Log: quiet,
		Timing: timing, Snapshot: actors.DefaultSnapshot,
		Withdrawal:  actors.DefaultWithdrawal,
		Sealer:      func(bool) (*seal.Sealer, error) { return sealer, nil },
		KeyMaterial: func(secret []byte) any { return string(secret) },
		Mail: func(context.Context, *actors.Mail) error {
			return errors.New("the mail server takes nothing")
		},
		Exit:       func(code int) { panic(fmt.Sprint("exit ", code)) },
		Currencies: []directory.Currency{{Code: "BTC"}, {Code: "USD"}},
		Pairs: []directory.PairRules{{Name: "BTC_USD", Base: "BTC", Quote: "USD",
			PricePrecision: 2, AmountPrecision: 8, MinimumOrderSize: 1,
			MaximumOrderSize: money.MaxAmount}}}, err
}

// start starts a node; it may be told to end before it has recovered.
func (n *reigning) start() {
	r := n.r
	l := &nodeLife{local: memory.Open(n.local, persistence.Retention{}),
		ticker: time.NewTicker(reignTick), ended: make(chan struct{})}
	if ok, err := n.disk.mem.Stat(folder); ok == nil || err != nil {
		must(r.T, newFormer(cluster, nodeNames[:voters], nodeNames[n.at], "", empty, nil,
			quiet).form(n.disk.mem, folder))
	}
	var err error
	l.store, err = open(options{dir: folder, files: n.disk.files(), local: l.local,
		send: func(to string, frame []byte) {
			r.send(l, n.at, slices.Index(nodeNames, to), frame)
		},
		ticks: l.ticker.C, now: time.Now, random: rand.IntN, logger: slog.New(quiet.Handler()),
		fatal: func(err error) { r.Error("fatal:", err) }, least: 64})
	must(r.T, err)
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	n.life.Store(l)
	go func() {
		defer close(l.ended)
		o, err := reignOptions(l.store)
		if err == nil {
			l.node, err = actors.StartNode(ctx, o)
		}
		for err == nil {
			var e *actors.Engine
			if e, err = l.node.Reign(ctx); err == nil {
				l.engine.Store(e)
				<-e.Dead()
				l.engine.Store(nil)
			}
		}
		if !l.dead.Load() && ctx.Err() == nil {
			r.Errorf("node %d has ended: %v", n.at, err)
		}
	}()
}

// crash ends a node as a power cut does. What it says from then on is not heard.
func (n *reigning) crash() {
	l := n.life.Load()
	if l == nil {
		return
	}
	l.dead.Store(true)
	n.r.mu.Lock()
	n.disk = n.disk.crash(n.r.T, n.r.rng)
	n.r.mu.Unlock()
	l.local.Close()
	n.local.Crash(n.r.draw(1+first(n.local.Unsynced())), 0)
	n.life.Store(nil)
	n.r.ends.Go(l.end)
}

func first(a, _ int) int { return a }

// end ends the goroutines of a node.
func (l *nodeLife) end() {
	l.ticker.Stop()
	l.cancel()
	l.store.Close()               //nolint:errcheck // it is of no use any more
	for ended := false; !ended; { // another reign may begin meanwhile
		if e := l.engine.Load(); e != nil {
			e.Abandon()
		}
		select {
		case <-l.ended:
			ended = true
		case <-time.After(time.Millisecond):
		}
	}
	if l.node != nil {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		l.node.Stop(ctx) //nolint:errcheck // as above
	}
}

// A client is an account that sends one request after the other, to any node that reigns.
type client struct {
	r     *realm
	rng   *rand.Rand
	name  string
	nonce uint64
	used  uint64          // by the newest command that was accepted
	open  map[uint64]bool // orders that were accepted and not cancelled; false: perhaps
	gone  map[uint64]bool // whose cancel was accepted
	count int             // orders that were accepted
	maybe int             // orders without an outcome
	money money.Amount    // BTC that were deposited and told so
	lost  money.Amount    // that were deposited, perhaps
	times int             // of deposits
}

// any returns a node that thinks that it reigns, and its engine.
func (r *realm) any(rng *rand.Rand) (*nodeLife, *actors.Engine) {
	for _, i := range rng.Perm(voters) {
		if l := r.nodes[i].life.Load(); l != nil {
			if e := l.engine.Load(); e != nil {
				return l, e
			}
		}
	}
	return nil, nil
}

// reigns waits until a node thinks that it reigns, or the clients are to end.
func (r *realm) reigns(rng *rand.Rand) {
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for _, e := r.any(rng); e == nil; _, e = r.any(rng) {
		select {
		case <-look.C:
		case <-r.stop:
			return
		}
	}
}

// act sends a request.
func (c *client) act() {
	l, e := c.r.any(c.rng)
	if e == nil {
		c.r.reigns(c.rng)
		return
	}
	key := e.Key([]byte("key-of-" + c.name))
	if key == nil {
		c.r.Errorf("a node reigns without the key of account %s", c.name)
		return
	}
	c.nonce++
	switch c.rng.IntN(6) {
	case 0:
		c.deposit(l, e)
	case 1, 2:
		c.look(l, e, key)
	case 3:
		for id, sure := range c.open {
			if sure {
				c.cancel(l, e, key, id)
				break
			}
		}
	default:
		c.place(l, e, key)
	}
	for _, n := range c.r.nodes { // what that node has told, no other one may not know
		if l := n.life.Load(); l != nil {
			if other := l.engine.Load(); other != nil && other != e {
				c.nonce++
				c.look(l, other, other.Key([]byte("key-of-"+c.name)))
			}
		}
	}
}

func (c *client) place(l *nodeLife, e *actors.Engine, key *directory.Key) {
	cmd, err := e.Place(key, c.nonce, &actors.OrderRequest{Pair: e.Pair([]byte("BTC_USD")),
		Side: trading.Sell, Price: 100e8, Amount: coin / 1000})
	if err != nil || l.dead.Load() {
		c.maybe++
		return
	}
	if cmd.Outcome() == actors.Accepted {
		id := cmd.Record().Order.ID
		if _, twice := c.open[id]; twice || c.gone[id] {
			c.r.Errorf("order %d is accepted twice", id)
		}
		c.open[id] = true
		c.count, c.used = c.count+1, c.nonce
		c.r.acks.Add(1)
	} else {
		c.r.Errorf("an order of %s is refused: %+v", c.name, cmd.Record())
	}
	cmd.Free()
}

func (c *client) cancel(l *nodeLife, e *actors.Engine, key *directory.Key, id uint64) {
	c.open[id] = false
	cmd, err := e.Cancel(key, c.nonce, id)
	if err != nil || l.dead.Load() {
		return
	}
	if cmd.Outcome() == actors.Accepted {
		delete(c.open, id)
		c.gone[id] = true
		c.used = c.nonce
		c.r.acks.Add(1)
	}
	cmd.Free()
}

func (c *client) deposit(l *nodeLife, e *actors.Engine) {
	c.times++
	_, err := e.Deposit("test", c.name, "BTC", coin, fmt.Sprint(c.name, c.times))
	if err != nil || l.dead.Load() {
		c.lost += coin
		return
	}
	c.money += coin
	c.r.acks.Add(1)
}

// look reads all open orders, and sends a nonce again that is used.
func (c *client) look(l *nodeLife, e *actors.Engine, key *directory.Key) {
	if c.used > 0 && c.rng.IntN(4) == 0 {
		err := e.Ask(new(committed.Wallet), key, c.used)
		if err == nil && !l.dead.Load() {
			c.r.Errorf("nonce %d of %s is taken twice", c.used, c.name)
		}
		return
	}
	q := &committed.OpenOrders{Limit: 1 << 20}
	if err := e.Ask(q, key, c.nonce); err != nil || l.dead.Load() {
		return
	}
	c.compare(q)
}

// compare compares the open orders with what was told. A read that an old leader answers lacks one.
func (c *client) compare(q *committed.OpenOrders) {
	seen := map[uint64]bool{}
	strange := 0
	for _, o := range q.Orders {
		seen[o.ID] = true
		if _, told := c.open[o.ID]; c.gone[o.ID] {
			c.r.Errorf("order %d of %s is open, and its cancel was accepted", o.ID, c.name)
		} else if !told {
			strange++
		}
	}
	for id, sure := range c.open {
		if sure && !seen[id] {
			c.r.Errorf("order %d of %s was accepted, and is not open", id, c.name)
		}
	}
	if strange > c.maybe {
		c.r.Errorf("%d open orders of %s were never told, and %d have no outcome", strange, c.name,
			c.maybe)
	}
}

// fault brings one about, and may wait for what it leads to.
func (r *realm) fault() {
	n := r.nodes[r.draw(voters)]
	switch r.draw(9) {
	case 0, 1: // a crash
		n.crash()
		r.serves(10)
		n.start()
	case 2: // of all
		for _, n := range r.nodes {
			n.crash()
		}
		for _, n := range r.nodes {
			n.start()
		}
	case 3, 4: // a node is cut off, one way or both
		way := r.draw(3)
		r.mu.Lock()
		for i := range r.nodes {
			r.cut[n.at][i], r.cut[i][n.at] = way != 1, way != 2
		}
		r.mu.Unlock()
		r.serves(10 + r.draw(20))
		r.heal()
	case 5, 6: // a node stands still, while its engine goes on
		goOn := make(chan struct{})
		if l := n.life.Load(); l != nil {
			go l.store.call(context.Background(), func(*node) { <-goOn }) //nolint:errcheck // gone
		}
		r.serves(10)
		close(goOn)
	default: // a hand-over
		if l := n.life.Load(); l != nil && l.store.Leads() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			l.store.Transfer(ctx, "") //nolint:errcheck // it may lead no more
			cancel()
		}
	}
	r.serves(10)
}

func (r *realm) heal() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cut = [voters][voters]bool{}
}

// until waits for a condition that the nodes bring about.
func (r *realm) until(what string, condition func() bool) {
	r.Helper()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for late := time.After(time.Minute); !condition(); {
		select {
		case <-look.C:
			if r.Failed() {
				r.FailNow()
			}
		case <-late:
			r.Fatalf("it did not happen: %s", what)
		}
	}
}

// serves waits until some more requests are accepted.
func (r *realm) serves(n int) {
	r.Helper()
	more := r.acks.Load() + int64(n)
	r.until("requests are accepted", func() bool { return r.acks.Load() >= more })
}

// newRealm starts three nodes, and makes the clients' accounts.
func newRealm(t *testing.T, seed uint64) *realm {
	r := &realm{T: t, rng: rand.New(rand.NewPCG(seed, 5)), stop: make(chan struct{})}
	for i := range r.nodes {
		r.nodes[i] = &reigning{r: r, at: i, disk: newDisk(), local: memory.NewDisk()}
	}
	for _, n := range r.nodes {
		n.start()
	}
	for i := range reignClients {
		c := &client{r: r, rng: rand.New(rand.NewPCG(seed, uint64(100+i))),
			name: fmt.Sprint("client", i), open: map[uint64]bool{}, gone: map[uint64]bool{}}
		r.users = append(r.users, c)
		r.until("the account of "+c.name+" is made", func() bool {
			_, e := r.any(c.rng)
			if e == nil {
				return false
			}
			_, err1 := e.CreateAccount("test", c.name, "")
			_, err2 := e.CreateKey("test", c.name, "key-of-"+c.name, "secret",
				event.AllPermissions, nil)
			_, err3 := e.Deposit("test", c.name, "BTC", 1000*coin, c.name)
			return errors.Join(err1, err2, err3) == nil || e.Key([]byte("key-of-"+c.name)) != nil &&
				err3 == nil
		})
	}
	return r
}

// play lets clients act under faults, and then compares all nodes.
func (r *realm) play(faults int) {
	var wg sync.WaitGroup
	for _, c := range r.users {
		wg.Go(func() {
			for {
				select {
				case <-r.stop:
					return
				default:
					c.act()
				}
			}
		})
	}
	end := sync.OnceFunc(func() {
		close(r.stop)
		wg.Wait()
	})
	r.Cleanup(func() {
		end()
		for _, n := range r.nodes {
			n.crash()
		}
		r.ends.Wait()
	})
	r.serves(10)
	for range faults {
		r.fault()
	}
	end()
	r.heal()
	r.compare()
}

// compare lets each node reign in turn. Each has all that was accepted, and the same state.
func (r *realm) compare() {
	hashes := map[[32]byte]int{}
	for _, n := range r.nodes {
		r.until(fmt.Sprintf("node %d reigns, and is compared", n.at), func() bool {
			e := n.life.Load().engine.Load()
			if e == nil {
				r.handOver(n)
				return false
			}
			h := new(committed.Hash)
			err := errors.Join(r.compareAt(e), e.VerifyAtRest(), e.Ask(h, nil, 0), h.Err)
			if err == nil {
				hashes[h.Hash]++
			}
			return err == nil
		})
	}
	if len(hashes) != 1 {
		r.Errorf("the nodes have %d states", len(hashes))
	}
}

// compareAt compares all orders with those that a node has. An error: it does not reign any more.
func (r *realm) compareAt(e *actors.Engine) error {
	for _, c := range r.users {
		c.nonce++
		q := &committed.OpenOrders{Limit: 1 << 20}
		if err := e.Ask(q, e.Key([]byte("key-of-"+c.name)), c.nonce); err != nil {
			return err
		}
		c.compare(q)
	}
	return nil
}

// handOver asks the node that leads to hand the lead over to another one.
func (r *realm) handOver(to *reigning) {
	for _, n := range r.nodes {
		if l := n.life.Load(); n != to && l.store.Leads() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			l.store.Transfer(ctx, nodeNames[to.at]) //nolint:errcheck // it is tried again
			cancel()
		}
	}
}

// Whatever happens to three nodes, nothing is lost that an engine has acknowledged, nothing is told
// by two, no leader of before answers a read, and all nodes come to the same state.
func TestReignsAreOneExchange(t *testing.T) {
	for seed := *fromSeed; seed < *fromSeed+uint64(*reignSeeds); seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := newRealm(t, seed)
			r.play(10)
			t.Logf("%d requests acknowledged", r.acks.Load())
		})
	}
}
