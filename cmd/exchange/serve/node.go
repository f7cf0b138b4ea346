package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"exchange/actors"
	"exchange/actors/node"
	"exchange/actors/seal"
	"exchange/cmd/exchange/cli"
	"exchange/config"
	"exchange/gateway"
	"exchange/persistence"
	"exchange/persistence/archive"
	"exchange/persistence/replicated"
)

// A nodeServer follows the journal, serves while its node leads, and follows again.
type nodeServer struct {
	cfg     *config.Config
	known   *knownData // nil: this is an observer
	log     *slog.Logger
	gateway *gateway.Gateway
	view    *clusterView
	open    *listeners
	demo    demo // of the terms
	*joined

	endFollower   context.CancelFunc // ends serveFollower; nil: it does not run
	followerEnded chan struct{}      // closed when serveFollower has ended
}

func newNodeServer(cfg *config.Config, g *gateway.Gateway, p *clusterView,
	open *listeners) *nodeServer {
	return &nodeServer{cfg: cfg, log: slog.Default(), gateway: g, view: p, open: open,
		demo: newDemo(cfg)}
}

// serveNode runs one node of a cluster until ctx ends, or until it cannot continue. archived is nil
// if nothing is archived. served gets the reason why a listener has ended.
func serveNode(ctx context.Context, known *knownData, once thisStart, archived *archive.Archive,
	g *gateway.Gateway, p *clusterView, open *listeners, served <-chan error) error {
	cfg := known.cfg
	n := newNodeServer(cfg, g, p, open)
	n.known = known
	ctx, end := untilListenerEnds(ctx, served)
	defer end(nil)
	p.market.limit = func(cfg *config.Config) { g.SetLimits(gatewayLimits(cfg)) }
	replica, err := n.join(ctx)
	if err != nil {
		return nodeFailed(ctx, err)
	}
	defer closeStore(replica, n.log)
	options := engineOptions(cfg, replica, n.log)
	options.Owner, options.Check = p.owner(), demoCheck(cfg)
	options.Histories, options.NewExchange = known.store, known.beginNew
	options.RevokeLost = once.revokeLost
	n.demo.prepare(&options)
	options.Market = p.market.options()
	options.Operators, options.Edge = g.ServeNode, g
	options.Sealer = func(bool) (*seal.Sealer, error) { return clusterKey(cfg) }
	if err := withMail(cfg, n.log, &options); err != nil {
		return err
	}
	if archived != nil {
		options.Archive = known.save(archived)
	}
	node, err := startNode(ctx, options)
	switch {
	case err == nil:
	case ctx.Err() == nil && unfolded(err):
		return n.voteOn(ctx, replica, err)
	default:
		return nodeFailed(ctx, err)
	}
	n.joined = &joined{replica: replica, node: node}
	defer n.stopFollower()
	if err := n.archives(ctx, archived); err != nil {
		return errors.Join(archiveUnfit(ctx, err), n.stop(ctx))
	}
	p.joined.Store(n.joined)
	p.market.judge(node.Recheck)
	n.follow()
	n.log.Info("this node takes part", "node", p.name)
	return n.run(ctx)
}

// untilListenerEnds returns a context that ends with a listener, for that reason.
func untilListenerEnds(ctx context.Context,
	served <-chan error) (context.Context, context.CancelCauseFunc) {
	ctx, end := context.WithCancelCause(ctx)
	go func() {
		select {
		case err := <-served:
			end(listenerEnded(err))
		case <-ctx.Done():
		}
	}()
	return ctx, end
}

// archives returns an error if this node's archive, which may be nil, is not that of its journal. A
// node that gets its journal from the others may still be below the end of an archive that it has
// kept: then the next snapshot decides.
func (n *nodeServer) archives(ctx context.Context, archived *archive.Archive) error {
	if archived == nil {
		return nil
	}
	end, err := archived.End()
	if err != nil {
		return err
	}
	beat, err := n.replica.Beat(ctx)
	if err != nil {
		return err
	}
	if end > beat.End.Seq {
		n.log.Warn("this node's journal is below the end of its archive: they are compared when "+
			"the next snapshot is taken", "journal", beat.End.Seq, "archive", end)
		return nil
	}
	if err := archived.Fits(ctx, n.replica); err != nil {
		return err
	}
	return n.known.fits(archived)
}

// unfolded reports whether a node did not start because it cannot fold the cluster's records, or
// its own.
func unfolded(err error) bool {
	return errors.Is(err, persistence.ErrFormat) || errors.Is(err, persistence.ErrCorrupt)
}

// voteOn is all that a node does that cannot fold: the others may need its vote.
func (n *nodeServer) voteOn(ctx context.Context, r persistence.Replica, why error) error {
	n.view.joined.Store(&joined{replica: r, fault: why})
	n.follow()
	r.Unfit(why)
	n.log.Error("this node votes, and neither serves nor leads; fix the fault, and restart "+
		"it", "node", n.view.name, "error", why)
	node.VoteOnly(ctx, r, n.log)
	return engineFailed(why)
}

// clusterKey returns the server's key, which no node makes: all of them need the same.
func clusterKey(cfg *config.Config) (*seal.Sealer, error) {
	s, err := seal.Load(os.Getenv(config.EnvSecretKey), cfg.SecretKeyFile, false)
	if err = keyOnDisk(cfg, err); err != nil {
		return nil, fmt.Errorf("%w: %w; all nodes of a cluster have the same secret key, which "+
			"`exchange cluster init` makes", errConfig, err)
	}
	return s, nil
}

func startNode(ctx context.Context, o actors.Options) (*node.Node, error) {
	defer collectRarely()()
	return node.Start(ctx, o)
}

// join opens the node's stores, and waits until the node may take part in its cluster.
func (n *nodeServer) join(ctx context.Context) (persistence.Replica, error) {
	id, credentials, err := loadNode(&n.cfg.Cluster)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errConfig, err)
	}
	key, err := clusterKey(n.cfg)
	if err != nil {
		return nil, err
	}
	c := &copies{n.cfg, n.known, n.log, key}
	local, err := c.open()
	if err != nil {
		return nil, err
	}
	o := replicated.Options{Cluster: id, Name: n.view.name, Folder: n.cfg.Data, Local: local,
		Credentials: credentials, Tick: n.view.tick, Logger: n.log, Fatal: n.fatal,
		LogMax: uint64(n.cfg.Cluster.LogMax), Copies: c, Market: &n.view.market.report,
		OnMarket: n.view.market.agreed, Observers: n.cfg.Cluster.Observers()}
	for _, x := range n.cfg.Cluster.Nodes() {
		o.Nodes = append(o.Nodes, replicated.Node{Name: x.Name, Address: x.Address})
	}
	n.log.Info("looking for the other nodes", "node", n.view.name, "cluster", id)
	return replicated.Open(ctx, o)
}

// fatal ends the process: the log's disk did not take data that had to be durable.
func (n *nodeServer) fatal(err error) {
	n.log.Error("FATAL: the node's log cannot be written", "error", err)
	os.Exit(cli.ExitUnavailable)
}

// follow closes the API, except for public data, until the node leads.
func (n *nodeServer) follow() {
	n.gateway.SetFollower(nil, nil)
	n.view.market.follow()
	if n.joined == nil {
		return // it only votes
	}
	ctx, cancel := context.WithCancel(context.Background())
	n.endFollower, n.followerEnded = cancel, make(chan struct{})
	go n.serveFollower(ctx)
}

// stopFollower stops serveFollower, and waits until it has returned.
func (n *nodeServer) stopFollower() {
	if n.endFollower != nil {
		n.endFollower()
		<-n.followerEnded
		n.endFollower = nil
		n.view.unfit.Store(nil)
	}
}

// serveFollower shows public data, whenever this node can distinguish acknowledged records,
// until ctx ends.
func (n *nodeServer) serveFollower(ctx context.Context) {
	defer close(n.followerEnded)
	last, logged := "", ""
	for ctx.Err() == nil {
		shown, err := n.show(ctx)
		if shown {
			logged = ""
		}
		// the first reason may be temporary: an earlier term has yet to end
		if now := err.Error(); ctx.Err() == nil && now == last && now != logged {
			logged = now
			if errors.Is(err, actors.ErrConfig) { // lasting: a key or an option of this node
				n.view.unfit.Store(&err)
			}
			n.log.Warn("this node serves no public data for now", "node", n.view.name,
				"error", err)
		}
		last = err.Error()
		select {
		case <-ctx.Done():
		case <-time.After(serveAgain):
		}
	}
}

// serveAgain is the pause before a follower tries again to show public data.
const serveAgain = 100 * time.Millisecond

// show shows public data for as long as that can be right, and returns why it cannot.
func (n *nodeServer) show(ctx context.Context) (shown bool, err error) {
	a, err := n.node.Follow(ctx)
	n.view.starting.Store(errors.Is(err, errPast))
	if err != nil {
		return false, err
	}
	n.view.unfit.Store(nil)
	if err := a.Keyless(); err != nil {
		n.view.unfit.Store(&err)
	}
	n.view.market.serve(a.Agreed())
	n.gateway.SetFollower(a.Public, a.Commands())
	err = a.Await(ctx)
	n.gateway.SetFollower(nil, nil)
	n.view.market.follow()
	a.End()
	return true, err
}

// run serves one term after the other.
func (n *nodeServer) run(ctx context.Context) error {
	for {
		engine, err := n.node.Lead(ctx)
		if err != nil {
			select {
			case <-n.node.Dead():
				select { // it votes until it is stopped
				case <-ctx.Done():
				case <-n.node.Ended(): // or its store has ended
				}
			default:
			}
			if ctx.Err() == nil {
				return engineFailed(err)
			}
			return n.stop(ctx)
		}
		n.stopFollower()
		err = n.serve(ctx, engine)
		if ctx.Err() != nil {
			return n.stop(ctx)
		}
		n.follow()
		select {
		case <-engine.Dead():
		case <-ctx.Done():
			return n.stop(ctx)
		}
		if broken(engine.Err()) {
			return engineFailed(engine.Err())
		}
		n.log.Warn("this node has stopped serving and follows", "node", n.view.name, "error", err)
	}
}

// broken reports whether an engine ended because its data or an invariant is broken.
func broken(err error) bool {
	return errors.Is(err, persistence.ErrGap) || errors.Is(err, persistence.ErrCorrupt) ||
		errors.Is(err, persistence.ErrInvalid)
}

// serve serves one term, and returns why it ended. If it cannot fill the demo's accounts it hands
// leadership over.
func (n *nodeServer) serve(ctx context.Context, engine *actors.Engine) error {
	n.view.starting.Store(n.demo.due)
	stopDemo, err := n.demo.start(ctx, engine)
	n.view.starting.Store(false)
	if ctx.Err() != nil {
		stopDemo()
		return ctx.Err()
	}
	if err != nil {
		patience, cancel := context.WithTimeout(ctx, config.Ms(n.cfg.Timing.StopMaxMs))
		defer cancel()
		return errors.Join(err, n.handOver(engine, &transfer{ctx: patience}))
	}
	defer stopDemo()
	n.view.market.serve(engine.Agreed())
	n.gateway.SetEngine(engine)
	n.open.logReady(n.log)
	n.demo.show(n.open.public.Addr().String())
	return n.serveTerm(ctx, engine)
}

// serveTerm returns at the engine's end, whose reason it returns, or when ctx ends.
func (n *nodeServer) serveTerm(ctx context.Context, engine *actors.Engine) error {
	poll := time.NewTicker(time.Second)
	defer poll.Stop()
	for {
		select {
		case <-engine.Dead():
			return engine.Err()
		case <-ctx.Done():
			return nil
		case <-poll.C:
			s := n.view.Standing()
			if !s.ClockWrong || mayLead(&s, "") != nil {
				continue
			}
			patience, cancel := context.WithTimeout(ctx, config.Ms(n.cfg.Timing.StopMaxMs))
			defer cancel()
			return errors.Join(persistence.ErrClock, n.handOver(engine, &transfer{ctx: patience}))
		case w := <-n.view.transfers:
			s := n.view.Standing()
			if err := mayLead(&s, w.to); err != nil {
				w.done <- err
				continue
			}
			w.done <- n.handOver(engine, w)
			return errHandedOver
		}
	}
}

var errHandedOver = errors.New("an operator has had the lead handed over")

// handOver ends a term in order: no new requests, those in flight are finished, and then another
// node leads. If none does, this one serves again.
func (n *nodeServer) handOver(engine *actors.Engine, w *transfer) error {
	n.gateway.SetFollower(nil, nil)
	if err := engine.Stop(w.ctx); err != nil {
		n.log.Warn("requests were in flight when the term ended", "error", err)
	}
	err := n.replica.Transfer(w.ctx, w.to)
	if err != nil && !n.replica.Leads() {
		return nil // another node was faster
	}
	return err
}

// stop ends the node in order: a leader finishes the requests in flight, and hands leadership over.
func (n *nodeServer) stop(ctx context.Context) error {
	n.log.Info("stopping: no new requests, finishing those in flight", "at_most",
		config.Ms(n.cfg.Timing.StopMaxMs))
	n.stopFollower()
	stop, cancel := context.WithTimeout(context.Background(), config.Ms(n.cfg.Timing.StopMaxMs))
	defer cancel()
	failed, err := n.node.Err(), n.node.Stop(stop)
	n.gateway.Shutdown(lastAnswers)
	var ended *cli.ExitError
	switch {
	case errors.As(context.Cause(ctx), &ended):
		return ended
	case failed != nil:
		return engineFailed(failed)
	case err != nil:
		return failf(cli.ExitUnavailable, "stopped without a last snapshot, which is safe: %v", err)
	}
	n.log.Info("stopped")
	return nil
}
