package serve

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"exchange/actors"
	"exchange/actors/mailbox"
	"exchange/config"
	"exchange/gateway"
	"exchange/gateway/operator"
	"exchange/persistence"
	"exchange/persistence/memory"
)

// A standingReplica is a node of three that leads, and whose standing is made up.
type standingReplica struct {
	persistence.Replica
	standing func(poll int64) persistence.Standing
	polls    atomic.Int64
	handed   atomic.Int64 // number of the poll before leadership was handed over; 0: it was not
	engine   *actors.Engine
	ready    error // of the engine, when leadership was handed over
}

func (r *standingReplica) Standing() persistence.Standing { return r.standing(r.polls.Add(1)) }

func (r *standingReplica) Beat(context.Context) (persistence.Beat, error) {
	return persistence.Beat{}, nil
}

func (r *standingReplica) Transfer(context.Context, string) error {
	r.handed.Store(r.polls.Load())
	r.ready = r.engine.Ready()
	return nil
}

// goroutines is a Scheduler whose goroutines end with the bubble of a test.
type goroutines struct{ mailbox.Runners }

func (goroutines) Schedule(m *mailbox.Mailbox) { go m.Run() }

// leading is a server of a node whose term has begun, on a store in memory.
func leading(t *testing.T, r *standingReplica) (*nodeServer, *actors.Engine) {
	t.Helper()
	cfg := config.Demo()
	cfg.Data = t.TempDir()
	worked(t, cfg.Finish())
	cfg.Cluster.Node, cfg.Cluster.TickMs = "a", 50
	log := slog.New(slog.DiscardHandler)
	o := engineOptions(cfg, memory.Open(memory.NewDisk(), persistence.Retention{}), log)
	o.Scheduler = goroutines{}
	engine := must(actors.Start(t.Context(), o))
	at := &joined{replica: r}
	r.engine = engine
	p := &clusterView{name: "a", transfers: make(chan *transfer), market: newMarket(cfg, log)}
	p.joined.Store(at)
	return &nodeServer{cfg: cfg, log: log, view: p, joined: at,
		gateway: gateway.New(gatewayOptions(cfg, log))}, engine
}

// A node whose clock is wrong ends its term in order, and hands leadership over, once another node
// could take it. Before, it continues to serve: expiries by a wrong clock are better than no
// exchange.
func TestNodeWithWrongClockHandsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const until = 3 // polls at which all others are silent
		r := &standingReplica{standing: func(poll int64) persistence.Standing {
			s := persistence.Standing{Node: "a", Leader: "a", ClockAhead: time.Hour,
				ClockWrong: true, Peers: []persistence.Peer{
					{Name: "a", Role: persistence.RoleVoter},
					{Name: "b", Role: persistence.RoleVoter, SilentTicks: longSilence}}}
			if poll <= until {
				s.Peers[1].SilentTicks++
			}
			return s
		}}
		n, engine := leading(t, r)
		err := n.serveTerm(t.Context(), engine)
		if !errors.Is(err, persistence.ErrClock) {
			t.Errorf("the term has ended: %v", err)
		}
		if at := r.handed.Load(); at != until+1 {
			t.Errorf("the lead was handed over at look %d, want %d", at, until+1)
		}
		if !errors.Is(r.ready, actors.ErrStopping) {
			t.Errorf("the lead was handed over while the engine took commands: %v", r.ready)
		}
	})
	runtime.GC() // pooled objects have timers and channels of this bubble, and a second
	runtime.GC() // collection frees those that the first one found
}

// The nodes to which leadership is handed when no node is named.
func TestLeadershipGoesToACapableNode(t *testing.T) {
	b := operator.NodeStanding{Name: "b", Role: operator.Voter, Silent: longSilence, Match: 1}
	for what, x := range map[string]struct {
		change func(*operator.NodeStanding)
		fits   bool
	}{
		"it could":   {func(*operator.NodeStanding) {}, true},
		"silent":     {func(n *operator.NodeStanding) { n.Silent++ }, false},
		"it lags":    {func(n *operator.NodeStanding) { n.Match-- }, false},
		"unfit":      {func(n *operator.NodeStanding) { n.Unfit = true }, false},
		"no voter":   {func(n *operator.NodeStanding) { n.Role = operator.Learner }, false},
		"the leader": {func(n *operator.NodeStanding) { n.Name = "a" }, false},
	} {
		n := b
		x.change(&n)
		s := operator.Standing{Node: "a", Leader: "a", Committed: 1 + longLag,
			Nodes: []operator.NodeStanding{n}}
		if err := mayLead(&s, ""); (err == nil) != x.fits {
			t.Errorf("%s: %v", what, err)
		}
		if err := mayLead(&s, "b"); (err == nil) != (x.fits || n.Unfit) {
			t.Errorf("to b, %s: %v", what, err)
		}
	}
}
