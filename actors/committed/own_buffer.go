package committed

import (
	"container/list"
	"slices"
	"sort"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"exchange/core/state"
)

// Bounds of the events of one account that are kept for clients that reconnect.
const (
	ownKept      = 4096
	ownKeptBytes = 1 << 20
	ownLife      = 5 * time.Minute // after the last subscriber left
)

// ownFeeds are the accounts that are or recently were watched. The committed actor owns them.
type ownFeeds struct {
	feeds map[uint32]*ownFeed // by account
	idle  list.List           // feeds without a subscriber, least recently used first
	used  list.List           // feeds with a subscriber, the oldest watch first
	bytes int                 // of all kept events
	most  int                 // bound of bytes

	// of the record being folded:
	touched    []*ownFeed
	orderIndex map[uint64]int // by order, its index in the event of its account
	// of the batch:
	outgoing []ownDelivery
}

// An ownDelivery contains events for one channel.
type ownDelivery struct {
	channel *actor.PID
	events  *OwnEvents
}

// An ownFeed holds the newest events of one account, without a gap.
type ownFeed struct {
	account *state.Account
	channel *actor.PID    // nil: no subscriber
	token   uint64        // of the newest answer to the channel
	at      *list.Element // in idle or used; nil: the feed has ended
	left    time.Time     // time at which the last subscriber left

	last  uint64 // sequence of the account's newest event
	base  uint64 // sequence of the event before the first kept one
	kept  []*OwnEvent
	bytes int
	event *OwnEvent // of the record being folded; nil: none
}

// watch starts a channel's watch of an account. It returns the events after q.After; false: not all
// of them are kept.
func (s *ownFeeds) watch(a *state.Account, q *OwnWatch) (events []*OwnEvent, resumed bool) {
	f, after := s.feeds[a.ID], q.After
	if f == nil {
		if s.feeds == nil {
			s.feeds = map[uint32]*ownFeed{}
		}
		f = &ownFeed{account: a, last: a.LastEvent(), base: a.LastEvent()}
		s.feeds[a.ID] = f
		f.at = s.used.PushBack(f)
		after = 0 // the buffer starts now
	} else if f.channel == nil {
		s.idle.Remove(f.at)
		f.at = s.used.PushBack(f)
	}
	if f.channel, f.token = q.Channel, q.Token; after == 0 {
		return nil, false
	}
	return f.since(after)
}

// since returns the events after the one with a sequence, if that is kept, or directly precedes the
// kept ones.
func (f *ownFeed) since(after uint64) (events []*OwnEvent, ok bool) {
	at := sort.Search(len(f.kept), func(i int) bool { return f.kept[i].Seq > after })
	if at == 0 && after != f.base || at > 0 && f.kept[at-1].Seq != after {
		return nil, false
	}
	return slices.Clone(f.kept[at:]), true
}

// unwatch marks an account as without subscriber, unless a newer watch has started.
func (s *ownFeeds) unwatch(m *OwnUnwatch, now time.Time) {
	f := s.feeds[m.Account]
	if f != nil && f.channel != nil && f.channel == m.Channel && f.token == m.Token {
		f.channel, f.left = nil, now
		s.used.Remove(f.at)
		f.at = s.idle.PushBack(f)
	}
}

// forget drops the feeds whose last subscriber left ownLife ago.
func (s *ownFeeds) forget(now time.Time) {
	for s.idle.Len() > 0 {
		f := s.idle.Front().Value.(*ownFeed)
		if now.Sub(f.left) < ownLife {
			return
		}
		s.end(f)
	}
}

// end drops a feed without subscriber.
func (s *ownFeeds) end(f *ownFeed) {
	s.bytes -= f.bytes
	s.idle.Remove(f.at)
	f.at = nil
	delete(s.feeds, f.account.ID)
}

// begin starts an event of an account.
func (s *ownFeeds) begin(f *ownFeed, x *OwnEvent) {
	f.event, f.last = x, x.Seq
	s.touched = append(s.touched, f)
}

// forming returns the feed of an account with an event of the record; nil: it has none.
func (s *ownFeeds) forming(account uint32) *ownFeed {
	if f := s.feeds[account]; f != nil && f.event != nil {
		return f
	}
	return nil
}

// put adds an order to the event of its account.
func (s *ownFeeds) put(f *ownFeed, o Order) {
	if s.orderIndex == nil {
		s.orderIndex = map[uint64]int{}
	}
	s.orderIndex[o.ID] = len(f.event.Orders)
	f.event.Orders = append(f.event.Orders, o)
	if f.event.Cause == CauseExpired && f.event.Order == 0 {
		f.event.Order = o.ID
	}
}

// endRecord buffers the events of a record, and queues them for channels until the end of the
// batch.
func (s *ownFeeds) endRecord() {
	for i, f := range s.touched {
		x := f.event
		f.event, s.touched[i] = nil, nil
		s.keep(f, x)
		if f.channel == nil {
			continue
		}
		at := slices.IndexFunc(s.outgoing,
			func(d ownDelivery) bool { return d.channel == f.channel })
		if at < 0 {
			at = len(s.outgoing)
			s.outgoing = append(s.outgoing, ownDelivery{f.channel, new(OwnEvents)})
		}
		s.outgoing[at].events.List = append(s.outgoing[at].events.List, x)
	}
	s.touched = s.touched[:0]
	if len(s.orderIndex) > ownPlaces {
		s.orderIndex = nil
	}
	clear(s.orderIndex)
}

// ownPlaces bounds the entries of orderIndex kept from one record to the next.
const ownPlaces = 64

// keep buffers an event for clients that reconnect, and drops old ones over the bounds.
func (s *ownFeeds) keep(f *ownFeed, x *OwnEvent) {
	if f.at == nil { // dropped for an event of the same record
		return
	}
	size := x.size()
	f.kept = append(f.kept, x)
	f.bytes, s.bytes = f.bytes+size, s.bytes+size
	for len(f.kept) > ownKept || f.bytes > ownKeptBytes {
		s.drop(f)
	}
	for s.bytes > s.most {
		switch {
		case s.idle.Len() > 0:
			s.end(s.idle.Front().Value.(*ownFeed))
		default:
			s.empty(s.used.Front().Value.(*ownFeed))
		}
	}
}

// drop drops the oldest event of a feed.
func (s *ownFeeds) drop(f *ownFeed) {
	size := f.kept[0].size()
	f.bytes, s.bytes = f.bytes-size, s.bytes-size
	f.base, f.kept[0] = f.kept[0].Seq, nil
	f.kept = f.kept[1:]
}

// empty drops the events of a feed with a subscriber, and moves the feed to the end of used.
func (s *ownFeeds) empty(f *ownFeed) {
	s.bytes -= f.bytes
	f.bytes, f.kept, f.base = 0, nil, f.last
	s.used.MoveToBack(f.at)
}

// notifyOwn sends the channels the events of the batch that ends.
func (c *Side) notifyOwn() {
	for i, t := range c.own.outgoing {
		c.out.Notify(t.channel, t.events)
		c.own.outgoing[i] = ownDelivery{}
	}
	c.own.outgoing = c.own.outgoing[:0]
}
