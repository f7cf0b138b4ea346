package replicated

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"exchange/actors"
	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/actors/mailbox"
	actornode "exchange/actors/node"
	"exchange/actors/seal"
	"exchange/core/money"
	"exchange/persistence"
	"exchange/persistence/internal/machine"
	"exchange/persistence/memory"
)

// A clusterNode is a node of a liveCluster across its restarts.
type clusterNode struct {
	r      *liveCluster
	at     int
	disk   *disk
	local  *memory.Disk             // of its local store; guarded by r.mu
	unfit  bool                     // its disk was replaced or damaged: it must end by itself
	copied *diskCopy                // nil: none
	reads  uint8                    // newest format its program reads
	key    byte                     // of the server; 0: the others' key
	ahead  atomic.Int64             // ns of its clock
	life   atomic.Pointer[nodeLife] // nil: it is down
}

// A nodeLife is a node from its start to its crash. It schedules its actors: each message is
// handled at a time of its own, which the seed draws.
type nodeLife struct {
	mailbox.Runners
	r       *liveCluster
	at      int
	opening *startup
	local   *memory.Store // guarded by r.mu
	node    *actornode.Node
	engine  atomic.Pointer[actors.Engine] // nil: it does not lead
	// follower serves while the node follows; nil: it cannot serve
	follower atomic.Pointer[actornode.Follower]
	led      atomic.Bool // it has led
	dead     atomic.Bool // its power has failed
	unfit    atomic.Bool // it must end by itself
	older    bool        // its program cannot read the newest format
	cancel   context.CancelFunc
	ended    chan struct{}
	failure  error // why it has ended by itself; read after ended

	mu    sync.Mutex
	still bool // it stands still
	held  []*mailbox.Mailbox
	moves chan struct{} // closed once it resumes; nil: it never stood still
}

// Schedule lets an actor have its next message.
func (l *nodeLife) Schedule(m *mailbox.Mailbox) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.still {
		l.held = append(l.held, m)
		return
	}
	time.AfterFunc(l.r.wait(20*time.Microsecond, time.Millisecond), func() { l.turn(m) })
}

func (l *nodeLife) turn(m *mailbox.Mailbox) {
	if m.Turn(1) && mailbox.Waiting(m) || m.Continue() {
		l.Schedule(m)
	}
}

// store returns the store of a node that takes part; nil: it does not yet.
func (l *nodeLife) store() *store { return l.opening.store.Load() }

// refusal returns why the node has ended by itself; nil: it has not.
func (l *nodeLife) refusal() error {
	select {
	case <-l.ended:
	default:
		return nil
	}
	if s := l.store(); l.failure == nil && s != nil { // it has continued to vote
		select {
		case <-s.done:
			return s.failure
		default:
		}
	}
	return l.failure
}

// stop stalls the node's store until the returned function is called.
func (l *nodeLife) stop() (goOn func()) {
	again := make(chan struct{})
	l.r.until("the node takes part", func() bool { return l.store() != nil })
	go l.store().onNode(context.Background(), func(*node) { <-again }) //nolint:errcheck // crashed
	return func() { close(again) }
}

// stopAll stalls the whole node, as SIGSTOP does.
func (l *nodeLife) stopAll() (goOn func()) {
	resumeStore := l.stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.still, l.moves = true, make(chan struct{})
	return func() {
		resumeStore()
		l.mu.Lock()
		held := l.held
		l.still, l.held = false, nil
		close(l.moves)
		l.mu.Unlock()
		for _, m := range held {
			l.Schedule(m)
		}
	}
}

// wait draws a duration: below most, or one in fifty below rarely.
func (r *liveCluster) wait(most, rarely time.Duration) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rng.IntN(50) == 0 {
		most = rarely
	}
	return 1 + time.Duration(r.rng.Int64N(int64(most)))
}

// send delivers a frame to a node, perhaps late, twice or not at all.
func (r *liveCluster) send(from *nodeLife, at, to int, frame []byte) {
	r.mu.Lock()
	lost := from.dead.Load() || r.cut[at][to] || r.rng.IntN(100) < r.loss
	times := 1 + r.rng.IntN(50)/49
	r.mu.Unlock()
	if lost {
		return
	}
	frame = slices.Clone(frame)
	for range times {
		time.AfterFunc(r.wait(100*time.Microsecond, r.late), func() {
			if l := r.nodes[to].life.Load(); l != nil && !l.dead.Load() {
				l.opening.receive(nodeNames[at], slices.Clone(frame))
			}
		})
	}
}

// engineOptions returns the options of an engine; key distinguishes server keys.
func engineOptions(s persistence.Store, key byte) (actors.Options, error) {
	sealer, err := seal.New(bytes.Repeat([]byte{key}, seal.KeyBytes))
	limits, timing := actors.DefaultLimits, actors.DefaultTiming
	timing.Request, timing.StallMax = 100*time.Millisecond, stallMax
	return actors.Options{Store: s, Owner: s.String(), Limits: limits, Log: quiet,
		Timing: timing, Withdrawal: actors.DefaultWithdrawal,
		Snapshot: committed.SnapshotPolicy{MinRecords: 50, MaxRecords: 50,
			MinInterval: 100 * time.Millisecond}, // so that logs are trimmed
		Sealer:      func(bool) (*seal.Sealer, error) { return sealer, nil },
		KeyMaterial: func(secret []byte) any { return string(secret) },
		Mail: func(context.Context, *actors.Mail) error {
			return errors.New("the mail server takes nothing")
		},
		Exit:       func(code int) { panic(fmt.Sprint("exit ", code)) },
		Currencies: []directory.Currency{{Code: "BTC"}, {Code: "USD"}},
		Pairs:      []directory.PairRules{clusterPair}}, err
}

var clusterPair = directory.PairRules{Name: "BTC_USD", Base: "BTC", Quote: "USD", PricePrecision: 2,
	AmountPrecision: 8, MinimumOrderSize: 1, MaximumOrderSize: money.MaxAmount}

// start starts a node; it may be ended before it has recovered.
func (n *clusterNode) start() {
	r := n.r
	l := &nodeLife{r: r, at: n.at, older: n.reads == machine.First, ended: make(chan struct{}),
		local: memory.Open(n.local, persistence.Retention{})}
	l.unfit.Store(n.unfit)
	w := &startup{Options: Options{Cluster: cluster, Name: n.name(), Nodes: r.named(),
		Folder: folder, Local: l.local, Logger: quiet, Copies: &courier{n: n, l: l},
		Tick: clusterTick, files: n.disk.files(), Fatal: func(err error) {
			if !l.dead.Load() {
				r.Error("fatal:", err)
			}
		}}, frames: make(chan received, maxFrames), link: cable{l}}
	w.adapt = func(o *options) {
		o.random, o.maxFormat, o.minTrim = r.draw, n.reads, 64
		o.now = func() time.Time { return time.Now().Add(time.Duration(n.ahead.Load())) }
		o.onApply = func(index uint64, e *machine.Entry, a machine.Answer) {
			if !l.dead.Load() {
				r.judge.checkEntry(n.at, index, e, a)
			}
		}
	}
	_, err := w.prepare()
	must(r.T, err)
	w.formation.maxFormat = n.reads
	w.ticker = time.NewTicker(clusterTick)
	l.opening = w
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	n.life.Store(l)
	go n.live(ctx, l)
}

// live lets the node join its cluster, and lead whenever it can.
func (n *clusterNode) live(ctx context.Context, l *nodeLife) {
	defer close(l.ended)
	s, err := l.opening.open(ctx)
	if err == nil {
		err = n.lead(ctx, l, s)
	}
	l.failure = err
	if err != nil && !l.dead.Load() && ctx.Err() == nil && !l.unfit.Load() {
		n.r.Errorf("node %d has ended: %v", n.at, err)
	}
}

// lead lets the node lead whenever it can. It returns nil if the node only votes.
func (n *clusterNode) lead(ctx context.Context, l *nodeLife, s *store) error {
	o, err := engineOptions(s, n.key)
	if o.Scheduler = l; err == nil {
		l.node, err = actornode.Start(ctx, o)
	}
	if errors.Is(err, persistence.ErrFormat) {
		actornode.VoteOnly(ctx, s, quiet)
		return nil
	}
	if err == nil {
		follows, end := context.WithCancel(ctx)
		var following sync.WaitGroup
		following.Go(func() { l.follow(follows) })
		defer following.Wait()
		defer end()
	}
	for err == nil {
		var e *actors.Engine
		if e, err = l.node.Lead(ctx); err == nil {
			l.led.Store(true)
			l.engine.Store(e)
			<-e.Dead()
			l.engine.Store(nil)
		}
	}
	if errors.Is(err, persistence.ErrFormat) && l.older {
		return nil // it votes until it is upgraded
	}
	return err
}

// follow serves public reads whenever the node can, until ctx ends.
func (l *nodeLife) follow(ctx context.Context) {
	for ctx.Err() == nil {
		if a, err := l.node.Follow(ctx); err == nil {
			l.follower.Store(a)
			a.Await(ctx) //nolint:errcheck // it is retried
			l.follower.Store(nil)
			a.End()
		}
		time.Sleep(l.r.wait(5*time.Millisecond, 50*time.Millisecond))
	}
}

// crash ends a node as a power cut does. Its later frames are dropped.
func (n *clusterNode) crash() {
	l := n.life.Load()
	if l == nil {
		return
	}
	l.dead.Store(true)
	n.r.breakSpans(func(s *span) bool { return s.ends[0] == l || s.ends[1] == l })
	n.r.mu.Lock()
	n.disk = n.disk.crash(n.r.T, n.r.rng)
	l.local.Close()
	writes, _ := n.local.Unsynced()
	n.local.Crash(n.r.rng.IntN(1+writes), 0)
	n.r.mu.Unlock()
	n.life.Store(nil)
	n.r.ends.Go(l.end)
}

// end ends the goroutines of a node.
func (l *nodeLife) end() {
	l.opening.ticker.Stop()
	l.cancel()
	for ended := false; ; { // another term may begin meanwhile
		if s := l.store(); s != nil {
			s.Close() //nolint:errcheck // it is no longer used
		}
		if e := l.engine.Load(); e != nil {
			e.Abandon()
		}
		if ended { // after the end nothing begins
			break
		}
		select {
		case <-l.ended:
			ended = true
		case <-time.After(time.Millisecond):
		}
	}
	if l.node != nil {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		l.node.Stop(ctx) //nolint:errcheck // as above
	}
}
