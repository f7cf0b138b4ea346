// Package socketio is a Socket.IO server: protocol 5 on Engine.IO 4, over polling and websockets,
// on fasthttp. It knows nothing of what it is used for.
//
//	server := socketio.New(socketio.Options{})
//	server.Namespace("/", socketio.Namespace{
//		Connect: func(s *socketio.Socket, auth json.RawMessage) error { return s.Emit("welcome", s.ID()) },
//		Event:   func(s *socketio.Socket, e *socketio.Event) { e.Ack(len(e.Args)) },
//	})
//	http := fasthttp.Server{Handler: server.Handle, KeepHijackedConns: true}
//	...
//	server.Shutdown()
//	http.Shutdown()
//
// # A session's life
//
// A client opens a session by a handshake, on polling or on a websocket. A session on polling may
// move to a websocket later, once. In its session the client joins namespaces; in each it is a
// Socket, which is what the owner sees: Connect, then events, then Disconnect. The session ends
// when the client says so, when it breaks the protocol or a bound, when it does not answer a ping,
// when it does not take what it is sent, or when the owner closes it. There is a Reason for each.
//
// # Sending
//
// Everything for a client takes one way out, in order: what is emitted, delivered, acknowledged,
// and the protocol's own packets. Emit and Ack are for one client. For many, make the frames once
// by AppendFrame and give the same bytes to each socket's Deliver. While nothing waits for the
// client, that is a write which does not block. What the system does not take waits, up to
// QueueBytes; the Policy of a Delivery says what may be dropped when it is too much, and nothing is
// ever dropped unless its policy says so.
//
// # What the HTTP server must be like
//
// KeepHijackedConns is set: websockets are closed by this package. Its WriteTimeout bounds how long
// the answer to a poll may take, its ReadTimeout how long a request may; neither cuts a poll that
// is held. It takes bodies of MaxPayload bytes; larger ones that it takes are answered with 413,
// and of those that it does not take, Server.TooLarge makes the same answer. A connection that is
// wrapped, to be counted for example, is written to directly if the wrapper has the method
// SyscallConn of the connection below; else each client that is sent something has a goroutine for
// that time.
//
//	options.go    bounds and timings
//	server.go     the sessions, and their end
//	handle.go     requests, handshakes, errors, CORS
//	polling.go    GET and POST
//	websocket.go  reading websockets, the upgrade
//	session.go    one client: packets, heartbeat, namespaces
//	socket.go     one client in a namespace; what an owner uses
//	packet.go     packets of Engine.IO and Socket.IO
//	frame.go      websocket frames of ours
//	queue.go      what waits for a client, and the policies
//	writer.go     the way out
//	write_*.go    writing without waiting
//	wheel.go      the one timer
//	reason.go     every way to end
//	stats.go      counts
package socketio
