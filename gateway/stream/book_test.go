package stream

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"exchange/actors/committed"
	"exchange/core/trading"
	"exchange/gateway/socketio"
)

// A localBook is the book of a subscriber of diff.
type localBook struct {
	updateID  uint64
	known     bool
	snapshots int
	sides     [2]map[string]string // price to amount, as text
	history   map[uint64]string    // of every update id, the book as text
	checked   int                  // checksums that were compared
}

type wireLevel struct{ Price, Amount json.Number }

type wireDiff struct {
	Pair      string
	UpdateID  uint64  `json:"update_id"`
	Prev      *uint64 `json:"prev_update_id"`
	Snapshot  bool
	Sell, Buy []wireLevel
	Checksum  *uint32
}

// apply applies the rules for clients, and fails where they are violated.
func (b *localBook) apply(body json.RawMessage) error {
	var d wireDiff
	if err := json.Unmarshal(body, &d); err != nil {
		return err
	}
	switch {
	case d.Snapshot:
		if d.Prev != nil || b.known && d.UpdateID < b.updateID {
			return fmt.Errorf("a snapshot of %d after %d: %s", d.UpdateID, b.updateID, body)
		}
		b.sides, b.known = [2]map[string]string{{}, {}}, true
		b.snapshots++
	case !b.known || d.Prev == nil || *d.Prev != b.updateID || d.UpdateID != b.updateID+1:
		return fmt.Errorf("after %d comes %s", b.updateID, body)
	}
	b.updateID = d.UpdateID
	for i, levels := range [2][]wireLevel{d.Sell, d.Buy} {
		for _, l := range levels {
			if l.Amount == "0" {
				delete(b.sides[i], string(l.Price))
			} else {
				b.sides[i][string(l.Price)] = string(l.Amount)
			}
		}
	}
	b.history[b.updateID] = b.text()
	if d.Checksum == nil {
		return nil
	}
	b.checked++
	if text := b.best(); *d.Checksum != crc32.ChecksumIEEE([]byte(text)) {
		return fmt.Errorf("update %d: %d is not the checksum of %s", b.updateID, *d.Checksum, text)
	}
	return nil
}

// best returns the input of a checksum.
func (b *localBook) best() string {
	var sides [2][]string // to buy first
	for i, side := range [...]map[string]string{b.sides[1], b.sides[0]} {
		sides[i] = slices.SortedFunc(maps.Keys(side), func(x, y string) int {
			p, q := priceOf(x), priceOf(y)
			return cmp.Compare(p, q) * (2*i - 1)
		})
		for n, p := range sides[i] {
			sides[i][n] = p + ":" + side[p]
		}
	}
	var list []string
	for n := range 10 {
		for _, side := range sides {
			if n < len(side) {
				list = append(list, side[n])
			}
		}
	}
	return strings.Join(list, ":")
}

func priceOf(text string) float64 {
	p, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic(err)
	}
	return p
}

func (b *localBook) text() string {
	var out string
	for _, side := range b.sides {
		for _, p := range slices.Sorted(maps.Keys(side)) {
			out += p + ":" + side[p] + " "
		}
		out += "/ "
	}
	return out
}

// shownBook returns the book in REST answers, at its X-Update-Id.
func shownBook(w *world, pair string) (uint64, string) {
	w.t.Helper()
	v := must(w.engine.View(committed.ViewLevels, w.pair(pair), 0, -1, -1))
	b := localBook{sides: [2]map[string]string{{}, {}}}
	for i, levels := range [2][]trading.Level{v.Depth.SellLevels, v.Depth.BuyLevels} {
		for _, l := range levels {
			b.sides[i][l.Price.String()] = l.Amount.String()
		}
	}
	return v.UpdateID, b.text()
}

// A keeper is a subscriber that maintains a book and compares it with REST from time to time.
type keeper struct {
	*listener
	event string
	book  localBook
}

// newKeeper returns a keeper of the channel diff or depth.
func newKeeper(w *world, channel, pair string) *keeper {
	event := "depth"
	if channel == "diff" {
		event = "depth.diff"
	}
	k := &keeper{w.listen(), event, localBook{history: map[uint64]string{}}}
	k.subscribe(channel + "." + pair)
	return k
}

// until applies events up to an update id.
func (k *keeper) until(updateID uint64) {
	k.t.Helper()
	for !k.book.known || k.book.updateID < updateID {
		s := k.next()
		if s.name != k.event {
			k.t.Fatalf("%s %s", s.name, s.body)
		}
		worked(k.t, k.book.apply(s.body))
	}
}

// trade makes the traders trade until the test calls the returned function, or ends.
func (w *world) trade(pair string) (stop func()) {
	var over atomic.Bool
	var done sync.WaitGroup
	stop = func() {
		over.Store(true)
		done.Wait()
	}
	w.t.Cleanup(stop)
	for i := range w.keys {
		done.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 7))
			var open []uint64
			for !over.Load() {
				if len(open) > 20 || len(open) > 0 && r.IntN(3) == 0 {
					n := r.IntN(len(open))
					w.cancel(i, open[n])
					open = slices.Delete(open, n, n+1)
					continue
				}
				side := trading.Buy
				price := 100 - float64(r.IntN(40))/4
				if r.IntN(2) == 0 {
					side, price = trading.Sell, 98+float64(r.IntN(40))/4
				}
				if id := w.place(i, pair, side, price, float64(1+r.IntN(100))/100); id != 0 {
					open = append(open, id)
				}
			}
		})
	}
	return stop
}

func TestLocalBookMatchesBook(t *testing.T) { bubble(t, testLocalBookMatchesBook) }

func testLocalBookMatchesBook(t *testing.T) {
	w := newWorld(t, nil)
	const pair = "BTC_USDT"
	last := uint64(0)
	for range 3 { // the third time after two restarts
		var keeping sync.WaitGroup
		stop := w.trade(pair)
		for i := range 6 {
			keeping.Go(func() {
				k := newKeeper(w, [...]string{"diff", "depth"}[i%2], pair)
				for range 20 {
					id, want := shownBook(w, pair)
					k.until(max(id, k.book.updateID+1))
					if first := k.book.updateID - uint64(len(k.book.history)) + 1; id < first &&
						k.book.snapshots == 1 {
						continue // it was shown before the subscription
					}
					if got, ok := k.book.history[id]; ok && got != want {
						t.Errorf("update %d: the book is\n%s, and shown as\n%s", id, got, want)
						return
					}
				}
				if (k.book.checked > 0) != (k.event == "depth") {
					t.Errorf("%s had %d checksums", k.event, k.book.checked)
				}
			})
		}
		keeping.Wait()
		stop()
		id, want := shownBook(w, pair)
		if id <= last {
			t.Fatalf("update %d after update %d of before the restart", id, last)
		}
		k := newKeeper(w, "depth", pair)
		if k.until(id); k.book.text() != want || k.book.updateID != id {
			t.Fatalf("update %d: the book is\n%s, and shown as %d\n%s", k.book.updateID,
				k.book.text(), id, want)
		}
		last = id
		w.restart()
	}
}

// A subscriber that reads nothing for a while loses differences, and gets the book instead.
func TestSlowSubscriberGetsNewSnapshot(t *testing.T) {
	for _, channel := range []string{"diff", "depth"} {
		t.Run(channel, func(t *testing.T) {
			bubble(t, func(t *testing.T) { slowSubscriber(t, channel) })
		})
	}
}

func slowSubscriber(t *testing.T, channel string) {
	w := newWorld(t, func(o *socketio.Options) {
		o.QueueBytes, o.StallTimeout = 64<<10, time.Minute
	})
	const pair = "BTC_USDT"
	slow := newKeeper(w, channel, pair) // the only one: each resync is its own
	slow.until(0)
	stop := w.trade(pair)
	for round := range 3 {
		slow.hold(true)
		before := w.hub.counts.resyncs.Load()
		// the system's own buffers come first
		eventually(t, "its queue is full", func() bool {
			return w.hub.counts.resyncs.Load() > before
		})
		slow.hold(false)
		for known := slow.book.snapshots; slow.book.snapshots == known; {
			slow.until(slow.book.updateID + 1)
		}
		id, want := shownBook(w, pair)
		slow.until(id)
		if got := slow.book.history[id]; got != want && got != "" {
			t.Fatalf("round %d, update %d: the book is\n%s, and shown as\n%s", round, id, got, want)
		}
	}
	stop()
	id, want := shownBook(w, pair)
	if slow.until(id); slow.book.text() != want {
		t.Errorf("the book is\n%s, and shown as\n%s", slow.book.text(), want)
	}
}
