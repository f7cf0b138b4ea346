package replicated

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"exchange/actors"
	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/ledger"
	"exchange/core/money"
	"exchange/core/trading"
	"exchange/prove/spec"
)

// A client is an account that sends one request after the other, to any node that serves.
type client struct {
	r          *liveCluster
	rng        *rand.Rand
	name       string
	nonce      uint64
	used       uint64         // by the newest command that was accepted
	reader     bool           // it sends no commands, so its nonces are those of reads
	lastEngine *actors.Engine // of its last request
	away       []uint64       // nonces of commands turned away: no record may contain them
	accepted   []string       // references of accepted deposits
	unsure     []string       // references of deposits without an answer
}

func (c *client) key() string { return "key-of-" + c.name }

// An endpoint serves a client: a leader's engine, or a follower.
type endpoint struct {
	*nodeLife
	actors.Commands
	public *actors.Public
	engine *actors.Engine // nil: the node follows
}

func endpointOf(l *nodeLife, e *actors.Engine) *endpoint { return &endpoint{l, e, e.Public, e} }

// pickEndpoint returns an endpoint; nil: none serves.
func (c *client) pickEndpoint() *endpoint {
	if c.rng.IntN(2) == 0 {
		l := c.r.nodes[c.rng.IntN(len(c.r.nodes))].life.Load()
		if l == nil {
			return nil
		}
		if a := l.follower.Load(); a != nil && a.Commands() != nil {
			return &endpoint{l, a.Commands(), a.Public, nil}
		}
	}
	l, e := c.r.any(c.rng)
	if e == nil {
		return nil
	}
	return endpointOf(l, e)
}

// keyAt returns the client's key at an endpoint; nil: it holds none.
func (c *client) keyAt(d *endpoint) *directory.Key {
	key := d.Key([]byte(c.key()))
	if key == nil && d.engine != nil {
		c.r.Errorf("a node leads without the key of account %s", c.name)
	}
	return key
}

// act sends a request to a node, and then reads at all others that believe they lead.
func (c *client) act() {
	d := c.pickEndpoint()
	if d == nil {
		return
	}
	c.peek()
	key := c.keyAt(d)
	if key == nil {
		return
	}
	if d.engine != nil && c.lastEngine != d.engine { // it must refuse its predecessor's nonces
		c.lastEngine = d.engine
		c.again(d, key)
	}
	action := c.rng.IntN(12)
	if c.reader {
		action = 1
	}
	switch action {
	case 0:
		c.deposit(d)
	case 1, 2:
		c.look(d, key)
	case 3, 4:
		c.cancel(d, key)
	case 5:
		c.again(d, key)
	default:
		c.place(d, key)
	}
	for _, n := range c.r.nodes { // the others must show that node's answer, too
		if l := n.life.Load(); l != nil {
			if other := l.engine.Load(); other != nil && other != d.engine {
				other := endpointOf(l, other)
				if key := c.keyAt(other); key != nil {
					c.look(other, key)
				}
			}
		}
	}
}

// peek reads the public state at any serving node. It must not be older than any state that a
// client had seen when the read began.
func (c *client) peek() {
	l := c.r.nodes[c.rng.IntN(len(c.r.nodes))].life.Load()
	if l == nil {
		return
	}
	p := l.follower.Load()
	if p == nil {
		return
	}
	j, h := c.r.judge, new(committed.Hash)
	from := j.seenSeq()
	if err := p.Ask(h, nil, 0); err != nil || l.dead.Load() {
		return
	}
	c.r.peeks.Add(1)
	if h.Err != nil {
		c.r.Error(h.Err)
	}
	j.Lock()
	defer j.Unlock()
	j.takeRead(c.name, l.at, h.Seq, from)
}

func (c *client) next() uint64 {
	c.nonce++
	return c.nonce
}

func (c *client) place(d *endpoint, key *directory.Key) {
	cmd, err := d.Do(actors.NewOrder(key, c.next(), &actors.OrderRequest{
		Pair:   d.public.Pair([]byte("BTC_USD")),
		Side:   []trading.Side{trading.Buy, trading.Sell}[c.rng.IntN(2)],
		Price:  money.Price(98+c.rng.IntN(5)) * 1e8,
		Amount: coin / 1000 * money.Amount(1+c.rng.IntN(5))}))
	if c.answered(d, cmd, err) && cmd.Outcome() != actors.Accepted {
		c.r.Errorf("an order of %s is refused: %+v", c.name, cmd.Record())
	}
	c.free(cmd, err)
}

func (c *client) cancel(d *endpoint, key *directory.Key) {
	j := c.r.judge
	j.Lock()
	open := slices.Sorted(maps.Keys(j.model.Account(c.name).OpenAt(j.model.Seq)))
	j.Unlock()
	if len(open) == 0 {
		return
	}
	cmd, err := d.Do(actors.NewCancel(key, c.next(), open[c.rng.IntN(len(open))],
		event.ClientID{}))
	c.answered(d, cmd, err)
	c.free(cmd, err)
}

// answered handles the answer to a command with the newest nonce. It reports false if no answer
// reaches the client.
func (c *client) answered(d *endpoint, cmd *actors.Command, err error) bool {
	switch {
	case d.dead.Load(), errors.Is(err, committed.ErrTimeout):
	case err != nil:
		c.away = append(c.away, c.nonce)
	default:
		c.r.judge.takeAnswer(c.name, d.at, cmd.Record())
		if cmd.Outcome() == actors.Accepted {
			c.used = c.nonce
			c.r.acks.Add(1)
			if d.engine == nil {
				c.r.forwarded.Add(1)
			}
		}
		return true
	}
	return false
}

func (c *client) free(cmd *actors.Command, err error) {
	if err == nil {
		cmd.Free()
	}
}

func (c *client) deposit(d *endpoint) {
	if d.engine == nil {
		return
	}
	reference := fmt.Sprint(c.name, len(c.accepted)+len(c.unsure))
	_, err := d.engine.Deposit("test", c.name, "BTC", coin, reference)
	if err != nil || d.dead.Load() {
		c.unsure = append(c.unsure, reference)
		return
	}
	c.accepted = append(c.accepted, reference)
	c.r.acks.Add(1)
	c.deposited(reference)
}

// deposited checks that a deposit was applied.
func (c *client) deposited(reference string) {
	j := c.r.judge
	j.Lock()
	defer j.Unlock()
	if _, there := j.model.Deposits[reference]; !there {
		c.r.Errorf("deposit %s was accepted, and no node has applied it", reference)
	}
}

// again sends a used nonce: of a command, or of a read that all nodes have applied.
func (c *client) again(d *endpoint, key *directory.Key) {
	j := c.r.judge
	j.Lock()
	used := max(c.used, j.reads[c.key()])
	j.Unlock()
	if used == 0 {
		return
	}
	if c.rng.IntN(2) == 0 {
		if err := d.public.Ask(new(committed.Wallet), key, used); err == nil && !d.dead.Load() {
			c.r.Errorf("nonce %d of %s is accepted again by a read", used, c.name)
		}
		return
	}
	cmd, err := d.Do(actors.NewOrder(key, used, &actors.OrderRequest{
		Pair: d.public.Pair([]byte("BTC_USD")), Side: trading.Sell, Price: 200e8,
		Amount: coin / 1000}))
	if err == nil && !d.dead.Load() {
		c.r.judge.takeAnswer(c.name, d.at, cmd.Record())
		if r := cmd.Record(); r.Kind != event.KindRefusal ||
			r.Refusal.Reason != event.RefusedNonce {
			c.r.Errorf("nonce %d of %s is accepted again: %+v", used, c.name, r)
		}
	}
	c.free(cmd, err)
}

// look reads the wallet or the open orders at the answer's sequence. It must not be below any that
// a client had seen when the read began.
func (c *client) look(d *endpoint, key *directory.Key) {
	if err := c.read(d, key); err == nil && !d.dead.Load() {
		c.r.acks.Add(1)
	}
}

func (c *client) read(d *endpoint, key *directory.Key) (err error) {
	j := c.r.judge
	from, nonce := j.seenSeq(), c.next()
	j.Lock()
	number := j.model.Key(c.key()).Number
	j.model.ReadNonces[number] = append(j.model.ReadNonces[number], nonce)
	j.Unlock()
	var wallet committed.Wallet
	orders := committed.OpenOrders{Limit: 1 << 20}
	if c.rng.IntN(2) == 0 {
		err = d.public.Ask(&wallet, key, nonce)
	} else {
		err = d.public.Ask(&orders, key, nonce)
	}
	if err != nil || d.dead.Load() {
		return err
	}
	j.Lock()
	defer j.Unlock()
	seq := max(wallet.Seq, orders.Seq)
	a := j.takeRead(c.name, d.at, seq, from)
	if wallet.Seq > 0 {
		err = sameFunds(wallet.Holdings, a.At(seq))
	} else {
		err = sameOrders(orders.Orders, a.OpenAt(seq))
	}
	if err != nil {
		c.r.Errorf("%s at %d: %v", c.name, seq, err)
	}
	return nil
}

func sameFunds(got []ledger.Holding, want spec.Funds) error {
	var w ledger.Wallet
	for _, h := range got {
		w.Put(h)
	}
	return want.Same(func(currency uint16) (balance, reserve money.Balance) {
		h := w.Get(currency)
		return h.Balance, h.Reserve
	})
}

func sameOrders(got []committed.Order, want map[uint64]spec.Order) error {
	for _, o := range got {
		if w, open := want[o.ID]; !open || o.Remaining != w.Remaining || o.Price != w.Price {
			return fmt.Errorf("order %+v is shown, not %+v", o, w)
		}
	}
	if len(got) != len(want) {
		return fmt.Errorf("%d orders are shown as open, not %d", len(got), len(want))
	}
	return nil
}

// atRest checks the answers to the client, once all nodes rest.
func (c *client) atRest() {
	for _, reference := range c.accepted {
		c.deposited(reference)
	}
	j := c.r.judge
	j.Lock()
	defer j.Unlock()
	key := j.model.Key(c.key()).Number
	for _, nonce := range c.away {
		if j.model.IsUsed(spec.KeyNonce{Key: key, Nonce: nonce}) {
			c.r.Errorf("nonce %d of %s was turned away, and its command is done", nonce, c.name)
		}
	}
}

// run sends requests until the clients are stopped.
func (c *client) run() {
	for {
		select {
		case <-c.r.stop:
			return
		case <-time.After(time.Duration(1+c.rng.Int64N(2000*(1+c.r.rests.Load()))) *
			time.Microsecond):
			c.act()
		}
	}
}
