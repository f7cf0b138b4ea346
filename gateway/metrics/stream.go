package metrics

import (
	"exchange/gateway/socketio"
	"exchange/gateway/stream"
)

// stream gives the numbers of the event stream.
func (s sink) stream(server socketio.Stats, hub stream.Stats) {
	sessions := s.metric("stream_sessions",
		"Clients of the event stream by transport. At "+
			"exchange_limits{limit=\"stream_connections\"} new ones are refused.", "transport")
	sessions.gauge(float64(server.Polling), "polling")
	sessions.gauge(float64(server.WebSocket), "websocket")
	s.metric("stream_held_polls",
		"Requests of polling clients that wait for an event.").
		gauge(float64(server.HeldPolls))
	subscriptions := s.metric("stream_subscriptions",
		"Subscribers by kind of channel, each pair and timeframe counted.", "channel")
	for kind, n := range hub.Subscriptions {
		subscriptions.gauge(float64(n), kind)
	}
	s.metric("stream_logins", "Clients of the event stream that are logged in.").
		gauge(float64(hub.Logins))
	s.metric("stream_commands_total",
		"Orders, cancels and other commands over sockets that were answered.").counter(hub.Commands)
	s.metric("stream_handshakes_total", "Sessions that were opened.").counter(server.Handshakes)
	refused := s.metric("stream_refused_total",
		"Requests of the stream that got an error, by its text. Session ID unknown is everyday "+
			"after a restart; forbidden ones met a limit.", "error")
	for text, n := range server.Refused {
		if text != "" {
			refused.counter(n, text)
		}
	}
	closed := s.metric("stream_closed_total",
		"Sessions that ended, by reason. slow client and stalled client could not take what they "+
			"had asked for; ping timeout are those that vanished.", "reason")
	for reason, n := range server.Closed {
		closed.counter(n, reason.String())
	}
	s.metric("stream_received_packets_total", "Packets from clients.").counter(server.PacketsIn)
	s.metric("stream_writes_total",
		"Writes to clients. Each has all that there was for one client at that moment.").
		counter(server.Writes)
	s.metric("stream_sent_bytes_total", "Bytes written to clients.").counter(server.BytesOut)
	s.metric("stream_queued_bytes",
		"Bytes that wait for slow clients and count against stream.queue_bytes, at present.").
		gauge(float64(server.QueuedBytes))
	s.metric("stream_units_total",
		"Records that became events, once for each channel that sent them.").
		counter(hub.Units)
	dropped := s.metric("stream_dropped_total",
		"Events that slow clients did not get: of ticker, orderbook.20, bbo and candles that are "+
			"open (latest) because newer ones took their place, of diff and depth (resync) "+
			"because a whole book did.", "policy")
	dropped.counter(server.Dropped[socketio.Latest]+server.Dropped[socketio.Final],
		"latest")
	dropped.counter(server.Dropped[socketio.Resync], "resync")
	s.metric("stream_resyncs_total",
		"Whole books that were sent to clients who had lost differences.").counter(hub.Resyncs)
}
