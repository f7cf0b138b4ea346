package stream

import (
	"bytes"
	"fmt"
	"math"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"exchange/actors/committed"
	"exchange/actors/directory"
	"exchange/core/market"
	"exchange/core/trading"
	"exchange/gateway/socketio"
)

// A channel is the actor of one channel. It encodes each event once, and counts the subscribers of
// each shard; the shards hold the clients. It watches its pair while it has subscribers, and an
// interval longer, so that clients that leave and return do not load the committed side.
type channel struct {
	hub    *Hub
	topic  topic
	family family
	kind   *kind
	pair   *directory.Pair // nil: status
	epoch  uint64          // of this start of the actor; messages to an earlier one are ignored
	self   *actor.PID
	writer writer

	members      []int // number of subscribers by shard
	total        int
	pendingJoins []*join
	emptied      time.Time // when the last subscriber left

	watching     bool   // the committed actor sends the pair's changes
	pendingToken uint64 // token of the answer in flight; 0: none
	dirty        bool   // the pair has changed since the newest state
	updateID     uint64
	askedAt      time.Time
	next         time.Time // earliest time of the next state
	state        []byte    // frames of the newest state; diff, depth, status: until the next event
	minute       int64     // ticker: of the newest state, epoch minutes
	// bbo: the newest state's levels, buy first; zero: no order on that side
	best [2]trading.Level
	// candles: the time of the newest state's candle; older ones are not sent. noCandle: no state
	// yet; anyCandle: no candle yet
	newest int64
	timer  *time.Timer
}

// Messages to a channel, beside the engine's.
type (
	// join is a client that wants to subscribe.
	join struct {
		client *client
		shard  *shard
	}
	// left is the departure of a shard's subscriber.
	left struct {
		shard int
		epoch uint64
	}
	// timerFired is the timer's message.
	timerFired struct{}
)

// Receive implements actor.Actor.
func (c *channel) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		c.self = ctx.Self()
	case *actor.Restarting:
		c.failed()
	case *join:
		c.pendingJoins = append(c.pendingJoins, m)
		c.admitOrAsk()
	case *left:
		if m.epoch != c.epoch {
			return
		}
		c.members[m.shard]--
		if c.total--; c.total == 0 {
			c.emptied = time.Now()
			c.schedule()
		}
	case *committed.Watched:
		if m.Token == c.pendingToken { // otherwise it answers an earlier start of the actor
			c.onWatched(m)
		}
	case *committed.BookUpdates:
		c.units(m)
	case *committed.StatusChanges:
		c.statusChanged(m.List)
	case committed.Changed:
		c.dirty = true
		c.schedule()
	case timerFired:
		c.onTimer()
	}
}

// admitOrAsk admits the pending clients if their first event is available; otherwise it requests
// it.
func (c *channel) admitOrAsk() {
	if c.watching && (c.state != nil || !c.kind.stateFirst) {
		c.admit()
	}
	c.schedule()
}

func (c *channel) requestState() {
	if c.pendingToken != 0 {
		return
	}
	c.pendingToken, c.askedAt = c.hub.tokens.Add(1), time.Now()
	switch {
	case c.family == bbo:
		c.next = c.askedAt.Add(c.hub.opts.BBOInterval)
	case c.kind.isState():
		c.next = nextBeat(c.askedAt, c.hub.opts.Interval)
	default:
		c.next = c.askedAt.Add(c.hub.opts.Interval)
	}
	w := c.kind.watch
	w.Channel, w.Pair, w.Token, w.Since = c.self, c.pair, c.pendingToken, c.newest
	c.hub.public.Watch(w)
}

// onWatched takes the pair's state; the following messages are later events.
func (c *channel) onWatched(m *committed.Watched) {
	v := m.View
	c.pendingToken, c.watching, c.dirty = 0, true, false
	switch {
	case c.family == ticker:
		c.minute = c.askedAt.Unix() / 60
		c.changed(c.writer.tickerOf(nil, v), nil)
	case c.family == top:
		c.changed(c.writer.topOf(nil, v), nil)
	case c.family == bbo:
		c.bestIs(v)
	case c.kind.hasCandles():
		c.candlesAre(v.Candles)
	case c.family == status:
		c.state = c.writer.status(nil, m.Status, c.hub.names.pairs)
	case c.kind.policy == socketio.Resync && len(c.pendingJoins) > 0:
		c.state, c.updateID = c.writer.whole(nil, v), v.UpdateID
	}
	c.admit()
	c.schedule()
}

// changed sends a state if it differs from the last one, preceded by closed candles.
func (c *channel) changed(state, closed []byte) {
	if !bytes.Equal(state, c.state) {
		c.state = state
		c.send(state, closed)
	}
}

// Times before and after all candles.
const (
	anyCandle = math.MinInt64
	noCandle  = math.MaxInt64
)

// candlesAre takes the candles from the newest state on. All but the last are closed.
func (c *channel) candlesAre(list []market.Candle) {
	if len(list) == 0 {
		c.state, c.newest = []byte{}, anyCandle
		return
	}
	var closed []byte
	last := len(list) - 1
	for i := range last {
		closed = c.writer.candle(closed, &list[i], true)
	}
	c.newest = list[last].Time
	c.changed(c.writer.candle(nil, &list[last], false), closed)
}

// bestIs takes the best levels, and sends them if a price or an amount has changed. A new
// subscriber gets the newest state in any case.
func (c *channel) bestIs(v *committed.View) {
	var best [2]trading.Level
	for i, side := range [...][]trading.Level{v.Depth.BuyLevels, v.Depth.SellLevels} {
		if len(side) > 0 {
			best[i] = trading.Level{Price: side[0].Price, Amount: side[0].Amount}
		}
	}
	first := c.state == nil
	if c.state = c.writer.bestOf(nil, v); first || best != c.best {
		c.best = best
		c.send(c.state, nil)
	}
}

// units sends events.
func (c *channel) units(m *committed.BookUpdates) {
	list := m.List
	if !c.watching {
		return // the events were in flight when the watch ended
	}
	if c.kind.policy == socketio.Resync {
		if list[0].UpdateID != c.updateID+1 {
			panic(fmt.Sprintf("BUG: update %d of %s follows update %d", list[0].UpdateID,
				c.pair.Name, c.updateID))
		}
		c.updateID, c.state = list[len(list)-1].UpdateID, nil
	}
	if c.total == 0 {
		return
	}
	c.hub.counts.units.Add(uint64(len(list)))
	var frames []byte
	switch c.family {
	case trades, full:
		frames = c.writer.tradesOf(nil, list)
	case book:
		frames = c.writer.orders(nil, list)
	case diff, depth:
		// in pieces, so that later ones can be dropped for a slow subscriber
		for ; len(list) > 1; list = list[1:] {
			if frames = c.writer.diffs(frames, list[:1], nil); len(frames) >= longestJoined {
				c.send(frames, nil)
				frames = nil
			}
		}
		frames = c.writer.diffs(frames, list, m.Best)
	}
	if len(frames) > 0 {
		c.send(frames, nil)
	}
}

// statusChanged sends the changes. The next subscriber gets a new status.
func (c *channel) statusChanged(list []committed.StatusChange) {
	if !c.watching {
		return // the changes were in flight when the watch ended
	}
	c.state = nil
	if f := c.writer.statusChanges(nil, list, c.hub.names.pairs); len(f) > 0 && c.total > 0 {
		c.send(f, nil)
	}
}

// send sends frames to the shards that have subscribers, preceded by closed candles.
func (c *channel) send(f, closed []byte) {
	m := &frames{c.topic, f, closed}
	for i, n := range c.members {
		switch s := c.hub.shards[i]; {
		case n == 0:
		case c.kind.soon:
			s.postSoon(m)
		default:
			s.post(m)
		}
	}
}

// admit makes the pending clients subscribers. Their first event is the state, if the channel has
// one.
func (c *channel) admit() {
	clients := make([][]*client, len(c.hub.shards))
	for _, j := range c.pendingJoins {
		clients[j.shard.number] = append(clients[j.shard.number], j.client)
	}
	c.total += len(c.pendingJoins)
	c.pendingJoins = nil
	for i, list := range clients {
		if len(list) > 0 {
			c.members[i] += len(list)
			c.hub.shards[i].post(&admitted{topic: c.topic, epoch: c.epoch, clients: list,
				first: c.state, shared: c.kind.policy == socketio.Resync})
		}
	}
}

// unwatch ends the watch.
func (c *channel) unwatch() {
	c.watching, c.dirty, c.state, c.newest = false, false, nil, noCandle
	c.hub.public.Unwatch(c.self, c.pair)
}

// schedule sets the timer for the channel's next state. It ends the watch after an interval without
// clients.
func (c *channel) schedule() {
	if c.pendingToken != 0 {
		return
	}
	now := time.Now()
	var wait time.Duration
	switch {
	case c.watching && c.total == 0 && len(c.pendingJoins) == 0:
		if wait = c.emptied.Add(c.hub.opts.Interval).Sub(now); wait <= 0 {
			c.unwatch()
			return
		}
	case len(c.pendingJoins) > 0 && !c.kind.stateFirst:
	case len(c.pendingJoins) > 0 || c.watching && c.dirty && c.kind.isState():
		// joining clients wait too, which bounds the number of books made
		wait = max(0, c.next.Sub(now))
	case c.watching && c.family == ticker: // the ticker's window moves
		wait = time.Unix((c.minute+1)*60, int64(time.Millisecond)).Sub(now)
	default:
		return
	}
	if wait == 0 {
		c.requestState()
		return
	}
	if c.timer == nil {
		self, public := c.self, c.hub.public
		c.timer = time.AfterFunc(wait, func() { public.Notify(self, timerFired{}) })
		return
	}
	c.timer.Reset(wait)
}

// firstBeat is the time of the first beat.
var firstBeat = time.Now()

// nextBeat returns the earliest time of the state after one of now: at least an interval later, and
// the same for all constantly changing channels. So a subscriber of several channels gets them in
// one write.
func nextBeat(now time.Time, interval time.Duration) time.Time {
	const lateness = 8 // a timer that is late by 1/8 of an interval keeps the beat
	period := interval + interval/lateness
	beat := now.Sub(firstBeat) / period
	if late := now.Sub(firstBeat) - beat*period; late <= interval/lateness {
		return firstBeat.Add((beat + 1) * period)
	}
	return firstBeat.Add((beat + 2) * period) // the timer did not cause this state
}

// onTimer handles the timer, which may be obsolete.
func (c *channel) onTimer() {
	if c.watching && c.family == ticker && time.Now().Unix()/60 > c.minute {
		c.dirty = true
	}
	c.schedule()
}

// failed handles a restart of the actor. Its list of subscribers is lost, so the shards disconnect
// them.
func (c *channel) failed() {
	if c.timer != nil {
		c.timer.Stop()
	}
	c.hub.public.Unwatch(c.self, c.pair)
	for _, s := range c.hub.shards {
		s.post(&failed{c.topic})
	}
}
