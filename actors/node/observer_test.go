package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"exchange/actors"
	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/actors/observing"
	"exchange/actors/seal"
	"exchange/core/money"
	"exchange/core/state"
	"exchange/core/trading"
	"exchange/persistence"
	"exchange/persistence/line"
)

// A testEdge takes what is signed with the secret itself: commands as they travel. A read counts
// the open orders.
type testEdge struct{ *observatory }

func (testEdge) Verify(_ *actors.Engine, key *directory.Key, s *directory.Signed) error {
	if s.Signature != nil && string(s.Signature) != key.Material.(string) {
		return &actors.RemoteAnswer{Status: 401, Unproven: true, Body: []byte("wrong")}
	}
	return nil
}

func (t testEdge) Commands(e *actors.Engine, key *directory.Key, nonce uint64,
	s *directory.Signed) (list []*actors.Command, err error) {
	if err = t.Verify(e, key, s); err != nil {
		return nil, err
	}
	for p := actors.Parse(s.Text); p.Len() > 0; {
		list = append(list, p.Command(e.Catalogue, key, nonce))
	}
	return list, nil
}

func (t testEdge) Answer(public []byte, nonce uint64, s *directory.Signed) *actors.RemoteAnswer {
	for _, n := range t.nodes {
		if n == nil || n.engine.Load() == nil {
			continue
		}
		e := n.engine.Load()
		key, q := e.Key(public), committed.OpenOrders{Limit: 100}
		err := t.Verify(e, key, s)
		if err == nil {
			err = e.Ask(&q, key, nonce)
		}
		if a, is := errors.AsType[*actors.RemoteAnswer](err); is {
			return a
		}
		return &actors.RemoteAnswer{Status: 200, Body: fmt.Append(nil, len(q.Orders), err)}
	}
	return &actors.RemoteAnswer{Status: 503}
}

// signed is a key of an observer with its signed request.
func signed(key *directory.Key, list ...*actors.Command) *directory.Key {
	s := &directory.Signed{Signature: []byte("secret")}
	for _, c := range list {
		s.Text = actors.AppendCommand(s.Text, c)
	}
	return key.With(s)
}

// does sends a signed command, and returns how it ended.
func (x *observer) does(c *actors.Command) *actors.Command {
	x.Helper()
	text := actors.AppendCommand(nil, c)
	return x.branch.does(actors.Parse(text).Command(x.Catalogue, signed(c.Key(), c), c.Nonce()))
}

// observable is a member's store, which the test connects observers with.
type observable struct {
	persistence.Replica
	take atomic.Pointer[func(from string, conn net.Conn)]
}

func (o *observable) AcceptObservers(take func(from string, conn net.Conn)) { o.take.Store(&take) }

// An observatory is a cluster with observers.
type observatory struct {
	*cluster
	stores []*observable
	cables *cables
}

// cables are all connections of observers.
type cables struct {
	mu    sync.Mutex
	seen  bytes.Buffer // that came through, either way; guarded by mu
	conns []net.Conn   // members' ends; guarded by mu
	ofs   []int        // whose; guarded by mu
	dials int          // guarded by mu
}

// tapped is a connection whose bytes are kept.
type tapped struct {
	net.Conn
	cables *cables
}

func (c tapped) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.cables.keep(b[:n])
	return n, err
}

func (c tapped) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.cables.keep(b[:n])
	return n, err
}

func (w *cables) keep(b []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen.Write(b)
}

// has reports whether a text came through.
func (w *cables) has(text string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return bytes.Contains(w.seen.Bytes(), []byte(text))
}

// cut cuts the connections to a member; -1: all.
func (w *cables) cut(i int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for k, c := range w.conns {
		if i < 0 || w.ofs[k] == i {
			c.Close()
		}
	}
}

func newObservatory(t *testing.T, change func(i int, o *actors.Options)) *observatory {
	t.Helper()
	v := &observatory{cables: new(cables), stores: make([]*observable, 3)}
	v.cluster = newCluster(t, func(i int, o *actors.Options) {
		v.stores[i] = &observable{Replica: o.Store.(persistence.Replica)}
		o.Store, o.Edge = v.stores[i], testEdge{v}
		if change != nil {
			change(i, o)
		}
	})
	return v
}

// kill ends a node as a crash does, and its observers' connections with it.
func (v *observatory) kill(i int) {
	v.Helper()
	v.stores[i].take.Store(nil)
	v.cluster.kill(i)
	v.cables.cut(i)
}

// dial connects an observer with a member, as the link between them does.
func (v *observatory) dial(from string) func(ctx context.Context, node string) (net.Conn, error) {
	return func(ctx context.Context, node string) (net.Conn, error) {
		for i := range v.list {
			if v.list[i].Name != node {
				continue
			}
			take := v.stores[i].take.Load()
			if take == nil {
				break
			}
			conn, other := v.net.Pipe()
			v.cables.mu.Lock()
			v.cables.conns, v.cables.ofs = append(v.cables.conns, other), append(v.cables.ofs, i)
			v.cables.dials++
			v.cables.mu.Unlock()
			go (*take)(from, other)
			return tapped{conn, v.cables}, nil
		}
		return nil, fmt.Errorf("%s takes no observers", node)
	}
}

// An observer is a node that is no member, and a client of it.
type observer struct {
	*branch
	node  *Node
	store *observing.Store
}

// observe starts an observer.
func (v *observatory) observe(name string, change func(o *actors.Options)) *observer {
	v.Helper()
	ctx := v.Context()
	var names []string
	for _, n := range v.list {
		names = append(names, n.Name)
	}
	o := testOptions(nil)
	store := must[*observing.Store](v.T)(observing.Open(ctx, observing.Options{Name: name,
		Nodes: names, Dial: v.dial(name), Log: o.Log, Silence: o.Timing.OwnerStale}))
	o.Store = store
	o.Sealer = func(bool) (*seal.Sealer, error) { return nil, errors.New("an observer has no key") }
	if change != nil {
		change(&o)
	}
	x := &observer{node: must[*Node](v.T)(Start(ctx, o)), store: store}
	v.Cleanup(func() {
		x.node.halt()
		store.Close()
		<-x.node.journalDone
		x.node.life.End()
		<-x.node.work.Projector.Finished()
	})
	return x
}

// serves has the observer serve ann.
func (x *observer) serves(t *testing.T) *observer {
	t.Helper()
	var a *Follower
	eventually(t, "the observer serves public data", func() (ok bool) {
		var err error
		a, err = x.node.Follow(t.Context())
		return err == nil
	})
	t.Cleanup(a.End)
	nonce := uint64(0)
	if x.branch != nil {
		nonce = x.branch.nonce
	}
	x.branch = &branch{T: t, Follower: a, Commands: a.Commands(), nonce: nonce}
	x.connected()
	if x.key = x.Commands.Key([]byte("key-of-ann")); x.key == nil || x.key.Material != nil {
		t.Fatalf("the observer has %+v of ann's key", x.key)
	}
	return x
}

// stateOf returns a state as observers have it.
func (n *Node) stateOf(t *testing.T) (seq uint64, image []byte) {
	t.Helper()
	if err := n.onSide(func() {
		s := n.committed.State()
		seq = s.Seq()
		if err := state.WithholdImage(s.AppendTo(nil), func(piece []byte) bool {
			image = append(image, piece...)
			return true
		}); err != nil {
			t.Error(err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	return seq, image
}

// sameAs checks that the observer reaches the leader's state at rest.
func (x *observer) sameAs(r *termAt, c *cluster) {
	x.Helper()
	eventually(x.T, "the observer has folded all",
		func() bool { return x.node.Folded() == r.Released() })
	seq, image := c.nodes[r.at].stateOf(x.T)
	if at, own := x.node.stateOf(x.T); at != seq || !bytes.Equal(own, image) {
		x.Errorf("the observer has another state at %d than the leader at %d", at, seq)
	}
}

// An observer shows everything acknowledged, forwards its clients' commands, and has the state of
// the leader, while that is killed, and connections are cut.
func TestObserverServesLikeFollower(t *testing.T) {
	bubble(t, func(t *testing.T) {
		v := newObservatory(t, nil)
		r := v.next()
		fund(t, r.Engine, "ann", map[string]money.Amount{"BTC": 100 * coin,
			"USD": 1_000_000 * coin})
		x := v.observe("o1", nil).serves(t)
		placed := 0
		place := func() {
			t.Helper()
			done := x.does(x.placed(trading.Sell, 100e8, coin, ""))
			if done.Outcome() != actors.Accepted {
				t.Fatalf("an order is refused: %+v", done.Record())
			}
			done.Free()
			placed++
			read := signed(x.key)
			read.Signed.Reads = true
			answer, err := x.Commands.Verify(read, x.branch.next())
			if err != nil || string(answer.Body) != fmt.Sprint(placed, nil) {
				t.Fatalf("the answer about %d open orders is %+v, %v", placed, answer, err)
			}
		}
		for range 5 {
			place()
		}
		x.sameAs(r, v.cluster)
		x.reconnects(func() { v.cables.cut(-1) })
		place()
		x.reconnects(func() {
			v.kill(r.at)
			r = v.next()
		})
		place()
		x.sameAs(r, v.cluster)
	})
}

// line is the connection that commands take; nil: there is none.
func (x *observer) line() *line.Line {
	f := x.Commands.(*forwarder)
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.to
}

// reconnects breaks connections by fn, and waits for the next ones.
func (x *observer) reconnects(what func()) {
	x.Helper()
	before, link := x.line(), x.store.Link()
	what()
	eventually(x.T, "there is another connection to the leader", func() bool {
		now := x.line()
		return now != nil && now != before
	})
	eventually(x.T, "the observer follows a member", func() bool {
		now := x.store.Link()
		return now != 0 && (now != link || x.Follower.AwaitCurrent() == nil)
	})
}
