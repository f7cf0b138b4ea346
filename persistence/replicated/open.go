package replicated

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"exchange/persistence"
	"exchange/persistence/internal/link"
	"exchange/persistence/internal/machine"
	"exchange/persistence/internal/raftlog"
)

// A replica is a store with its link to the other nodes.
type replica struct {
	*store
	link   transport
	ticker *time.Ticker
}

var _ persistence.Replica = (*replica)(nil)

// Open opens one node's store, and waits until the node may take part in its cluster. Without a log
// the node waits until all named nodes are present and none has begun: then they form the cluster.
// ctx ends the wait.
func Open(ctx context.Context, o Options) (_ persistence.Replica, err error) {
	w := &startup{Options: o, frames: make(chan received, maxFrames)}
	defer func() {
		if err != nil && w.Local != nil {
			err = errors.Join(err, w.Local.Close())
		}
	}()
	peers, err := w.prepare()
	if err != nil {
		return nil, err
	}
	w.link, err = link.Open(link.Options{Cluster: o.Cluster, Name: o.Name, Peers: peers,
		Address: o.Nodes[w.nodeIndex()].Address, Listener: o.Listener, Dial: o.Dial,
		Credentials: o.Credentials, Receive: w.receive, Copy: w.writeCopy, Admit: w.admit,
		Accept: w.accept, AdmitObserver: w.admitObserver, AcceptObserver: w.acceptObserver,
		Logger: o.Logger})
	if err != nil {
		return nil, err
	}
	w.ticker = time.NewTicker(w.Tick)
	s, err := w.open(ctx)
	if err != nil {
		w.ticker.Stop()
		return nil, errors.Join(err, w.link.Close())
	}
	return &replica{s, w.link, w.ticker}, nil
}

// members sets the link's peers: the members, and the other configured nodes. The latter may join,
// or be notified of their removal, but open no connections.
func (w *startup) members(members []machine.Member) {
	joined := joinedNames(members)
	for _, n := range w.Nodes {
		members = append(slices.Clip(members), machine.Member{Name: n.Name})
	}
	var peers []link.Peer
	for _, m := range members {
		p, err := w.peer(m.Name, m.Address)
		switch {
		case err != nil:
			w.Logger.Error("a member cannot be reached", "node", m.Name, "error", err)
		case m.Name != w.Name && !slices.Contains(peers, p):
			peers = append(peers, p)
		}
	}
	if err := w.link.Set(peers); err != nil {
		w.Logger.Error("BUG: the peers are refused", "error", err)
	}
	for _, p := range peers {
		if !slices.Contains(joined, p.Name) {
			w.link.Drop(p.Name)
		}
	}
}

// open creates the log if none exists, and starts the node.
func (w *startup) open(ctx context.Context) (*store, error) {
	there, err := raftlog.Formed(w.files, w.dir)
	if err != nil {
		return nil, err
	}
	if !there {
		if err := w.form(ctx); err != nil {
			return nil, err
		}
	}
	if err := w.clearCopyMark(); err != nil {
		return nil, err
	}
	o := options{dir: w.dir, files: w.files, local: w.Local, send: w.link.Send, dial: w.link.Dial,
		cut: w.link.Drop, tickC: w.ticker.C, now: time.Now, random: rand.IntN, logger: w.Logger,
		fatal: w.Fatal, logMax: w.LogMax, market: w.Market, onMarket: w.OnMarket,
		formation:   w.formation,
		waitToStart: func(log *raftlog.Log) error { return w.waitToStart(ctx, log) },
		onMembers:   w.members, checkPeer: func(name, address string) error {
			_, err := w.peer(name, address)
			return err
		}}
	if w.adapt != nil {
		w.adapt(&o)
	}
	s, err := open(o)
	if err == nil {
		w.store.Store(s)
	}
	return s, err
}

// form creates the log once all nodes are present. A local store with data implies a lost log,
// unless the store is a copy.
func (w *startup) form(ctx context.Context) error {
	what, err := content(ctx, w.Local)
	if err != nil {
		return err
	}
	copied, err := w.hasCopyMark()
	if err == nil && what != "" && !copied {
		err = fmt.Errorf("%s has no log, and %s has %s: a cluster is formed by empty nodes; bring "+
			"the log back, or replace this node", w.dir, w.Local, what)
	}
	if err == nil {
		err = w.awaitStage(ctx)
	}
	if err != nil {
		return err
	}
	what = "the cluster is formed"
	if o := w.formation.offer; o != nil {
		what = "this node joins the cluster"
		if end, err := o.endSeq(); err != nil {
			return err
		} else if end > 0 || copied {
			if err := w.fetchStore(ctx); err != nil {
				return err
			}
		}
	} else if copied {
		return fmt.Errorf("%w: %s: the copy of another node's store is unfinished, and there is "+
			"no cluster to join; empty the folders of both", ErrFolder, w.dir)
	}
	if err := w.formation.form(w.files, w.dir); err != nil {
		return err
	}
	w.Logger.Info(what, "cluster", w.Cluster, "node", w.Name,
		"nodes", w.formation.names)
	return nil
}

// content names a store's content; "": it is empty.
func content(ctx context.Context, local persistence.Store) (string, error) {
	beat, err := local.Beat(ctx)
	if err != nil {
		return "", err
	}
	watermark, err := local.Watermark(ctx)
	if err != nil {
		return "", err
	}
	_, r, err := local.LoadSnapshot(ctx, 0)
	switch {
	case err == nil:
		return "a snapshot", r.Close()
	case !errors.Is(err, persistence.ErrNoSnapshot):
		return "", err
	case watermark > 0:
		return fmt.Sprint("projections up to sequence ", watermark), nil
	case beat.End.Seq > 0:
		return fmt.Sprint("a journal up to sequence ", beat.End.Seq), nil
	}
	return "", nil
}

// waitToStart returns once the node may take part.
func (w *startup) waitToStart(ctx context.Context, log *raftlog.Log) error {
	if err := w.formation.check(log.Identity()); err != nil {
		return fmt.Errorf("%s: %w", w.dir, err)
	}
	if log.Fresh() {
		w.formation.stage = stageFormed
		if err := w.awaitStage(ctx); err != nil {
			return err
		}
	}
	w.formation.stage = stageActive
	return nil
}

// awaitStage returns once the node may enter the next stage.
func (w *startup) awaitStage(ctx context.Context) error {
	for ticks := 0; ; {
		may, why, err := w.formation.next()
		if may || err != nil {
			return err
		}
		select {
		case r := <-w.frames:
			w.formation.receive(r.from, r.frame)
		case <-w.ticker.C:
			w.formation.tick()
			if ticks++; ticks%logTicks == 0 {
				w.Logger.Warn("this node waits for the others to form the cluster", "for", why)
			}
		case <-ctx.Done():
			return fmt.Errorf("%w: the cluster is not formed: this node waited for %s", ctx.Err(),
				why)
		}
	}
}

// Close ends the node, frees its folders, and closes the local store.
func (o *replica) Close() error {
	o.ticker.Stop()
	return errors.Join(o.link.Close(), o.store.Close())
}

// open opens a node's log and starts it.
func open(o options) (_ *store, err error) {
	s := &store{History: o.local, local: o.local, now: o.now, logger: o.logger,
		name: "replicated:" + o.dir, frames: make(chan received, maxFrames),
		proposed: make(chan request, maxProposals), nodeCalls: make(chan func(*node)),
		confirms:  make(chan confirmRequest, maxProposals),
		nodeToken: persistence.Token("0:" + persistence.NewID()),
		maxFormat: cmp.Or(o.maxFormat, machine.Newest), dial: o.dial,
		stop: make(chan struct{}), done: make(chan struct{})}
	if s.checkPeer = o.checkPeer; s.checkPeer == nil {
		s.checkPeer = func(string, string) error { return nil }
	}
	s.viewSignal.c = make(chan struct{})
	s.view.Store(&view{})
	s.held.Store(math.MaxUint64)
	ctx := context.Background()
	s.localToken, _, err = s.local.Acquire(ctx, persistence.Claim{Owner: "the node's own"})
	if err != nil {
		return nil, err
	}
	log, state, err := raftlog.Open(o.dir, raftlog.Options{FS: o.files, Fatal: o.fatal,
		Nonce: persistence.NewID()})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.name, err)
	}
	s.log = log
	if o.waitToStart != nil {
		if err := o.waitToStart(log); err != nil {
			return nil, errors.Join(err, log.Close())
		}
	}
	changed := func(members []machine.Member) {
		s.joined.Store(new(joinedNames(members))) // before connections are dropped
		if o.onMembers != nil {
			o.onMembers(members)
		}
	}
	n, err := newNode(log, state, setup{logger: o.logger, send: o.send, random: o.random,
		now: o.now, publish: s.setView, index: &s.index, minTrim: o.minTrim, logMax: o.logMax,
		formation: o.formation, onMembers: changed, maxFormat: s.maxFormat,
		market: o.market, onMarket: o.onMarket, unfit: s.whyUnfit, onApply: o.onApply, cut: o.cut})
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	go s.run(n, o.tickC)
	return s, nil
}
