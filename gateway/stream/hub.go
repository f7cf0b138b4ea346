package stream

import (
	"cmp"
	"encoding/json"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"exchange/actors"
	"exchange/actors/directory"
	"exchange/gateway/api"
	"exchange/gateway/socketio"
)

// maxNames is the maximum number of names of a client, in total and in one call.
const maxNames = 128

// usualInFlight is the default of Options.OrdersInFlight.
const usualInFlight = 64

// Options are the settings of a Hub. A zero field means its default.
type Options struct {
	// Interval is the least time between two events of ticker, orderbook.20 or the open candle of
	// one pair, and between two whole books of one pair's diff or depth. Default 100 ms.
	Interval time.Duration
	// BBOInterval is the least time between two events of one pair's bbo. Default 10 ms.
	BBOInterval time.Duration
	// shards is the number of goroutines that share the clients. Default: one for each core.
	shards int
	// current is Door.AwaitCurrent, except in tests.
	current func() error
	// QueueBytes bounds the deliveries that wait for the answer to a client's subscription to a
	// whole family, as in socketio.Options. Default 1 MiB.
	QueueBytes int
	// Guard lets clients log in. nil: none may, and Absent answers their attempts.
	Guard  Guard
	Absent func(*api.Call) (leader string)
	// OrdersInFlight is the maximum number of a client's unanswered commands. Default 64.
	OrdersInFlight int
}

// A Hub owns the channels of one engine, or of a follower.
type Hub struct {
	public   *actors.Public
	commands actors.Commands // for logged-in clients; nil: none may log in
	opts     Options
	names    *names
	channels []atomic.Pointer[actor.PID] // by topic; nil: not started
	spawning sync.Mutex                  // held while a channel is started
	shards   []*shard
	next     atomic.Uint64 // shard of the next client
	tokens   atomic.Uint64
	epochs   atomic.Uint64
	running  sync.WaitGroup // shards
	counts   counts
	feeds    []*actor.PID // one per shard, see accountFeed
	logins   logins
}

type counts struct {
	clients       atomic.Int64
	subscriptions [families]atomic.Int64
	units         atomic.Uint64
	resyncs       atomic.Uint64
	commands      atomic.Uint64
	own           atomic.Int64 // clients subscribed to own
}

// New starts the shards. Channels start with their first client.
func New(a *api.API, o Options) *Hub {
	o.Interval = cmp.Or(o.Interval, 100*time.Millisecond)
	o.BBOInterval = cmp.Or(o.BBOInterval, 10*time.Millisecond)
	o.QueueBytes = cmp.Or(o.QueueBytes, 1<<20)
	o.OrdersInFlight = cmp.Or(o.OrdersInFlight, usualInFlight)
	if o.current == nil {
		o.current = a.Public().AwaitCurrent
	}
	o.shards = cmp.Or(o.shards, min(runtime.GOMAXPROCS(0), runtime.NumCPU()))
	h := &Hub{public: a.Public(), commands: a.Commands(), opts: o,
		names: newNames(a.Public().Pairs())}
	h.channels = make([]atomic.Pointer[actor.PID], h.names.topics())
	for i := range o.shards {
		h.shards = append(h.shards, newShard(h, i))
	}
	for _, s := range h.shards {
		h.running.Add(1)
		go s.run()
	}
	if h.commands == nil {
		return h
	}
	h.feeds = make([]*actor.PID, len(h.shards))
	for i := range h.feeds {
		h.feeds[i] = newAccountFeed(h, i)
	}
	return h
}

// channel returns the actor of a channel, starting it for the first client.
func (h *Hub) channel(t topic) *actor.PID {
	if pid := h.channels[t].Load(); pid != nil {
		return pid
	}
	h.spawning.Lock()
	defer h.spawning.Unlock()
	if pid := h.channels[t].Load(); pid != nil {
		return pid
	}
	f := h.names.familyOf(t)
	name, event := kinds[f].plain, kinds[f].event
	var pair *directory.Pair // nil: status
	w := writer{full: f == full, text: kinds[f].text, chart: kinds[f].watch.Frame.String()}
	if f != status {
		pair = h.names.pairs[h.names.placeOf(t)]
		w.pair = pair.Name
		name += "." + pair.Name
	}
	if f == book {
		name = bookPrefix + pair.Name
		event = name
	}
	w.event = event
	pid := h.public.SpawnChannel(name, func() actor.Actor {
		return &channel{hub: h, topic: t, family: f, kind: &kinds[f], pair: pair,
			epoch: h.epochs.Add(1), members: make([]int, h.opts.shards), newest: noCandle,
			writer: w}
	})
	h.channels[t].Store(pid)
	return pid
}

// Close ends the shards. All clients must have gone.
func (h *Hub) Close() {
	for _, s := range h.shards {
		s.post(closing{})
	}
	h.running.Wait()
}

// Hooks returns the hooks for a socketio namespace. listens reports whether a client gets book_ of
// all pairs until its first request.
func (h *Hub) Hooks(listens func(*socketio.Socket) bool) socketio.Namespace {
	return socketio.Namespace{
		Connect: func(s *socketio.Socket, _ json.RawMessage) error {
			silent := listens(s)
			if silent && h.opts.current() != nil {
				return errNotCurrent
			}
			if silent && !s.Spend(len(h.names.pairs), h.names.mostTouched()) {
				return socketio.ErrGone
			}
			c := &client{socket: s, shard: h.shards[h.next.Add(1)%uint64(len(h.shards))],
				turn:         make(chan struct{}, messagesAtOnce),
				pairChannels: h.names.newSet(), joining: h.names.newSet(), member: h.names.newSet()}
			s.SetData(c)
			h.counts.clients.Add(1)
			c.shard.post(&connected{c, silent})
			return nil
		},
		Event: func(s *socketio.Socket, e *socketio.Event) {
			if c, ok := s.Data().(*client); ok {
				c.handleEvent(e)
			}
		},
		Disconnect: func(s *socketio.Socket, _ socketio.Reason) {
			if c, ok := s.Data().(*client); ok {
				h.counts.clients.Add(-1)
				c.dropLogin()
				c.post(&disconnected{c})
			}
		},
	}
}

// errNotCurrent refuses a client that would get a possibly stale state.
var errNotCurrent = errors.New("this node has no confirmed leader: connect again")

// handleEvent handles a packet of the client, in its hook.
func (c *client) handleEvent(e *socketio.Event) {
	h := c.shard.hub
	switch e.Name {
	case "subscribe", "unsubscribe":
		// A state must not be older than anything another node has acknowledged. While this node
		// cannot ensure that, clients should go elsewhere.
		if e.Name == "subscribe" && h.opts.current() != nil {
			c.socket.Close(socketio.ServerClose)
			return
		}
		list, touched := h.names.targets(channelNames(e.Args))
		// the packet itself is counted already
		if c.spoken = true; c.socket.Spend(touched-1, h.names.mostTouched()) {
			c.post(&request{client: c, subscribe: e.Name == "subscribe", targets: list, event: e})
		}
		return
	}
	handle, o := accountEvents[e.Name], commands[e.Name]
	switch {
	case handle == nil && o == nil:
	case h.opts.Guard == nil:
		h.refuse(e)
	case handle != nil:
		handle(c, e)
	default:
		c.orders(o, e)
	}
}

// refuse answers requests that only the leader serves.
func (h *Hub) refuse(e *socketio.Event) {
	if h.opts.Absent == nil {
		return
	}
	var call api.Call
	h.opts.Absent(&call)
	e.AckJSON(acknowledgement(&call, 0)) //nolint:errcheck // it may be gone
}

// accountEvents are the handlers of account requests, except commands.
var accountEvents = map[string]func(*client, *socketio.Event){
	"challenge":       (*client).sendChallenge,
	"login":           (*client).handleLogin,
	"logout":          (*client).logOut,
	"own.subscribe":   (*client).subscribeOwn,
	"own.unsubscribe": (*client).unsubscribeOwn,
}

// messagesAtOnce is the maximum number of a client's messages in its shard: enough to request all
// channels without a flush of the shard for each.
const messagesAtOnce = 8

// post sends a client's message to its shard, within messagesAtOnce. Meanwhile the hook waits, and
// with it the session's other packets. A shard never waits for a hook, and it outlives all clients.
func (c *client) post(m any) {
	<-c.turn
	c.shard.post(m)
}

// channelNames parses a client's arguments: names, or arrays of names. A value that is not a string
// is used as is, and refused as unknown. It returns at most maxNames+1 names, of which the last is
// refused.
func channelNames(args []json.RawMessage) (list []string) {
	for _, raw := range args {
		many, err := socketio.Elements(raw, maxNames+1)
		if errors.Is(err, socketio.ErrNoArray) {
			many = []json.RawMessage{raw}
		}
		for _, one := range many {
			if len(list) > maxNames {
				return list
			}
			var text string
			if json.Unmarshal(one, &text) != nil {
				text = string(one)
			}
			list = append(list, text)
		}
	}
	return list
}
