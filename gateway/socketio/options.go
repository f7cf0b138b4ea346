package socketio

import (
	"log/slog"
	"net"
	"net/netip"
	"time"

	"github.com/valyala/fasthttp"
)

// Options are what a Server is made with. A field that is zero means its default.
type Options struct {
	// PingInterval is how long after the open, or after the last pong, the server pings. Default 25
	// s.
	PingInterval time.Duration
	// PingTimeout is how long the pong may take; then the session is closed. Default 20 s.
	PingTimeout time.Duration
	// ConnectTimeout is how long a session may stay without a namespace after it was opened.
	// Default 45 s.
	ConnectTimeout time.Duration
	// UpgradeTimeout is how long a websocket may take to replace polling. Beyond it the websocket
	// is closed, and the session goes on polling. Default 10 s.
	UpgradeTimeout time.Duration
	// StallTimeout is how long a client may take nothing while something waits for it, and how long
	// what it sends may take from its first part to its last. Default 10 s.
	StallTimeout time.Duration

	// MaxPayload is the most bytes of one packet from a client, and of one polling body either way;
	// a single packet of ours that is larger goes alone. Default 1,000,000.
	MaxPayload int
	// QueueBytes is what may wait for one client. Each waiting delivery counts 64 bytes more than
	// it has; what is sent at once while nothing waits does not count. Default 1 MiB.
	QueueBytes int

	// Connections is the most sessions at once, ConnectionsPerAddress of one client address
	// as ratelimit.Network says. Zero is no bound.
	Connections           int
	ConnectionsPerAddress int

	// Arguments is the most arguments of one event from a client, Attachments the most binary
	// attachments and AttachmentBytes their bytes in all. Attachments have StallTimeout to come.
	// Defaults 1,000, 16 and MaxPayload.
	Arguments       int
	Attachments     int
	AttachmentBytes int

	// MessagesPerSecond is how many packets a client may send in the long run, MessagesBurst how
	// many at once; beyond that its session is closed. What it sends counts by its size, too: each
	// 4 KiB as a packet, but MaxPayload bytes as half of MessagesBurst at most; and by what
	// Socket.Spend says. Defaults 100, and five seconds' worth. A negative rate is no bound.
	MessagesPerSecond int
	MessagesBurst     int

	// Hold is told whether the connection of a websocket is needed, see Socket.Hold. nil: it does
	// not matter.
	Hold func(c net.Conn, on bool)
	// Address is a client's address, for the bound on connections; nil: the one its connection
	// comes from.
	Address func(*fasthttp.RequestCtx) netip.Addr
	// Allow is asked at each preflight and each request that belongs to no session, before anything
	// else about it, and once about each other one that is refused. An error refuses it, with 403,
	// the error's text as message. Headers of the response that Allow sets are sent, a websocket's
	// handshake included.
	Allow func(*fasthttp.RequestCtx) error
	// crossingTime is how long the last poll of a session is waited for that its client has closed,
	// noopInterval how often a poll is answered with nothing during an upgrade. Defaults 1 s and
	// 100 ms, and other values in tests alone.
	crossingTime, noopInterval time.Duration
	// Log gets what an operator may want to know of single clients, at debug level. nil: nothing.
	Log *slog.Logger
}

// interval is the time that one packet has, in nanoseconds. There is a bound.
func (o *Options) interval() int64 { return int64(time.Second) / int64(o.MessagesPerSecond) }

// withDefaults fills what is zero.
func (o Options) withDefaults() Options {
	duration := func(d *time.Duration, or time.Duration) {
		if *d <= 0 {
			*d = or
		}
	}
	number := func(n *int, or int) {
		if *n == 0 {
			*n = or
		}
	}
	duration(&o.PingInterval, 25*time.Second)
	duration(&o.PingTimeout, 20*time.Second)
	duration(&o.ConnectTimeout, 45*time.Second)
	duration(&o.UpgradeTimeout, 10*time.Second)
	duration(&o.StallTimeout, 10*time.Second)
	duration(&o.crossingTime, time.Second)
	duration(&o.noopInterval, 100*time.Millisecond)
	number(&o.MaxPayload, 1_000_000)
	number(&o.QueueBytes, 1<<20)
	number(&o.Arguments, 1000)
	number(&o.Attachments, 16)
	number(&o.AttachmentBytes, o.MaxPayload)
	number(&o.MessagesPerSecond, 100)
	number(&o.MessagesBurst, 5*o.MessagesPerSecond)
	if o.Address == nil {
		o.Address = peer
	}
	if o.Hold == nil {
		o.Hold = func(net.Conn, bool) {}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}
