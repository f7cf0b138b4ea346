package committed

import (
	"container/list"
	"slices"
	"sort"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"exchange/core/state"
)

// Bounds of the events of one account that are kept for clients that come back.
const (
	ownKept      = 4096
	ownKeptBytes = 1 << 20
	ownLife      = 5 * time.Minute // behind the last subscriber
)

// ownFeeds are the accounts that are watched, and those that were until a while ago. The committed
// actor owns them.
type ownFeeds struct {
	feeds map[uint32]*ownFeed // by account
	idle  list.List           // those without a subscriber, the longest unused first
	used  list.List           // those with one, the first that was watched first
	bytes int                 // of all events that are kept
	most  int                 // bound of bytes

	// of the record that is being folded:
	touched    []*ownFeed
	orderIndex map[uint64]int // by order, its place in the event of its account
	// of the batch:
	outgoing []ownDelivery
}

// ownDelivery are events for one channel.
type ownDelivery struct {
	channel *actor.PID
	events  *OwnEvents
}

// An ownFeed has the newest events of one account, without a gap.
type ownFeed struct {
	account *state.Account
	channel *actor.PID    // nil: the account has no subscriber
	token   uint64        // of the newest answer to the channel
	at      *list.Element // in idle or used; nil: the feed has ended
	left    time.Time     // time at which the last subscriber left

	last  uint64 // sequence of the account's newest event
	base  uint64 // sequence of the event before the first that is kept
	kept  []*OwnEvent
	bytes int
	event *OwnEvent // of the record that is being folded; nil: none
}

// watch lets a channel watch an account. It returns the events behind the one that is named; false:
// not all of them are kept.
func (s *ownFeeds) watch(a *state.Account, q *OwnWatch) (events []*OwnEvent, resumed bool) {
	f, after := s.feeds[a.ID], q.After
	if f == nil {
		if s.feeds == nil {
			s.feeds = map[uint32]*ownFeed{}
		}
		f = &ownFeed{account: a, last: a.LastEvent(), base: a.LastEvent()}
		s.feeds[a.ID] = f
		f.at = s.used.PushBack(f)
		after = 0 // the buffer begins now
	} else if f.channel == nil {
		s.idle.Remove(f.at)
		f.at = s.used.PushBack(f)
	}
	if f.channel, f.token = q.Channel, q.Token; after == 0 {
		return nil, false
	}
	return f.since(after)
}

// since returns the events behind the one with a sequence, if that is kept, or was the last one
// before those that are.
func (f *ownFeed) since(after uint64) (events []*OwnEvent, ok bool) {
	at := sort.Search(len(f.kept), func(i int) bool { return f.kept[i].Seq > after })
	if at == 0 && after != f.base || at > 0 && f.kept[at-1].Seq != after {
		return nil, false
	}
	return slices.Clone(f.kept[at:]), true
}

// unwatch notes that an account has no subscriber any more, unless a newer watch than the one that
// ends has begun.
func (s *ownFeeds) unwatch(m *OwnUnwatch, now time.Time) {
	f := s.feeds[m.Account]
	if f != nil && f.channel != nil && f.channel == m.Channel && f.token == m.Token {
		f.channel, f.left = nil, now
		s.used.Remove(f.at)
		f.at = s.idle.PushBack(f)
	}
}

// forget ends the feeds whose last subscriber left long ago.
func (s *ownFeeds) forget(now time.Time) {
	for s.idle.Len() > 0 {
		f := s.idle.Front().Value.(*ownFeed)
		if now.Sub(f.left) < ownLife {
			return
		}
		s.end(f)
	}
}

// end ends a feed that has no subscriber.
func (s *ownFeeds) end(f *ownFeed) {
	s.bytes -= f.bytes
	s.idle.Remove(f.at)
	f.at = nil
	delete(s.feeds, f.account.ID)
}

// begin begins an event of an account.
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

// endRecord keeps the events of a record, and those for a channel until the end of the batch.
func (s *ownFeeds) endRecord() {
	for i, f := range s.touched {
		x := f.event
		f.event, s.touched[i] = nil, nil
		s.keep(f, x)
		if f.channel == nil {
			continue
		}
		at := slices.IndexFunc(s.outgoing, func(t ownDelivery) bool { return t.channel == f.channel })
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

// ownPlaces bounds the memory that is kept from one record to the next.
const ownPlaces = 64

// keep keeps an event for clients that come back, and forgets what is too much.
func (s *ownFeeds) keep(f *ownFeed, x *OwnEvent) {
	if f.at == nil { // an event of the same record took its room
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

// drop forgets the oldest event of a feed.
func (s *ownFeeds) drop(f *ownFeed) {
	size := f.kept[0].size()
	f.bytes, s.bytes = f.bytes-size, s.bytes-size
	f.base, f.kept[0] = f.kept[0].Seq, nil
	f.kept = f.kept[1:]
}

// empty forgets the events of a feed that has a subscriber, which becomes the last one to be
// emptied.
func (s *ownFeeds) empty(f *ownFeed) {
	s.bytes -= f.bytes
	f.bytes, f.kept, f.base = 0, nil, f.last
	s.used.MoveToBack(f.at)
}

// notifyOwn ends a batch: it tells the channels of the batch's events.
func (c *Side) notifyOwn() {
	for i, t := range c.own.outgoing {
		c.out.Notify(t.channel, t.events)
		c.own.outgoing[i] = ownDelivery{}
	}
	c.own.outgoing = c.own.outgoing[:0]
}
