package replicated

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"exchange/actors"
	"exchange/actors/committed"
	"exchange/core/event"
	"exchange/core/money"
	"exchange/persistence/internal/machine"
	"exchange/prove/spec"
)

var exchangeSeeds = flag.Int("exchanges", 15, "the number of simulated exchanges of three nodes")

const (
	clusterTick    = 10 * time.Millisecond
	clusterClients = 3
	clusterFaults  = 12
	stallMax       = 3 * time.Second
	coin           = money.Amount(1e8)
)

// A liveCluster is three nodes with real engines, and two more that may join. Their disks, the
// network between them and the clock are simulated: power fails, frames are lost, doubled, late and
// swapped, links are cut one way or both, nodes stand still, and are started with wrong keys or
// programs. Disks are lost, are older copies, and have wrong bits; nodes join, are replaced and
// removed. A seed draws the faults and all times. Go's scheduler decides which of two goroutines
// that wake each other continues first, so a run is not exactly reproducible.
type liveCluster struct {
	*testing.T
	judge  *judge
	nodes  [places]*clusterNode
	voting []*clusterNode // the voters
	begun  bool           // clients have accounts
	users  []*client
	acks   atomic.Int64
	rests  atomic.Int64 // factor by which clients slow down while the nodes are in focus
	peeks  atomic.Int64 // public reads
	// accepted commands of clients of followers
	forwarded atomic.Int64
	ends      sync.WaitGroup // of crashed nodes
	counts    map[string]int // of faults

	acting sync.WaitGroup // clients
	stop   chan struct{}  // closed to end the clients
	halted sync.Once

	mu   sync.Mutex // guards the fields below
	rng  *rand.Rand
	cut  [places][places]bool // from, to
	loss int                  // in percent of frames
	late time.Duration        // maximum delay of a frame
	open []*span              // the oldest first
}

func (r *liveCluster) draw(n int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rng.IntN(n)
}

// any returns a node that believes it leads, and its engine.
func (r *liveCluster) any(rng *rand.Rand) (*nodeLife, *actors.Engine) {
	for _, i := range rng.Perm(places) {
		if l := r.nodes[i].life.Load(); l != nil {
			if e := l.engine.Load(); e != nil {
				return l, e
			}
		}
	}
	return nil, nil
}

// fault causes a fault, and may wait for its effect.
func (r *liveCluster) fault() {
	n := r.other()
	switch r.draw(22) {
	case 0, 1: // a crash
		n.crash()
		r.serves(10)
		n.start()
	case 2: // of all
		r.crashAll()
	case 3, 4: // a node is cut off, one way or both
		r.cutOff(n)
		r.serves(10 + r.draw(20))
		r.heal()
	case 5: // one is cut off, and another one crashes
		r.cutOff(n)
		other := r.other(n)
		other.crash()
		time.Sleep(time.Duration(r.draw(2000)) * time.Millisecond)
		r.heal()
		other.start()
	case 6: // a node stands still, while its engine runs
		r.standStill(n.life.Load().stop)
	case 7: // with its engine
		r.standStill(n.life.Load().stopAll)
	case 8: // its clock is wrong
		n.ahead.Store(int64(time.Duration(r.draw(20)-10) * time.Second))
		r.serves(10)
		n.ahead.Store(0)
	case 9: // it is started with the key of another exchange, and again with its own
		r.restart(n, func() { n.key = 1 })
		r.restart(n, func() { n.key = 0 })
	case 10: // or with an older program
		r.restart(n, func() { n.reads = machine.First })
		r.restart(n, func() { n.reads = newer })
	case 11: // the network is bad
		r.network(20, 50*time.Millisecond)
		r.serves(20)
		r.network(1, 2*time.Millisecond)
	case 12:
		r.lose(n)
	case 13:
		r.putBack(n)
	case 14, 15: // another node joins, or one of four is removed
		if len(r.voting) > voters {
			r.remove(n)
		} else {
			r.add()
		}
	case 16:
		r.flip(n)
	default:
		r.handOver(n, "")
	}
	r.serves(10)
}

// standStill stops a node, or a part of it, for a while.
func (r *liveCluster) standStill(stop func() (goOn func())) {
	defer stop()()
	r.serves(10)
}

// restart restarts a node with another key or program, while the two others serve.
func (r *liveCluster) restart(n *clusterNode, other func()) {
	n.crash()
	r.serves(5)
	other()
	n.start()
	r.serves(5)
}

func (r *liveCluster) crashAll() {
	for _, n := range r.voting {
		n.crash()
	}
	for _, n := range r.voting {
		n.start()
	}
}

func (r *liveCluster) cutOff(n *clusterNode) { r.cutOffWay(n, r.draw(3)) }

// cutOffWay cuts a node off; way 0: in both directions.
func (r *liveCluster) cutOffWay(n *clusterNode, way int) {
	r.mu.Lock()
	for i := range r.nodes {
		r.cut[n.at][i], r.cut[i][n.at] = way != 1, way != 2
	}
	r.mu.Unlock()
	r.breakSpans(func(s *span) bool { return s.ends[0].at == n.at || s.ends[1].at == n.at })
}

func (r *liveCluster) heal() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cut = [places][places]bool{}
}

func (r *liveCluster) network(loss int, late time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.loss, r.late = loss, late
}

// until waits for a condition, on the simulated clock.
func (r *liveCluster) until(what string, condition func() bool) {
	r.Helper()
	poll := time.NewTicker(time.Millisecond)
	defer poll.Stop()
	for late := time.After(time.Minute); !condition(); {
		select {
		case <-poll.C:
			if r.Failed() {
				r.FailNow()
			}
		case <-late:
			r.Fatalf("it did not happen within a minute: %s", what)
		}
	}
}

// serves waits until n more requests are answered.
func (r *liveCluster) serves(n int) {
	r.Helper()
	more := r.acks.Load() + int64(n)
	r.until("requests are answered", func() bool { return r.acks.Load() >= more })
}

// newLiveCluster starts three nodes, and creates the clients' accounts.
func newLiveCluster(t *testing.T, seed uint64) *liveCluster {
	r := &liveCluster{T: t, rng: rand.New(rand.NewPCG(seed, 5)), stop: make(chan struct{}), loss: 1,
		late: 2 * time.Millisecond, counts: map[string]int{}}
	r.judge = newJudge(func(format string, v ...any) { r.Errorf(format, v...) },
		actors.DefaultLimits.MaxFills,
		map[string]spec.Rules{clusterPair.Name: {}})
	r.judge.model.CodeValid = actors.DefaultWithdrawal.CodeValid
	for i := range r.nodes {
		r.nodes[i] = &clusterNode{r: r, at: i}
		r.nodes[i].empty()
		r.nodes[i].reads = uint8(machine.First + r.draw(2)) // upgraded later
	}
	r.Cleanup(r.end)
	r.voting = slices.Clone(r.nodes[:voters])
	for _, n := range r.voting {
		n.start()
	}
	for i := range clusterClients {
		c := &client{r: r, rng: rand.New(rand.NewPCG(seed, uint64(100+i))),
			name: fmt.Sprint("client", i), reader: i == 0}
		r.users = append(r.users, c)
		r.until("the account of "+c.name+" is made", c.begin)
	}
	r.begun = true
	return r
}

// begin creates the account, with a key and money. It reports false if it must be repeated.
func (c *client) begin() bool {
	_, e := c.r.any(c.rng)
	if e == nil {
		return false
	}
	_, err1 := e.CreateAccount("test", c.name, "")
	_, err2 := e.CreateKey("test", c.name, c.key(), "secret", event.AllPermissions, nil)
	_, err3 := e.Deposit("test", c.name, "BTC", 1000*coin, c.name)
	_, err4 := e.Deposit("test", c.name, "USD", 100_000*coin, c.name+" USD")
	return errors.Join(err3, err4) == nil && (errors.Join(err1, err2) == nil ||
		e.Key([]byte(c.key())) != nil)
}

// play lets clients act under faults, and then compares all nodes.
func (r *liveCluster) play() {
	for _, c := range r.users {
		r.acting.Go(c.run)
	}
	r.serves(10)
	for range clusterFaults {
		r.fault()
	}
	r.halt()
	r.compare()
}

// halt ends the clients.
func (r *liveCluster) halt() {
	r.halted.Do(func() { close(r.stop) })
	r.acting.Wait()
}

// end ends everything, so that no goroutine is left in the bubble.
func (r *liveCluster) end() {
	r.halt()
	for _, n := range r.nodes {
		n.crash()
	}
	r.ends.Wait()
	if r.Failed() {
		r.Log("the last events:\n" + r.judge.newest())
	}
	time.Sleep(2 * stallMax) // until retried appends have ended
}

// compare lets each node lead in turn. Each must hold all accepted requests, and the same state.
func (r *liveCluster) compare() {
	hashes := map[[32]byte]int{}
	for _, n := range r.voting {
		r.until(fmt.Sprintf("node %d leads, and is compared", n.at), func() bool {
			l := n.life.Load()
			e := l.engine.Load()
			if e == nil {
				for _, other := range r.voting {
					r.handOver(other, nodeNames[n.at])
				}
				return false
			}
			h := new(committed.Hash)
			err := e.VerifyAtRest()
			for _, c := range r.users {
				err = errors.Join(err, c.read(endpointOf(l, e), e.Key([]byte(c.key()))))
			}
			if err = errors.Join(err, e.Ask(h, nil, 0), h.Err); err == nil {
				hashes[h.Hash]++
			}
			return err == nil
		})
	}
	for _, c := range r.users {
		c.atRest()
	}
	if len(hashes) != 1 {
		r.Errorf("the nodes have %d states", len(hashes))
	}
}

// handOver asks a leader to hand the lead over; to "": to any other.
func (r *liveCluster) handOver(from *clusterNode, to string) {
	if s := from.store(); s != nil && s.Leads() && to != from.name() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		s.Transfer(ctx, to) //nolint:errcheck // it may no longer lead
	}
}

// Whatever faults three nodes have, no acknowledged request is lost, no outcome is sent twice, no
// deposed leader answers a read, and all nodes reach the same state.
func TestThreeNodesAreOneExchange(t *testing.T) {
	var answered, peeks, forwarded int64
	faults := map[string]int{}
	for seed := *fromSeed; seed < *fromSeed+uint64(*exchangeSeeds) && !t.Failed(); seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			runtime.GC() // clear the pools of another bubble's channels,
			runtime.GC() // and their victim caches
			synctest.Test(t, func(t *testing.T) {
				r := newLiveCluster(t, seed)
				r.play()
				answered += r.acks.Load()
				peeks += r.peeks.Load()
				forwarded += r.forwarded.Load()
				for what, n := range r.counts {
					faults[what] += n
				}
			})
		})
	}
	t.Logf("%d requests were answered, %d commands were forwarded to the leader, and there "+
		"were %d reads at any node; %v", answered, forwarded, peeks, faults)
	if forwarded < 5*int64(*exchangeSeeds) {
		t.Errorf("%d commands of clients at followers were accepted: too few", forwarded)
	}
	if peeks < 20*int64(*exchangeSeeds) {
		t.Errorf("%d public reads were answered: too few", peeks)
	}
}
