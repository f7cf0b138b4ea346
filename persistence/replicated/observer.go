package replicated

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"

	"exchange/persistence/internal/link"
)

// admitObserver returns the reason why an observer's connection is refused.
func (w *startup) admitObserver(name string) error {
	if !slices.Contains(w.Observers, name) {
		err := fmt.Errorf("node %s takes no observer %s: name it in its configuration", w.Name,
			name)
		w.refusalLog.Warn(w.Logger, "an observer is refused", name, err, "observer", name)
		return err
	}
	if s := w.store.Load(); s == nil || s.onObserver.Load() == nil {
		return fmt.Errorf("node %s takes no observers yet", w.Name)
	}
	return nil
}

// acceptObserver passes an admitted observer's connection to the handler.
func (w *startup) acceptObserver(name string, conn net.Conn) {
	if take := w.store.Load().onObserver.Load(); take != nil {
		(*take)(name, conn)
		return
	}
	conn.Close()
}

// ObserverOptions are those of NewObserver.
type ObserverOptions struct {
	Cluster string // id of the observed cluster
	Name    string // the observer's, of a node name's form
	Nodes   []Node // to call
	// Credentials prove the observer's name; nil if all addresses are of the loopback.
	Credentials *Credentials
	Logger      *slog.Logger
	// Dial is that of Options.
	//tidy:keep for tests with a network in memory, as that of Options
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// An Observer opens connections to a cluster's nodes from a process that is not a member: see
// persistence.Replica's AcceptObservers. Its methods may be called from any goroutine.
type Observer struct{ link *link.Link }

// NewObserver prepares an observer's link. It opens no connection yet.
func NewObserver(o ObserverOptions) (*Observer, error) {
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

// Dial opens a connection to a node by its name, as Replica's Dial does between members.
func (o *Observer) Dial(ctx context.Context, node string) (net.Conn, error) {
	return o.link.Dial(ctx, node)
}

// Close ends all connections.
func (o *Observer) Close() error { return o.link.Close() }
