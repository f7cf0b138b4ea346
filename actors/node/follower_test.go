package node

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"exchange/actors"
	"exchange/actors/committed"
	"exchange/core/money"
	"exchange/core/state"
)

// follower makes a node serve public data.
func (c *cluster) follower(i int) *Follower {
	c.Helper()
	var a *Follower
	eventually(c.T, "the node serves public data", func() (ok bool) {
		var err error
		a, err = c.nodes[i].Follow(c.Context())
		return err == nil
	})
	c.Cleanup(a.End)
	return a
}

// bookOf reads the whole book, in which each of ann's orders is an order of its own.
func bookOf(t *testing.T, p *actors.Public) int {
	t.Helper()
	v := must[*committed.View](t)(p.View(committed.ViewOrders, p.Pairs()[0], 0, 1000, 1000))
	return len(v.Depth.SellOrders)
}

// Reads at a follower contain everything acknowledged before the request, and the leader shows
// everything the follower has shown. The follower's channels receive later changes, even when the
// node becomes the leader, until the follower ends.
func TestFollowerServesPublicData(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, nil)
		r := c.next()
		fund(t, r.Engine, "ann", map[string]money.Amount{"BTC": 100 * coin})
		ann, at := &sold{T: t}, (r.at+1)%len(c.nodes)
		a := c.follower(at)
		if _, err := c.nodes[at].Follow(t.Context()); err == nil {
			t.Fatal("a node has two followers")
		}
		w := &witness{}
		pid := a.SpawnChannel("witness", func() actor.Actor { return w })
		a.Watch(committed.Watch{Channel: pid, Kind: committed.WatchStatus, Token: 7})
		for i := range 50 {
			ann.sell(r)
			if n := bookOf(t, a.Public); n != i+1 {
				t.Fatalf("%d orders are acknowledged, and %d are shown", i+1, n)
			}
			if n := bookOf(t, r.Public); n != i+1 {
				t.Fatalf("%d orders were shown elsewhere, and %d are shown here", i+1, n)
			}
		}
		halt := func(r *termAt, on bool) {
			t.Helper()
			eventually(t, "the leader has applied it", func() bool {
				_, err := r.Halt("test", r.Pairs()[0].Name, on)
				if err != nil && !errors.Is(err, actors.ErrNotConfirmed) {
					t.Fatal(err)
				}
				return err == nil
			})
			var now committed.StatusNow
			if err := a.Ask(&now, nil, 0); err != nil || len(now.Halted) == 1 != on {
				t.Errorf("halted: %v, shown: %+v %v", on, now.Status, err)
			}
		}
		halt(r, true)
		c.kill(r.at)
		for r = c.next(); r.at != at; r = c.next() { // the channels receive changes from any leader
			if err := c.nodes[r.at].store.Transfer(t.Context(), c.list[at].Name); err != nil {
				t.Log(err)
			}
		}
		halt(r, false)
		receives := func(w *witness, want ...string) {
			t.Helper()
			eventually(t, fmt.Sprint("a channel receives ", want), func() bool {
				w.mu.Lock()
				defer w.mu.Unlock()
				return fmt.Sprint(w.events) == fmt.Sprint(want)
			})
		}
		all := []string{"watched 7 {false  false} []", "status 1 true {false  false}",
			"status 1 false {false  false}"}
		receives(w, all...)
		a.End()
		if err := a.Ask(new(committed.StatusNow), nil, 0); !errors.Is(err, actors.ErrStopping) {
			t.Error(err)
		}
		its := &witness{}
		pid = r.SpawnChannel("its", func() actor.Actor { return its })
		r.Watch(committed.Watch{Channel: pid, Kind: committed.WatchStatus, Token: 8})
		receives(its, "watched 8 {false  false} []")
		must[any](t)(r.Halt("test", r.Pairs()[0].Name, true))
		receives(its, "watched 8 {false  false} []", "status 1 true {false  false}")
		receives(w, all...)
	})
}

// A witness is a channel that records changes of halts and maintenance.
type witness struct {
	mu     sync.Mutex
	events []string
}

func (w *witness) Receive(ctx actor.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch m := ctx.Message().(type) {
	case *committed.Watched:
		w.events = append(w.events, fmt.Sprintf("watched %d %v %v", m.Token, m.Status.Maintenance,
			m.Status.Halted))
	case *committed.StatusChanges:
		for _, x := range m.List {
			w.events = append(w.events, fmt.Sprintf("status %d %v %v", x.Pair, x.Halted,
				x.Maintenance))
		}
	}
}

// At any node a term receives its initial state before it writes, and can set the clock back by it.
// Followers do not show unpublished pairs.
func TestTermStartsWithClockSetBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const day = int64(24 * time.Hour / time.Microsecond)
		errUnshown := errors.New("ann is not there yet")
		c := newCluster(t, func(_ int, o *actors.Options) {
			var late atomic.Int64
			o.ClockError = func() time.Duration { return -time.Duration(late.Load()) }
			o.OnStart = func(s *state.State) {
				if late.Store(0); s.AccountByName("ann") == nil {
					late.Store(int64(24 * time.Hour))
				}
			}
			o.NotReady = func(s *state.State) error {
				if s.AccountByName("ann") == nil {
					return errUnshown
				}
				return nil
			}
		})
		newest := func(r *termAt) (us int64) {
			t.Helper()
			if err := c.nodes[r.at].onSide(
				func() { us = c.nodes[r.at].committed.State().TimeUs() }); err != nil {
				t.Fatal(err)
			}
			return us - time.Now().UnixMicro()
		}
		r := c.next()
		if ahead := newest(r); ahead > -day {
			t.Errorf("the records of the start are of %d µs before now", -ahead)
		}
		eventually(t, "the others show nothing", func() bool {
			_, err := c.nodes[(r.at+1)%len(c.nodes)].Follow(t.Context())
			if err == nil {
				t.Fatal("an unpublished pair is shown")
			}
			return errors.Is(err, errUnshown)
		})
		fund(t, r.Engine, "ann", map[string]money.Amount{"BTC": coin})
		if ahead := newest(r); ahead > -day {
			t.Errorf("the records of this term are of %d µs before now", -ahead)
		}
		c.follower((r.at + 1) % len(c.nodes)).End()
		c.caughtUp(r)
		c.kill(r.at)
		r = c.next()
		fund(t, r.Engine, "bob", nil)
		if ahead := newest(r); ahead < -day/2 {
			t.Errorf("the records of the next term are of %d µs before now", -ahead)
		}
	})
}

// A node without a leader serves nothing, and ends its follower.
func TestNodeWithoutMajorityServesNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCluster(t, nil)
		r := c.next()
		at := (r.at + 1) % len(c.nodes)
		a := c.follower(at)
		for i := range c.nodes {
			if i != at {
				c.kill(i)
			}
		}
		if _, err := a.View(committed.ViewTicker, a.Pairs()[0], 0, 0, 0); err == nil {
			t.Error("a read is answered that no majority has confirmed")
		}
		if err := a.Await(t.Context()); !errors.Is(err, errLagged) {
			t.Error(err)
		}
	})
}
