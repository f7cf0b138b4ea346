package stream

import (
	"bytes"
	"slices"
	"sync"
	"testing"
	"time"

	"exchange/core/trading"
)

func TestStatesOfAllChannelsShareBeats(t *testing.T) {
	const interval = 80 * time.Millisecond
	const beat = 90 * time.Millisecond
	f := func(asked, next time.Duration) {
		t.Helper()
		if got := nextBeat(firstBeat.Add(asked), interval).Sub(firstBeat); got != next {
			t.Errorf("after %v comes %v, want %v", asked, got, next)
		}
	}
	f(0, beat)
	f(beat, 2*beat)
	f(beat+10*time.Millisecond, 2*beat) // the timer was late
	f(beat+11*time.Millisecond, 3*beat) // it was not the timer
	f(2*beat-1, 3*beat)
	for asked := time.Duration(0); asked < 4*beat; asked += time.Millisecond / 7 {
		if gap := nextBeat(firstBeat.Add(asked), interval).Sub(firstBeat) - asked; gap < interval {
			t.Fatalf("after %v comes the next in %v", asked, gap)
		}
	}
}

func TestPausesGrowUnderLoad(t *testing.T) {
	const ms = time.Millisecond
	f := func(pause, since, wait, next time.Duration) {
		t.Helper()
		if w, n := nextPause(firstBeat, firstBeat.Add(since), pause); w != wait || n != next {
			t.Errorf("%v after a flush with a pause of %v: wait %v and then %v, want %v and %v",
				since, pause, w, n, wait, next)
		}
	}
	f(0, time.Hour, 0, 3*ms) // the first
	f(3*ms, 3*ms, 0, 3*ms)
	f(3*ms, ms, 2*ms, 6*ms)
	f(6*ms, ms, 5*ms, 12*ms)
	f(12*ms, 11*ms, ms, 12*ms)
	f(12*ms, 12*ms, 0, 3*ms)
}

func TestDeferredMessagesWakeTheShard(t *testing.T) {
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

func TestJoinedPiecesAreBounded(t *testing.T) {
	f := func(sizes, want []int) {
		t.Helper()
		var pieces [][]byte
		var all []byte
		for i, n := range sizes {
			pieces = append(pieces, bytes.Repeat([]byte{byte(i)}, n))
			all = append(all, pieces[i]...)
		}
		var got []int
		var again, frames []byte
		for len(pieces) > 0 {
			frames, pieces = joinPieces(pieces)
			got = append(got, len(frames))
			again = append(again, frames...)
		}
		if !slices.Equal(got, want) || !bytes.Equal(again, all) {
			t.Errorf("%v are joined to %v, want %v", sizes, got, want)
		}
	}
	const most = longestJoined
	f([]int{5}, []int{5})
	f([]int{5, 7, 9}, []int{21})
	f([]int{most, 1}, []int{most, 1})
	f([]int{most - 1, 1, 2, 3}, []int{most, 5})
	f([]int{1, 2 * most, 1, 2}, []int{1, 2 * most, 3})
}

// However many batches the journal releases, a subscriber gets at most one write per pause, and
// pauses get longer.
func TestWritesAreBatchedByPauses(t *testing.T) { bubble(t, testWritesAreBatchedByPauses) }

func testWritesAreBatchedByPauses(t *testing.T) {
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
				w.place(trader, "BTC_USDT", trading.Buy, 100, 1)
			}
		})
	}
	for range 4 * each {
		l.next()
	}
	traders.Wait()
	took, writes := time.Since(begin), w.server.Stats().Writes-before
	t.Logf("%d events in %v: %d writes", 4*each, took, writes)
	if most := uint64(took/shortestPause) + 2; writes > most {
		t.Errorf("%d writes, want at most %d in %v", writes, most, took)
	}
}
