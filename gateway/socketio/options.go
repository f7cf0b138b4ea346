package socketio

import (
	"log/slog"
	"net"
	"net/netip"
	"time"

	"github.com/valyala/fasthttp"
)

// Options are the bounds and timings of a Server. A zero field means its default.
type Options struct {
	// Node is the prefix of session ids, followed by a dot, so that a proxy in front of several
	// servers can find the session's server. "": no prefix.
	Node string
	// PingInterval is the time from the open, or from the last pong, to the next ping. Default 25
	// s.
	PingInterval time.Duration
	// PingTimeout bounds the wait for a pong; then the session is closed. Default 20 s.
	PingTimeout time.Duration
	// ConnectTimeout bounds the time of a new session without a namespace. Default 45 s.
	ConnectTimeout time.Duration
	// UpgradeTimeout bounds the time in which a websocket replaces polling. Then the websocket is
	// closed, and the session stays on polling. Default 10 s.
	UpgradeTimeout time.Duration
	// StallTimeout bounds the time in which a client reads nothing of its queue, and the time from
	// the first part of a message to its last. Default 10 s.
	StallTimeout time.Duration

	// MaxPayload is the maximum of bytes of one packet from a client, and of one polling body in
	// either direction. A larger packet to a client gets a body of its own. Default 1,000,000.
	MaxPayload int
	// QueueBytes bounds the queue of one client. Each queued delivery is charged its size and 64
	// bytes; one that is sent at once, because the queue is empty, is free. Default 1 MiB.
	QueueBytes int

	// Connections is the maximum of sessions, ConnectionsPerAddress the maximum of one client
	// address (ratelimit.Network). Zero is no bound.
	Connections           int
	ConnectionsPerAddress int

	// arguments is the most arguments of one event from a client, attachments the most binary
	// attachments and attachmentBytes their bytes in all. Attachments have StallTimeout to arrive.
	// Defaults 1,000, 16 and MaxPayload; only tests set other values.
	arguments       int
	attachments     int
	attachmentBytes int

	// MessagesPerSecond is a client's sustained rate of packets, MessagesBurst its burst; beyond
	// that its session is closed. Each 4 KiB costs one packet more, but MaxPayload bytes cost at
	// most half of MessagesBurst. Socket.Spend adds the owner's cost. Defaults 100, and five
	// seconds' worth. A negative rate is no bound.
	MessagesPerSecond int
	MessagesBurst     int

	// Hold is called when the connection of a websocket becomes needed, or no longer is: see
	// Socket.Hold. Optional.
	Hold func(c net.Conn, on bool)
	// Address returns a client's address, for the bound on connections. nil: the connection's peer.
	Address func(*fasthttp.RequestCtx) netip.Addr
	// Allow is called first for each preflight and each request that belongs to no session, and
	// once for each other request that is refused. Its error refuses the request with 403 and the
	// error's text as message. Headers that Allow sets are sent, in a websocket's handshake too.
	Allow func(*fasthttp.RequestCtx) error
	// crossingTime bounds the wait for the last poll of a session that its client has closed.
	// noopInterval is the time between two empty answers to polls during an upgrade. Defaults 1 s
	// and 100 ms; only tests set other values.
	crossingTime, noopInterval time.Duration
	// Log gets events of single clients, at debug level. nil: none.
	Log *slog.Logger
}

// interval returns the time of one packet in nanoseconds. The rate must be a bound.
func (o *Options) interval() int64 { return int64(time.Second) / int64(o.MessagesPerSecond) }

// cost returns the cost of packets and bytes in a client's bucket, in nanoseconds.
func (o *Options) cost(packets, bytes int) int64 {
	interval := o.interval()
	return interval*int64(packets) +
		interval*int64(bytes)/int64(max(4<<10, 2*o.MaxPayload/o.MessagesBurst))
}

// withDefaults fills zero fields.
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
	number(&o.arguments, 1000)
	number(&o.attachments, 16)
	number(&o.attachmentBytes, o.MaxPayload)
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
