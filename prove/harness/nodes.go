package harness

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"exchange/actors/metrics"
	"exchange/gateway"
	"exchange/gateway/edge"
	"exchange/gateway/operator"
)

// A FakeCluster is a node whose view a test sets.
type FakeCluster struct {
	mu     sync.Mutex
	View   operator.Standing
	Fails  error    // of Transfer
	Asked  []string // nodes that should become leader
	Dialer func(node string) (net.Conn, error)
}

func (c *FakeCluster) Standing() operator.Standing {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.View
}

func (c *FakeCluster) Hash(context.Context) (seq uint64, hash [32]byte, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.View.Folded, [32]byte{0xab, 31: 0xcd}, c.Fails
}

func (c *FakeCluster) Dial(_ context.Context, node string) (net.Conn, error) {
	if c.Dialer == nil {
		return nil, fmt.Errorf("node %s cannot be reached", node)
	}
	return c.Dialer(node)
}

func (c *FakeCluster) Transfer(_ context.Context, to string, begins func()) error {
	begins()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Asked = append(c.Asked, to)
	if c.Fails == nil {
		c.View.Leader = to
	}
	return c.Fails
}

// change records the changes, and fails if set to.
func (c *FakeCluster) change(what ...string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Asked = append(c.Asked, strings.Join(what, " "))
	return c.Fails
}

func (c *FakeCluster) Add(_ context.Context, name, address string) error {
	return c.change("add", name, address)
}

func (c *FakeCluster) Promote(_ context.Context, name string) error {
	return c.change("promote", name)
}

func (c *FakeCluster) Remove(_ context.Context, name string) error {
	return c.change("remove", name)
}

func (c *FakeCluster) Replace(_ context.Context, old, name, address string) error {
	return c.change("replace", old, name, address)
}

// Apply accepts a market part, which is one key.
func (c *FakeCluster) Apply(_ context.Context, packed []byte) ([]string, error) {
	if len(packed) == 0 {
		return nil, c.change("apply", "nothing")
	}
	return []string{string(packed)}, c.change("apply", string(packed))
}

// Set changes the node's view.
func (c *FakeCluster) Set(change func(*operator.Standing)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.View)
}

// NewFakeCluster is the node a, a follower of b.
func NewFakeCluster() *FakeCluster {
	return &FakeCluster{View: operator.Standing{Node: "a", Leader: "b",
		LeaderURL: "https://b.example.org", Term: 7, Elections: 2, Applied: 40, Committed: 50,
		Folded: 30, LogBytes: 4096, Format: 2, Differs: []string{"pairs"},
		Tick: 50 * time.Millisecond, Links: new(metrics.Links),
		Nodes: []operator.NodeStanding{
			{Name: "a", Role: operator.Voter, Match: 45, Reads: 3,
				OwnMarket: true, Differs: true},
			{Name: "b", Role: operator.Voter, Silent: 1, Reads: 2, OwnMarket: true},
			{Name: "c", Role: operator.Voter, Silent: 9}}}}
}

// ANode is a harness whose exchange is a node.
func ANode(t *testing.T) (*Exchange, *FakeCluster) {
	c := NewFakeCluster()
	h := New(t, nil)
	// guesses of the token are counted by a clock that stands still
	h.Retune(func(o *edge.Options) { o.Cluster, o.Clock = c, new(TestClock).Ns.Load })
	h.Account("alice")
	return h, c
}

// Follower is a harness whose exchange is the node a, a follower of b, and whose commands go to an
// engine. The account bob has 1000 of BTC and of USDT.
func Follower(t *testing.T) *Exchange {
	t.Helper()
	h, _ := ANode(t)
	h.AccountAt("bob", "bob@example.org")
	for _, currency := range []string{"BTC", "USDT"} {
		h.Deposit("bob", "1000", currency, currency)
	}
	h.Gateway.SetFollower(h.Engine.Public, h.Engine)
	return h
}

// passing is the leader a, and b, a follower that relays operators' requests.
type passing struct {
	*Exchange
	Follower *gateway.Gateway
	B        *FakeCluster
	Leads    *FakeCluster
	Dialed   atomic.Int64
}

func NewPassing(t *testing.T) *passing {
	t.Helper()
	h, c := ANode(t)
	c.Set(func(s *operator.Standing) { s.Leader = "a" })
	p := &passing{Exchange: h, Leads: c, B: NewFakeCluster()}
	p.B.View.Node, p.B.View.Leader, p.B.View.LeaderURL = "b", "a", "https://a.example.org"
	p.B.Dialer = func(node string) (net.Conn, error) {
		if node != "a" {
			t.Errorf("node %s is dialed", node)
		}
		p.Dialed.Add(1)
		here, there := net.Pipe()
		go h.Gateway.ServeNode("b", there)
		return here, nil
	}
	p.Follower = p.Node(OperatorToken)
	return p
}

// Node makes the gateway of b, with a token of its own.
func (p *passing) Node(token string) *gateway.Gateway {
	g := gateway.New(edge.Options{Log: Quiet(), BodyBytes: 64 << 10, HeaderBytes: 8 << 10,
		Connections: 100,
		ReadTimeout: time.Minute, WriteTimeout: time.Minute, OperatorToken: token, Cluster: p.B})
	g.SetFollower(nil, nil)
	return g
}

// Serves lets operators reach a gateway.
func (p *passing) Serves(g *gateway.Gateway) *Network {
	l := NewNetwork(p.T)
	p.T.Cleanup(func() { l.Close() })
	go g.ServeOperator(l) //nolint:errcheck // ends with the listener
	return l
}
