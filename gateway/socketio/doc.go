// Package socketio is a Socket.IO server: protocol 5 on Engine.IO 4, over polling and websockets,
// on fasthttp. It is independent of the exchange: its owner registers hooks and sends frames.
//
//	server := socketio.New(socketio.Options{})
//	server.Namespace("/", socketio.Namespace{
//		Event: func(s *socketio.Socket, e *socketio.Event) { e.Ack(len(e.Args)) },
//	})
//	http := fasthttp.Server{Handler: server.Handle, KeepHijackedConns: true}
//	...
//	server.Shutdown()
//	http.Shutdown()
//
// # A session's life
//
// A client opens a session with a handshake, over polling or a websocket. A polling session may
// move to a websocket later, once. In its session the client joins namespaces, and in each it is a
// Socket. The owner sees the Socket: Connect, then events, then Disconnect. The session ends when
// the client ends it, breaks the protocol or a bound, leaves a ping unanswered, or does not read,
// or when the owner closes it. Each end has a Reason.
//
// # Sending
//
// Events, deliveries, acknowledgements and the protocol's own packets for a client go through one
// queue, in order. Ack is for one client. For many clients, make the frames once by AppendFrame and
// give the same bytes to each socket's Deliver. While nothing waits for the client, Deliver writes
// without blocking. Bytes that the system does not take are queued, up to QueueBytes. The Policy of
// a Delivery defines whether it may be dropped from a full queue.
//
// # Requirements of the HTTP server
//
// KeepHijackedConns is set, because this package closes websockets. The server's WriteTimeout
// bounds the answer to a poll, its ReadTimeout a request; neither cuts a poll that is held. It must
// accept bodies of MaxPayload bytes. A larger accepted body is answered with 413, and
// Server.TooLarge gives the same answer for a refused body. A wrapped connection is written to
// directly if the wrapper has the method SyscallConn of the connection below. Otherwise each write
// to a client takes a goroutine.
//
//	options.go    bounds and timings
//	server.go     the sessions, and their end
//	handle.go     requests, handshakes, errors, CORS
//	polling.go    GET and POST
//	websocket.go  reading websockets, the upgrade
//	session.go    one client: packets, heartbeat, namespaces
//	socket.go     one client in a namespace: the owner's API
//	packet.go     packets of Engine.IO and Socket.IO
//	crossing.go   polls that arrive after their session was closed
//	frame.go      websocket frames to clients
//	queue.go      deliveries that wait for a client, and the policies
//	writer.go     sending
//	write_unix.go, write_other.go   writes that do not block
//	wheel.go      the one timer
//	reason.go     reasons for the end of a session
//	stats.go      counts
package socketio
