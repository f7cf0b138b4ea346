package serve

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"exchange/actors"
	"exchange/actors/node"
	"exchange/actors/observing"
	"exchange/config"
	"exchange/gateway/operator"
	"exchange/persistence"
)

// A clusterView is this process's view of its cluster, for the gateway, with the operator's
// requests to hand over leadership. It exists before the node does.
type clusterView struct {
	name, url string
	observer  bool
	tick      time.Duration
	joined    atomic.Pointer[joined] // nil: the node has not joined yet
	transfers chan *transfer
	market    *market
	starting  atomic.Bool // see operator.Standing

	unfit atomic.Pointer[error] // lasting reason why this follower does not serve; nil: none
}

// joined is a node that takes part.
type joined struct {
	replica persistence.Replica
	node    *node.Node // nil: it only votes
	fault   error      // the reason why it only votes
}

// A transfer hands leadership over to a node, "" to any. done has room for the answer.
type transfer struct {
	ctx  context.Context
	to   string
	done chan error
}

// newClusterView returns nil for an exchange on one machine.
func newClusterView(cfg *config.Config, log *slog.Logger) *clusterView {
	c := &cfg.Cluster
	if !c.On() {
		return nil
	}
	return &clusterView{name: c.Node, url: c.PublicURL, observer: c.Observer,
		tick:      config.Ms(c.TickMs),
		transfers: make(chan *transfer), market: newMarket(cfg, log)}
}

// owner names this node, and its URL for clients, in its claims: so all nodes receive both in the
// journal's order.
func (p *clusterView) owner() string { return strings.TrimSpace(p.name + " " + p.url) }

// Standing implements operator.Cluster.
func (p *clusterView) Standing() operator.Standing {
	s := operator.Standing{Node: p.name, Observer: p.observer, Tick: p.tick,
		Starting: p.starting.Load()}
	j := p.joined.Load()
	if j == nil {
		return s
	}
	r := j.replica.Standing()
	s.Leader, s.Term, s.Elections, s.Applied, s.Committed = r.Leader, r.Term, r.Elections,
		r.Applied, r.Committed
	s.LogBytes, s.Format, s.Impossible = r.LogBytes, r.Format, r.Impossible
	s.ClockAhead, s.ClockWrong = r.ClockAhead, r.ClockWrong
	fault := j.fault
	if j.node != nil {
		s.Folded, fault, s.Links = j.node.Folded(), j.node.Err(), j.node.Links()
	}
	if o, ok := j.replica.(*observing.Store); ok {
		s.FedBatches, s.FedBytes = o.Fed()
	}
	if unfit := p.unfit.Load(); fault == nil && unfit != nil {
		fault = *unfit
	}
	if fault != nil {
		s.Fault = fault.Error()
	}
	if beat, err := j.replica.Beat(context.Background()); err == nil {
		if name, url, _ := strings.Cut(beat.Owner, " "); name == s.Leader {
			s.LeaderURL = url
		}
	}
	s.Differs = p.market.differs()
	for _, n := range r.Peers {
		s.Nodes = append(s.Nodes, operator.NodeStanding{Name: n.Name, Address: n.Address,
			Role: string(n.Role), Replaces: n.Replaces, Newest: n.Newest, Match: n.Match,
			Silent: n.SilentTicks, Reads: n.Reads, Unfit: n.Unfit, OwnMarket: n.Market != 0,
			Differs: n.Differs})
	}
	return s
}

// Hash implements operator.Cluster.
func (p *clusterView) Hash(ctx context.Context) (seq uint64, hash [sha256.Size]byte, err error) {
	j := p.joined.Load()
	if j == nil || j.node == nil {
		return 0, hash, errors.New("it does not take part yet, or cannot fold")
	}
	return j.node.Hash(ctx)
}

// Dial implements operator.Cluster.
func (p *clusterView) Dial(ctx context.Context, to string) (net.Conn, error) {
	j := p.joined.Load()
	if j == nil {
		return nil, errors.New("this node does not take part yet")
	}
	if p.observer {
		return nil, errors.New("this is an observer, which forwards no operators' " +
			"commands: ask a node")
	}
	return node.DialOperators(ctx, j.replica, to)
}

// Transfer implements operator.Cluster: the goroutine that serves carries it out.
func (p *clusterView) Transfer(ctx context.Context, to string, begins func()) error {
	s := p.Standing()
	if err := mayLead(&s, to); err != nil {
		return err
	}
	begins()
	w := &transfer{ctx, to, make(chan error, 1)}
	select {
	case p.transfers <- w:
	case <-ctx.Done():
		return errors.New("this node does not serve yet, or is stopping: try again")
	}
	return <-w.done
}

const (
	// longSilence is the longest silence of a new leader, in ticks.
	longSilence = 10
	// longLag is the most entries that it may lack.
	longLag = 1024
)

// mayLead returns the reason why no other node, or not that one, could lead at once. It is checked
// before the term ends, which clients notice.
func mayLead(s *operator.Standing, to string) error {
	fits := func(n operator.NodeStanding) bool {
		return n.Name != s.Node && n.Role == operator.Voter &&
			(n.Name == to || to == "" && !n.Unfit) &&
			n.Silent <= longSilence && operator.Lag(s, &n) <= longLag
	}
	if slices.ContainsFunc(s.Nodes, fits) {
		return nil
	}
	if to == "" {
		return errors.New("no other node could take the lead: each does not respond, could not " +
			"serve, or lacks too much of the log")
	}
	return fmt.Errorf("node %s could not take the lead: it does not respond or "+
		"lacks too much of the log",
		to)
}

// Apply implements operator.Cluster.
func (p *clusterView) Apply(ctx context.Context, packed []byte) (keys []string, err error) {
	j := p.joined.Load()
	if j == nil || j.node == nil {
		return nil, actors.NewRequestError("this node does not take part yet")
	}
	text, err := config.UnpackMarket(packed)
	if err != nil {
		return nil, actors.NewRequestError(err.Error())
	}
	err = j.node.ApplyMarket(ctx, func(applied []byte, format uint8) (to []byte, err error) {
		to, keys, err = p.market.change(applied, text, format)
		return to, err
	})
	return keys, err
}

// Add implements operator.Cluster.
func (p *clusterView) Add(ctx context.Context, name, address string) error {
	return p.changeMembers(func(m persistence.Membership) error {
		return m.Add(ctx, name, address)
	})
}

// Promote implements operator.Cluster.
func (p *clusterView) Promote(ctx context.Context, name string) error {
	return p.changeMembers(func(m persistence.Membership) error { return m.Promote(ctx, name) })
}

// Remove implements operator.Cluster.
func (p *clusterView) Remove(ctx context.Context, name string) error {
	return p.changeMembers(func(m persistence.Membership) error { return m.Remove(ctx, name) })
}

// Replace implements operator.Cluster.
func (p *clusterView) Replace(ctx context.Context, old, name, address string) error {
	return p.changeMembers(func(m persistence.Membership) error {
		return m.Replace(ctx, old, name, address)
	})
}

// changeMembers makes a change of the membership, and words its refusal for operators.
func (p *clusterView) changeMembers(change func(persistence.Membership) error) error {
	j := p.joined.Load()
	if j == nil {
		return actors.NewRequestError("this node does not take part yet")
	}
	err := change(j.replica)
	if errors.Is(err, persistence.ErrInvalid) {
		return actors.NewRequestError(strings.TrimPrefix(err.Error(),
			persistence.ErrInvalid.Error()+": "))
	}
	return err
}
