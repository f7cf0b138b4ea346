package harness

import (
	"context"
	"errors"
	"flag"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"exchange/actors/metrics"
	"exchange/actors/node"
	"exchange/actors/observing"
	"exchange/actors/seal"
	"exchange/gateway"
	"exchange/gateway/edge"
	"exchange/gateway/operator"
	"exchange/gateway/socketio/sockettest"
	"exchange/persistence"
	"exchange/persistence/memory"
	"exchange/persistence/replicated"
)

// An observed exchange is a cluster of one node with an observer, in the test's process.
type observed struct {
	persistence.Replica // of the node
	node, observer      *node.Node
	store               *observing.Store
	Follower            *node.Follower
	folder              string           // of the node's log
	edge                *gateway.Gateway // of the node
	take                atomic.Pointer[func(from string, conn net.Conn)]
}

// Close implements persistence.Store.
func (x *observed) Close() error {
	return errors.Join(x.Replica.Close(), os.RemoveAll(x.folder))
}

// AcceptObservers implements persistence.Replica.
func (x *observed) AcceptObservers(take func(from string, conn net.Conn)) { x.take.Store(&take) }

// dial connects the observer with the node.
func (x *observed) dial(context.Context, string) (net.Conn, error) {
	take := x.take.Load()
	if take == nil {
		return nil, errors.New("the node takes no observers yet")
	}
	conn, other := net.Pipe()
	go (*take)("o", other)
	return conn, nil
}

// Observe starts the exchange of a harness whose clients use an observer. With short ticks it is up
// soon, and with long ones a machine that stalls for a moment delays nothing.
func (h *Exchange) Observe(tick time.Duration) {
	h.T.Helper()
	x := &observed{}
	h.Observed, h.Store = x, x
	ctx := context.Background()
	fails := func(err error) {
		if err != nil {
			h.T.Helper()
			h.T.Fatal(err)
		}
	}
	var err error
	// it may outlive the input that h.t belongs to
	x.folder, err = os.MkdirTemp("", "exchange-observed-")
	fails(err)
	l := sockettest.Listen(h.T)
	x.Replica, err = replicated.Open(ctx, replicated.Options{Cluster: "test", Name: "a",
		Nodes:  []replicated.Node{{Name: "a", Address: l.Addr().String()}},
		Folder: x.folder, Local: memory.Open(memory.NewDisk(), persistence.Retention{}),
		Tick: tick, Logger: Quiet(), Listener: l,
		Fatal: func(err error) { h.T.Error(err) }})
	fails(err)
	x.edge = gateway.New(edge.Options{Log: Quiet()})
	o := h.Options()
	o.Edge = x.edge
	x.node, err = node.Start(ctx, o)
	fails(err)
	h.Engine, err = x.node.Lead(ctx)
	fails(err)
	x.edge.SetEngine(h.Engine)

	x.store, err = observing.Open(ctx, observing.Options{Name: "o", Nodes: []string{"a"},
		Dial: x.dial, Log: Quiet(), Silence: h.Options().Timing.OwnerStale})
	fails(err)
	o = h.Options()
	o.Store = x.store
	o.Sealer = func(bool) (*seal.Sealer, error) { return nil, errors.New("it has no key") }
	x.observer, err = node.Start(ctx, o)
	fails(err)
	Spin(func() bool {
		x.Follower, err = x.observer.Follow(ctx)
		return err == nil
	})
}

// standing is the observer's standing.
func (x *observed) standing() *FakeCluster {
	return &FakeCluster{View: operator.Standing{Node: "o", Observer: true, Leader: "a",
		Links: new(metrics.Links)}}
}

// end ends the observer, and the node's term.
func (x *observed) end(ctx context.Context) error {
	x.Follower.End()
	return errors.Join(x.observer.Stop(ctx), x.store.Close(), x.node.Stop(ctx))
}

// BenchesOf returns the exchanges for a fuzz target's inputs: one, and unless it searches for more
// inputs, also one whose clients use an observer.
func BenchesOf[B any](f *testing.F, begin func(observed bool) B) []B {
	benches := []B{begin(false)}
	if flag.Lookup("test.fuzz").Value.String() == "" {
		benches = append(benches, begin(true))
	}
	return benches
}
