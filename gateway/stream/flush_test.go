package stream

import (
	"sync"
	"testing"
	"time"

	"exchange/core/matching"
)

func TestStatesOfAllChannelsHaveTheSameBeats(t *testing.T) {
	const interval = 80 * time.Millisecond
	f := func(asked, next time.Duration) {
		t.Helper()
		if got := nextBeat(began.Add(asked), interval).Sub(began); got != next {
			t.Errorf("after %v comes %v, want %v", asked, got, next)
		}
	}
	f(0, interval)
	f(interval, 2*interval)
	f(interval+9*time.Millisecond, 2*interval)  // the timer was late
	f(interval+10*time.Millisecond, 3*interval) // it was not the timer
	f(2*interval-1, 3*interval)
}

func TestAShardIsWokenForStatesToo(t *testing.T) {
	s := &shard{wake: make(chan struct{}, 1)}
	s.postSoon(1)
	s.postSoon(2)
	<-s.wake
	if len(s.in) != 2 || s.in[0] != 1 || s.in[1] != 2 {
		t.Error(s.in)
	}
	s.soon = false // the shard has taken them
	s.postSoon(3)
	<-s.wake
	s.post(4)
	<-s.wake
}

// However many batches the journal releases, a subscriber is written to at most once in each pause.
func TestWritesDoNotFollowEachBatch(t *testing.T) {
	w := newWorld(t, nil)
	l := w.listen()
	l.subscribe("diff.BTC_USDT")
	l.next() // the whole book
	const each = 100
	before, begin := w.server.Stats().Writes, time.Now()
	var traders sync.WaitGroup
	for trader := range 4 {
		traders.Go(func() {
			for range each {
				w.place(trader, "BTC_USDT", matching.Buy, 100, 1)
			}
		})
	}
	for range 4 * each {
		l.next()
	}
	traders.Wait()
	took, writes := time.Since(begin), w.server.Stats().Writes-before
	t.Logf("%d events in %v: %d writes", 4*each, took, writes)
	if most := uint64(took/pause) + 2; writes > most {
		t.Errorf("%d writes, want at most %d in %v", writes, most, took)
	}
}
