package replicated

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"

	"exchange/persistence/internal/link"
)

// admitObserver returns why the connection of an observer is not taken.
func (w *opening) admitObserver(name string) error {
	if !slices.Contains(w.Observers, name) {
		err := fmt.Errorf("node %s takes no observer %s: name it in its configuration", w.Name,
			name)
		w.refused.Warn(w.Logger, "an observer is refused", name, err, "observer", name)
		return err
	}
	if s := w.store.Load(); s == nil || s.takeObservers.Load() == nil {
		return fmt.Errorf("node %s takes no observers yet", w.Name)
	}
	return nil
}

// acceptObserver lets the connection of an observer that is admitted be taken.
func (w *opening) acceptObserver(name string, conn net.Conn) {
	if take := w.store.Load().takeObservers.Load(); take != nil {
		(*take)(name, conn)
		return
	}
	conn.Close()
}

// ObserverOptions are those of Observe.
type ObserverOptions struct {
	Cluster string // id of the cluster that is observed
	Name    string // the observer's, of the same form as a node's
	Nodes   []Node // that can be called
	// Credentials prove the observer's name; nil if all addresses are of the loopback.
	Credentials *Credentials
	Logger      *slog.Logger
	// Dial is that of Options.
	//tidy:keep for tests that have a network in memory, as that of Options
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// An Observer is how a process that is no member of a cluster calls its nodes: see
// persistence.Replica's AcceptObservers. Its methods may be called from any goroutine.
type Observer struct{ link *link.Link }

// Observe makes the calls of an observer possible. It calls no node yet.
func Observe(o ObserverOptions) (*Observer, error) {
	var peers []link.Peer
	for _, n := range o.Nodes {
		peers = append(peers, link.Peer{Name: n.Name, Address: n.Address})
	}
	l, err := link.Open(link.Options{Cluster: o.Cluster, Name: o.Name, Peers: peers,
		Observes: true, Credentials: o.Credentials, Logger: o.Logger, Dial: o.Dial})
	if err != nil {
		return nil, err
	}
	return &Observer{l}, nil
}

// Dial opens a connection to the node with that name, as Replica's Dial does between members.
func (o *Observer) Dial(ctx context.Context, node string) (net.Conn, error) {
	return o.link.Dial(ctx, node)
}

// Close ends all connections.
func (o *Observer) Close() error { return o.link.Close() }
