package replicated

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"exchange/actors"
	"exchange/actors/directory"
	"exchange/actors/mailbox"
	"exchange/actors/seal"
	"exchange/core/money"
	"exchange/persistence"
	"exchange/persistence/internal/machine"
	"exchange/persistence/memory"
)

// reigning is the place of a node.
type reigning struct {
	r     *realm
	at    int
	disk  *disk
	local *memory.Disk
	reads uint8                    // newest format that its program reads; 0: the newest there is
	key   byte                     // of the server; 0: that of the others
	ahead atomic.Int64             // ns of its clock
	life  atomic.Pointer[nodeLife] // nil: it is down
}

// A nodeLife is a node from its start to its crash. It is the scheduler of its actors: each message
// is handled at a moment of its own, which the seed draws.
type nodeLife struct {
	mailbox.Runners
	r      *realm
	at     int
	store  *store
	local  *memory.Store
	node   *actors.Node
	engine atomic.Pointer[actors.Engine] // nil: it does not reign
	dead   atomic.Bool                   // its power has failed
	older  bool                          // its program does not read the newest format
	ticker *time.Ticker
	cancel context.CancelFunc
	ended  chan struct{}

	mu    sync.Mutex
	still bool // it stands still
	held  []*mailbox.Mailbox
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
	if m.Turn(1) && mailbox.Waiting(m) || m.GoesOn() {
		l.Schedule(m)
	}
}

// stop lets the node's store stand still until the returned function is called.
func (l *nodeLife) stop() (goOn func()) {
	again := make(chan struct{})
	go l.store.call(context.Background(), func(*node) { <-again }) //nolint:errcheck // it is gone
	return func() { close(again) }
}

// stopAll lets the whole node stand still, as SIGSTOP does.
func (l *nodeLife) stopAll() (goOn func()) {
	storeGoesOn := l.stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.still = true
	return func() {
		storeGoesOn()
		l.mu.Lock()
		held := l.held
		l.still, l.held = false, nil
		l.mu.Unlock()
		for _, m := range held {
			l.Schedule(m)
		}
	}
}

// wait draws a time: below most, or one in fifty below the other bound.
func (r *realm) wait(most, rarely time.Duration) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rng.IntN(50) == 0 {
		most = rarely
	}
	return 1 + time.Duration(r.rng.Int64N(int64(most)))
}

// send takes a frame to a node, perhaps late, twice or not at all.
func (r *realm) send(from *nodeLife, at, to int, frame []byte) {
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
				l.store.receive(nodeNames[at], slices.Clone(frame))
			}
		})
	}
}

// reignOptions returns the options of an engine; key tells server keys apart.
func reignOptions(s persistence.Store, key byte) (actors.Options, error) {
	sealer, err := seal.New(bytes.Repeat([]byte{key}, seal.KeyBytes))
	limits, timing := actors.DefaultLimits, actors.DefaultTiming
	limits.ClientIDFilter = 64 << 10
	timing.Request, timing.StallMax = 100*time.Millisecond, stallMax
	return actors.Options{Store: s, Owner: s.String(), Limits: limits, Log: quiet,
		Timing: timing, Snapshot: actors.DefaultSnapshot,
		Withdrawal:  actors.DefaultWithdrawal,
		Sealer:      func(bool) (*seal.Sealer, error) { return sealer, nil },
		KeyMaterial: func(secret []byte) any { return string(secret) },
		Mail: func(context.Context, *actors.Mail) error {
			return errors.New("the mail server takes nothing")
		},
		Exit:       func(code int) { panic(fmt.Sprint("exit ", code)) },
		Currencies: []directory.Currency{{Code: "BTC"}, {Code: "USD"}},
		Pairs:      []directory.PairRules{realmPair}}, err
}

var realmPair = directory.PairRules{Name: "BTC_USD", Base: "BTC", Quote: "USD", PricePrecision: 2,
	AmountPrecision: 8, MinimumOrderSize: 1, MaximumOrderSize: money.MaxAmount}

// start starts a node; it may be told to end before it has recovered.
func (n *reigning) start() {
	r := n.r
	l := &nodeLife{r: r, at: n.at, local: memory.Open(n.local, persistence.Retention{}),
		older:  n.reads == machine.First,
		ticker: time.NewTicker(reignTick), ended: make(chan struct{})}
	if ok, err := n.disk.mem.Stat(folder); ok == nil || err != nil {
		must(r.T, newFormer(cluster, nodeNames[:voters], nodeNames[n.at], "", empty, nil,
			quiet).form(n.disk.mem, folder))
	}
	var err error
	l.store, err = open(options{dir: folder, files: n.disk.files(), local: l.local,
		send: func(to string, frame []byte) {
			r.send(l, n.at, slices.Index(nodeNames, to), frame)
		},
		ticks: l.ticker.C, random: r.draw, logger: slog.New(quiet.Handler()), reads: n.reads,
		now: func() time.Time { return time.Now().Add(time.Duration(n.ahead.Load())) },
		saw: func(index uint64, e *machine.Entry, a machine.Answer) {
			if !l.dead.Load() {
				r.judge.saw(n.at, index, e, a)
			}
		},
		fatal: func(err error) { r.Error("fatal:", err) }, least: 64})
	must(r.T, err)
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	n.life.Store(l)
	go n.live(ctx, l)
}

// live lets the node reign whenever it can.
func (n *reigning) live(ctx context.Context, l *nodeLife) {
	defer close(l.ended)
	o, err := reignOptions(l.store, n.key)
	if o.Scheduler = l; err == nil {
		l.node, err = actors.StartNode(ctx, o)
	}
	if errors.Is(err, persistence.ErrFormat) {
		actors.VoteOn(ctx, l.store, quiet)
		return
	}
	for err == nil {
		var e *actors.Engine
		if e, err = l.node.Reign(ctx); err == nil {
			l.engine.Store(e)
			<-e.Dead()
			l.engine.Store(nil)
		}
	}
	if errors.Is(err, persistence.ErrFormat) && l.older {
		return // it votes on until it is brought up to date
	}
	if !l.dead.Load() && ctx.Err() == nil {
		n.r.Errorf("node %d has ended: %v", n.at, err)
	}
}

// crash ends a node as a power cut does. What it says from then on is not heard.
func (n *reigning) crash() {
	l := n.life.Load()
	if l == nil {
		return
	}
	l.dead.Store(true)
	n.r.mu.Lock()
	n.disk = n.disk.crash(n.r.T, n.r.rng)
	n.r.mu.Unlock()
	l.local.Close()
	writes, _ := n.local.Unsynced()
	n.local.Crash(n.r.draw(1+writes), 0)
	n.life.Store(nil)
	n.r.ends.Go(l.end)
}

// end ends the goroutines of a node.
func (l *nodeLife) end() {
	l.ticker.Stop()
	l.cancel()
	l.store.Close()               //nolint:errcheck // it is of no use any more
	for ended := false; !ended; { // another reign may begin meanwhile
		if e := l.engine.Load(); e != nil {
			e.Abandon()
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
