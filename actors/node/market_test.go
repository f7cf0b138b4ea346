package node

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"exchange/actors"
	"exchange/core/money"
	"exchange/persistence"
)

// withoutPairs is a market part without pairs.
const withoutPairs = "nothing"

// Market parts of a newer format than a cluster's first one end with more.
const (
	firstFormat = persistence.NewestFormat
	more        = "+"
)

// risenFormat is a store of a node, all of whose members read one format more once risen is set.
type risenFormat struct {
	persistence.Replica
	risen *atomic.Bool
}

func (s risenFormat) Standing() persistence.Standing {
	st := s.Replica.Standing()
	if s.risen.Load() {
		st.Format++
	}
	return st
}

// fileOf is the market part of a node's file: the taker fee of all pairs.
func fileOf(node int) string { return fmt.Sprint(1000 + node) }

// withMarkets is a cluster whose nodes have different files.
func withMarkets(t *testing.T) *cluster {
	risen := new(atomic.Bool)
	c := newCluster(t, func(i int, o *actors.Options) {
		o.Store = risenFormat{o.Store.(persistence.Replica), risen}
		put := func(text []byte, o *actors.Options) error {
			fees := strings.TrimSuffix(string(text), more)
			if fees == withoutPairs {
				o.Pairs = nil
				return nil
			}
			fee, err := strconv.Atoi(fees)
			if err != nil {
				return fmt.Errorf("%w: %w", actors.ErrConfig, err)
			}
			o.Pairs = slices.Clone(o.Pairs)
			for j := range o.Pairs {
				o.Pairs[j].Fees.Taker = money.Rate(fee)
			}
			return nil
		}
		if err := put([]byte(fileOf(i)), o); err != nil {
			t.Error(err)
		}
		text := func(applied []byte, format uint8) ([]byte, error) {
			if applied == nil {
				applied = []byte(fileOf(i))
			}
			if format > firstFormat && !bytes.HasSuffix(applied, []byte(more)) {
				applied = append(bytes.Clone(applied), more...)
			}
			return applied, nil
		}
		o.Market = &actors.Market{Text: text, Use: put}
	})
	c.risen = risen
	return c
}

// decides checks that a term and all nodes use a market part, with the additions of a newer format.
func (c *cluster) decides(r *termAt, market string) {
	c.Helper()
	for _, p := range r.Pairs() {
		if got := fmt.Sprint(int64(p.Rules().Fees.Taker)); got != market {
			c.Errorf("node %d leads with the fee %s, and %s is the applied one", r.at, got, market)
		}
	}
	c.risen.Store(true)
	eventually(c.T, "all nodes have the market part", func() bool {
		for _, s := range c.nodes {
			if now, _ := s.store.Market(); string(now) != market+more {
				return false
			}
		}
		return true
	})
}

// to is a change to a market part, regardless of the applied one.
func to(market string) func([]byte, uint8) ([]byte, error) {
	return func([]byte, uint8) ([]byte, error) { return []byte(market), nil }
}

// apply makes a term's node apply a market part.
func (c *cluster) apply(r *termAt, market string) error {
	return c.nodes[r.at].ApplyMarket(c.Context(), to(market))
}

// All later leaders use the file of the first term, whatever their own files contain, even after
// all nodes were killed. Another market part is in effect from the next term on.
func TestNodesUseAppliedMarketPart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := withMarkets(t)
		r := c.next()
		first := fileOf(r.at)
		c.decides(r, first)
		ann := &sold{T: t}
		fund(t, r.Engine, "ann", map[string]money.Amount{"BTC": 10 * coin})
		ann.sell(r)
		c.caughtUp(r)
		r = c.handsOver(r, ann)
		c.decides(r, first)
		ann.sell(r)

		var refused *actors.RequestError
		for _, bad := range []string{"no number", withoutPairs} { // orders are open
			if err := c.apply(r, bad); !errors.As(err, &refused) {
				t.Errorf("%s: %v", bad, err)
			}
		}
		succeeds(t, c.apply(r, "7"))
		for _, p := range r.Pairs() {
			if fmt.Sprint(int64(p.Rules().Fees.Taker)) != first {
				t.Error("a new market part is in effect in the running term")
			}
		}
		// the part that waits for the next term is not completed by this one
		whole, err := c.nodes[r.at].proposeCompleted(t.Context(), firstFormat+1)
		if err != nil || whole {
			t.Errorf("%v, %v", whole, err)
		}
		c.caughtUp(r)
		r = c.handsOver(r, ann)
		c.decides(r, "7")
		ann.has(r)

		c.killAll()
		c.startAll()
		for len(c.began) > 0 {
			<-c.began
		}
		r = c.next()
		c.decides(r, "7")
		ann.has(r)
		follower := (r.at + 1) % len(c.nodes)
		if err := c.nodes[follower].ApplyMarket(t.Context(), to("8")); err == nil {
			t.Error("a follower applies a market part")
		}
	})
}

// A market part that fits when applied, but not when the next term starts, does not leave the
// cluster without a leader: the previous one is in effect again.
func TestUnfitMarketPartFallsBackToPrevious(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := withMarkets(t)
		r := c.next()
		first := fileOf(r.at)
		fund(t, r.Engine, "ann", map[string]money.Amount{"BTC": 10 * coin})
		c.decides(r, first)
		// in effect again is the part that the term was built with, not the previously applied one
		for range 2 {
			succeeds(t, c.apply(r, withoutPairs))
		}
		ann := &sold{T: t}
		ann.sell(r)
		c.caughtUp(r)
		r = c.handsOver(r, ann)
		c.decides(r, first)
		ann.has(r)
	})
}

// A follower continues when its market part is rewritten with additions of a newer format, and ends
// when the part changes.
func TestFollowerSurvivesEquivalentMarketPart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := withMarkets(t)
		r := c.next()
		first := fileOf(r.at)
		c.decides(r, first)
		a := c.follower((r.at + 1) % len(c.nodes))
		older := []byte(first)
		a.market.Store(&older)
		if !a.keepsMarket() || string(*a.market.Load()) != first+more {
			t.Errorf("with a market part that says the same it has %s", *a.market.Load())
		}
		eventually(t, "commands reach the leader", func() bool {
			return a.Commands().Writable() == nil
		})
		over := make(chan error, 1)
		go func() { over <- a.Await(t.Context()) }()
		succeeds(t, c.nodes[r.at].store.SetMarket(t.Context(), []byte("7"+more), true))
		if err := <-over; !errors.Is(err, errOther) {
			t.Errorf("with another market part: %v", err)
		}
	})
}

// An operator's change is derived from the newest market part: a format that rises meanwhile
// completes it before or after, so neither is lost.
func TestMarketPartsAreAppliedOneAtATime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := withMarkets(t)
		r := c.next()
		c.decides(r, fileOf(r.at))
		n := c.nodes[r.at]
		alone := false
		err := n.ApplyMarket(t.Context(), func(applied []byte, format uint8) ([]byte, error) {
			next, _ := n.store.Market()
			if !bytes.Equal(applied, next) || format != n.replica.Standing().Format {
				t.Errorf("the change is of %q in format %d, and %q is applied", applied, format,
					next)
			}
			if alone = !n.marketMu.TryLock(); !alone {
				n.marketMu.Unlock()
			}
			return nil, nil
		})
		if err != nil || !alone {
			t.Errorf("%v; no other one is applied meanwhile: %v", err, alone)
		}
		var refused *actors.RequestError
		err = n.ApplyMarket(t.Context(), func([]byte, uint8) ([]byte, error) {
			return nil, errors.New("it is no text")
		})
		if !errors.As(err, &refused) {
			t.Error(err)
		}
	})
}
