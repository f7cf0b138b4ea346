package gateway

import (
	"exchange/gateway/socketio"
	"exchange/gateway/stream"
)

// The metrics of the event stream.
var (
	streamSessions = describe("stream_sessions",
		"Clients of the event stream by transport. At "+
			"exchange_limits{limit=\"stream_connections\"} new ones are refused.", "transport")
	streamPolls = describe("stream_held_polls",
		"Requests of polling clients that wait for something to say.")
	streamSubscriptions = describe("stream_subscriptions",
		"Subscribers by kind of channel, each pair and timeframe counted.", "channel")
	streamCommands = describe("stream_commands_total",
		"Orders, cancels and other commands over sockets that were answered.")
	streamLogins     = describe("stream_logins", "Clients of the event stream that are logged in.")
	streamHandshakes = describe("stream_handshakes_total", "Sessions that were opened.")
	streamRefused    = describe("stream_refused_total",
		"Requests of the stream that got an error, by its text. Session ID unknown is everyday "+
			"after a restart; forbidden ones met a limit.", "error")
	streamClosed = describe("stream_closed_total",
		"Sessions that ended, by reason. slow client and stalled client could not take what they "+
			"had asked for; ping timeout are those that vanished.", "reason")
	streamPackets = describe("stream_received_packets_total", "Packets from clients.")
	streamWrites  = describe("stream_writes_total",
		"Writes to clients. Each has all that there was for one client at that moment.")
	streamBytes  = describe("stream_sent_bytes_total", "Bytes written to clients.")
	streamQueued = describe("stream_queued_bytes",
		"What waits for clients that are slow and counts against stream.queue_bytes, at present.")
	streamUnits = describe("stream_units_total",
		"Records that were made events, once for each channel that told of them.")
	streamDropped = describe("stream_dropped_total",
		"Events that slow clients did not get: of ticker, orderbook.20, bbo and candles that are "+
			"open (latest) because newer ones took their place, of diff and depth (resync) "+
			"because a whole book did.", "policy")
	streamResyncs = describe("stream_resyncs_total",
		"Whole books that were sent to clients who had lost differences.")
)

var streamFamilies = []family{streamSessions, streamPolls, streamSubscriptions, streamLogins,
	streamCommands,
	streamHandshakes,
	streamRefused, streamClosed, streamPackets, streamWrites,
	streamBytes, streamQueued, streamUnits, streamDropped, streamResyncs}

// stream gives the numbers of the event stream.
func (s sink) stream(server socketio.Stats, hub stream.Stats) {
	s.gauge(streamSessions, float64(server.Polling), "polling")
	s.gauge(streamSessions, float64(server.WebSocket), "websocket")
	s.gauge(streamPolls, float64(server.HeldPolls))
	for kind, n := range hub.Subscriptions {
		s.gauge(streamSubscriptions, float64(n), kind)
	}
	s.gauge(streamLogins, float64(hub.Logins))
	s.counter(streamCommands, hub.Commands)
	s.counter(streamHandshakes, server.Handshakes)
	for text, n := range server.Refused {
		if text != "" {
			s.counter(streamRefused, n, text)
		}
	}
	for reason, n := range server.Closed {
		s.counter(streamClosed, n, reason.String())
	}
	s.counter(streamPackets, server.PacketsIn)
	s.counter(streamWrites, server.Writes)
	s.counter(streamBytes, server.BytesOut)
	s.gauge(streamQueued, float64(server.QueuedBytes))
	s.counter(streamUnits, hub.Units)
	s.counter(streamDropped, server.Dropped[socketio.Latest]+server.Dropped[socketio.Final],
		"latest")
	s.counter(streamDropped, server.Dropped[socketio.Resync], "resync")
	s.counter(streamResyncs, hub.Resyncs)
}
