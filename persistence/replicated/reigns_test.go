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

var reignSeeds = flag.Int("reigns", 15, "how many exchanges of three nodes are played")

const (
	reignTick    = 10 * time.Millisecond
	reignClients = 3
	reignFaults  = 12
	stallMax     = 3 * time.Second
	coin         = money.Amount(1e8)
)

// A realm is three nodes with real engines, and two more that may join. Their disks, the network
// between them and the clock are simulated: power fails, frames are lost, doubled, late and
// swapped, links are cut one way or both, nodes stand still, and are started with what they should
// not have. Disks are lost, are older copies, and have wrong bits; nodes join, are replaced and
// removed. A seed draws the faults and all times. Which of two goroutines that wake each other goes
// on first is Go's choice, so a run is not repeated to the letter.
type realm struct {
	*testing.T
	judge  *judge
	nodes  [places]*reigning
	voting []*reigning // the voters
	begun  bool        // clients have accounts
	users  []*client
	acks   atomic.Int64
	rests  atomic.Int64 // how much longer clients wait than usual: the nodes are what is played
	peeks  atomic.Int64 // reads of what is public
	// commands that were accepted for clients of nodes that follow
	forwarded atomic.Int64
	ends      sync.WaitGroup // of crashed nodes
	counts    map[string]int // of faults

	acting sync.WaitGroup // clients
	stop   chan struct{}  // closed when they are to end
	halted sync.Once

	mu   sync.Mutex // of what follows
	rng  *rand.Rand
	cut  [places][places]bool // from, to
	loss int                  // of a hundred frames
	late time.Duration        // that a frame may be at most
	open []*span              // the oldest first
}

func (r *realm) draw(n int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rng.IntN(n)
}

// any returns a node that thinks that it reigns, and its engine.
func (r *realm) any(rng *rand.Rand) (*nodeLife, *actors.Engine) {
	for _, i := range rng.Perm(places) {
		if l := r.nodes[i].life.Load(); l != nil {
			if e := l.engine.Load(); e != nil {
				return l, e
			}
		}
	}
	return nil, nil
}

// fault brings one about, and may wait for what it leads to.
func (r *realm) fault() {
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
	case 5: // two are, of which one may crash
		r.cutOff(n)
		other := r.other(n)
		other.crash()
		time.Sleep(time.Duration(r.draw(2000)) * time.Millisecond)
		r.heal()
		other.start()
	case 6: // a node stands still, while its engine goes on
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
func (r *realm) standStill(stop func() (goOn func())) {
	defer stop()()
	r.serves(10)
}

// restart starts a node as something else, while the two others serve.
func (r *realm) restart(n *reigning, other func()) {
	n.crash()
	r.serves(5)
	other()
	n.start()
	r.serves(5)
}

func (r *realm) crashAll() {
	for _, n := range r.voting {
		n.crash()
	}
	for _, n := range r.voting {
		n.start()
	}
}

func (r *realm) cutOff(n *reigning) { r.cutOffWay(n, r.draw(3)) }

// cutOffWay cuts a node off: 0 is both ways.
func (r *realm) cutOffWay(n *reigning, way int) {
	r.mu.Lock()
	for i := range r.nodes {
		r.cut[n.at][i], r.cut[i][n.at] = way != 1, way != 2
	}
	r.mu.Unlock()
	r.breakSpans(func(s *span) bool { return s.ends[0].at == n.at || s.ends[1].at == n.at })
}

func (r *realm) heal() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cut = [places][places]bool{}
}

func (r *realm) network(loss int, late time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.loss, r.late = loss, late
}

// until waits for a condition that the nodes bring about, on the clock of the realm.
func (r *realm) until(what string, condition func() bool) {
	r.Helper()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for late := time.After(time.Minute); !condition(); {
		select {
		case <-look.C:
			if r.Failed() {
				r.FailNow()
			}
		case <-late:
			r.Fatalf("it did not happen within a minute: %s", what)
		}
	}
}

// serves waits until some more requests are answered.
func (r *realm) serves(n int) {
	r.Helper()
	more := r.acks.Load() + int64(n)
	r.until("requests are answered", func() bool { return r.acks.Load() >= more })
}

// newRealm starts three nodes, and makes the clients' accounts.
func newRealm(t *testing.T, seed uint64) *realm {
	r := &realm{T: t, rng: rand.New(rand.NewPCG(seed, 5)), stop: make(chan struct{}), loss: 1,
		late: 2 * time.Millisecond, counts: map[string]int{}}
	r.judge = newJudge(func(format string, v ...any) { r.Errorf(format, v...) },
		actors.DefaultLimits.MaxFills,
		map[string]spec.Rules{realmPair.Name: {}})
	r.judge.model.CodeValid = actors.DefaultWithdrawal.CodeValid
	for i := range r.nodes {
		r.nodes[i] = &reigning{r: r, at: i}
		r.nodes[i].empty()
		r.nodes[i].reads = uint8(machine.First + r.draw(2)) // they are brought up to date later
	}
	r.Cleanup(r.end)
	r.voting = slices.Clone(r.nodes[:voters])
	for _, n := range r.voting {
		n.start()
	}
	for i := range reignClients {
		c := &client{r: r, rng: rand.New(rand.NewPCG(seed, uint64(100+i))),
			name: fmt.Sprint("client", i), reader: i == 0}
		r.users = append(r.users, c)
		r.until("the account of "+c.name+" is made", c.begin)
	}
	r.begun = true
	return r
}

// begin makes the account, with a key and money. It reports false if it has to be done again.
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
func (r *realm) play() {
	for _, c := range r.users {
		r.acting.Go(c.run)
	}
	r.serves(10)
	for range reignFaults {
		r.fault()
	}
	r.halt()
	r.compare()
}

// halt ends the clients.
func (r *realm) halt() {
	r.halted.Do(func() { close(r.stop) })
	r.acting.Wait()
}

// end ends everything, so that no goroutine is left in the bubble.
func (r *realm) end() {
	r.halt()
	for _, n := range r.nodes {
		n.crash()
	}
	r.ends.Wait()
	if r.Failed() {
		r.Log("what happened last:\n" + r.judge.newest())
	}
	time.Sleep(2 * stallMax) // appends end that are tried again
}

// compare lets each node reign in turn. Each has all that was accepted, and the same state.
func (r *realm) compare() {
	hashes := map[[32]byte]int{}
	for _, n := range r.voting {
		r.until(fmt.Sprintf("node %d reigns, and is compared", n.at), func() bool {
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
				err = errors.Join(err, c.see(deskOf(l, e), e.Key([]byte(c.key()))))
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

// handOver asks a node to hand the lead over; "": to any other, and none that has it to itself.
func (r *realm) handOver(from *reigning, to string) {
	if s := from.store(); s != nil && s.Leads() && to != from.name() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		s.Transfer(ctx, to) //nolint:errcheck // it may lead no more
	}
}

// Whatever happens to three nodes, nothing is lost that an engine has acknowledged, nothing is told
// by two, no leader of before answers a read, and all nodes come to the same state.
func TestReignsAreOneExchange(t *testing.T) {
	var answered, peeks, forwarded int64
	faults := map[string]int{}
	for seed := *fromSeed; seed < *fromSeed+uint64(*reignSeeds) && !t.Failed(); seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			runtime.GC() // pools have channels of another bubble,
			runtime.GC() // and their second chances
			synctest.Test(t, func(t *testing.T) {
				r := newRealm(t, seed)
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
	t.Logf("%d requests were answered, %d commands went to another node that leads, and there "+
		"were %d reads at any node; %v", answered, forwarded, peeks, faults)
	if forwarded < 5*int64(*reignSeeds) {
		t.Errorf("%d commands of clients at nodes that follow were accepted: too few", forwarded)
	}
	if peeks < 20*int64(*reignSeeds) {
		t.Errorf("%d reads of what is public were answered: too few", peeks)
	}
}
