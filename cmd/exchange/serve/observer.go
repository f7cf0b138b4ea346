package serve

import (
	"context"
	"errors"
	"time"

	"exchange/actors/observing"
	"exchange/cmd/exchange/cli"
	"exchange/config"
	"exchange/gateway"
	"exchange/persistence/replicated"
)

// serveObserver serves the state of a cluster's nodes, until ctx ends. served gets the reason why a
// listener has ended.
func serveObserver(ctx context.Context, cfg *config.Config, g *gateway.Gateway, p *clusterView,
	open *listeners, served <-chan error) error {
	n := newNodeServer(cfg, g, p, open)
	ctx, end := untilListenerEnds(ctx, served)
	defer end(nil)
	p.market.limit = func(cfg *config.Config) { g.SetLimits(gatewayLimits(cfg)) }
	id, credentials, err := loadNode(&cfg.Cluster)
	if err != nil {
		return failf(cli.ExitUsage, "%v: %v", errConfig, err)
	}
	o := replicated.ObserverOptions{Cluster: id, Name: p.name, Credentials: credentials,
		Logger: n.log}
	for _, x := range cfg.Cluster.Nodes() {
		o.Nodes = append(o.Nodes, replicated.Node{Name: x.Name, Address: x.Address})
	}
	caller, err := replicated.NewObserver(o)
	if err != nil {
		return failf(cli.ExitUsage, "%v", err)
	}
	defer caller.Close() //nolint:errcheck // the process's end ends its connections, too
	n.gateway.SetFollower(nil, nil)
	for logged, pause := "", serveAgain; ctx.Err() == nil; {
		begin := time.Now()
		err := n.observe(ctx, caller, &o)
		if ctx.Err() != nil {
			break
		}
		if text := err.Error(); text != logged {
			logged = text
			n.log.Warn("this observer starts over", "observer", p.name, "error", err)
		}
		if pause = min(2*pause, observeAgain); time.Since(begin) > observeAgain {
			pause = serveAgain
		}
		o.Nodes = append(o.Nodes[1:], o.Nodes[0]) // the fault may be one node's
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
	n.gateway.Shutdown(lastAnswers)
	if ended, ok := errors.AsType[*cli.ExitError](context.Cause(ctx)); ok {
		return ended
	}
	n.log.Info("stopped")
	return nil
}

// observeAgain is the longest pause before an observer starts over.
const observeAgain = 5 * time.Second

// observe serves from a node's image, and from the records after it, until that fails. It returns
// the reason.
func (n *nodeServer) observe(ctx context.Context, caller *replicated.Observer,
	from *replicated.ObserverOptions) error {
	options := observing.Options{Name: n.view.name, Dial: caller.Dial, Log: n.log,
		Agreed: n.view.market.agreed, Silence: config.Ms(n.cfg.Timing.OwnerStaleMs)}
	for _, x := range from.Nodes {
		options.Nodes = append(options.Nodes, x.Name)
	}
	store, err := observing.Open(ctx, options)
	if err != nil {
		return err
	}
	defer closeStore(store, n.log)
	o := engineOptions(n.cfg, store, n.log)
	o.Market = n.view.market.options()
	n.demo.prepare(&o)
	node, err := startNode(ctx, o)
	if err != nil {
		return err
	}
	n.joined = &joined{replica: store, node: node}
	n.view.joined.Store(n.joined)
	n.view.market.judge(node.Recheck)
	n.follow()
	n.log.Info("this observer follows the cluster", "observer", n.view.name)
	select {
	case <-node.Dead():
	case <-node.Ended():
	case <-ctx.Done():
	}
	if err = node.Err(); err == nil {
		err = errors.New("this observer has stopped following")
	}
	n.stopFollower()
	n.joined = nil // so that the state is not kept beside the next one
	n.view.joined.Store(nil)
	n.view.market.judge(func() {})
	stop, cancel := context.WithTimeout(context.Background(), config.Ms(n.cfg.Timing.StopMaxMs))
	defer cancel()
	return errors.Join(err, node.Stop(stop))
}
