// Package socketio is a Socket.IO server: protocol 5 on Engine.IO 4, over polling and websockets,
// on fasthttp. It knows nothing of exchanges: its owner registers hooks and sends frames.
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
// A client opens a session by a handshake, on polling or on a websocket. A session on polling may
// move to a websocket later, once. In its session the client joins namespaces, and in each it is a
// Socket. The owner sees the Socket: Connect, then events, then Disconnect. The session ends when
// the client ends it, breaks the protocol or a bound, leaves a ping unanswered, or does not read,
// or when the owner closes it. There is a Reason for each.
//
// # Sending
//
// Events, deliveries, acknowledgements and the protocol's own packets for a client take one way
// out, in order. Ack is for one client. For many clients, make the frames once by
// AppendFrame and give the same bytes to each socket's Deliver. While nothing waits for the client,
// that is a write which does not block. Bytes that the system does not take wait, up to QueueBytes.
// The Policy of a Delivery says whether it may be dropped when too much waits.
//
// # Requirements of the HTTP server
//
// KeepHijackedConns is set, because this package closes websockets. The server's WriteTimeout
// bounds the answer to a poll, its ReadTimeout a request; neither cuts a poll that is held. It
// takes bodies of MaxPayload bytes. A larger body that it takes is answered with 413, and
// Server.TooLarge makes the same answer for a body that it refused. A wrapped connection is written
// to directly if the wrapper has the method SyscallConn of the connection below. Otherwise each
// client has a goroutine while something is sent to it.
//
//	options.go    bounds and timings
//	server.go     the sessions, and their end
//	handle.go     requests, handshakes, errors, CORS
//	polling.go    GET and POST
//	websocket.go  reading websockets, the upgrade
//	session.go    one client: packets, heartbeat, namespaces
//	socket.go     one client in a namespace; what an owner uses
//	packet.go     packets of Engine.IO and Socket.IO
//	crossing.go   polls that arrive after their session was closed
//	frame.go      websocket frames to clients
//	queue.go      deliveries that wait for a client, and the policies
//	writer.go     the way out
//	write_unix.go, write_other.go   writes that do not wait
//	wheel.go      the one timer
//	reason.go     every way to end
//	stats.go      counts
package socketio
