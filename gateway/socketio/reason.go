package socketio

// A Reason is the cause of the end of a socket or a session.
type Reason uint8

// The reasons. All but the first two end the whole session, with all its namespaces.
//
//tidy:keep a reason that clients and metrics see has a name, even if no owner asks for it
const (
	ClientDisconnect Reason = iota // the client left the namespace
	ServerDisconnect               // Socket.Disconnect
	ServerClose                    // Socket.Close
	ServerShutdown                 // Server.Shutdown
	ClientClose                    // the client closed the session
	TransportClose                 // its connection ended
	PingTimeout                    // no pong in time
	ConnectTimeout                 // no namespace in time
	ParseError                     // a packet that the protocol does not allow
	InvalidText                    // text that is not UTF-8
	PayloadTooLarge                // a websocket message over MaxPayload
	TooManyMessages                // more packets than a client may send
	OverlappingPolls               // two GETs or two POSTs at once
	SlowClient                     // more than QueueBytes waited for the client
	StalledClient                  // the client read nothing for StallTimeout
	reasons                        // number of reasons
)

// reasonTable has each reason's text, and the code of the websocket's close frame. Code 0 is none:
// the connection is reset, because a client that does not read would not read the frame either.
var reasonTable = [reasons]struct {
	text string
	code uint16
}{
	ClientDisconnect: {"client disconnect", 0},
	ServerDisconnect: {"server disconnect", 0},
	ServerClose:      {"server close", 1000},
	ServerShutdown:   {"server shutdown", 1001},
	ClientClose:      {"client close", 1000},
	TransportClose:   {"transport close", 0},
	PingTimeout:      {"ping timeout", 0},
	ConnectTimeout:   {"connect timeout", 1008},
	ParseError:       {"parse error", 1002},
	InvalidText:      {"invalid text", 1007},
	PayloadTooLarge:  {"payload too large", 1009},
	TooManyMessages:  {"too many messages", 1008},
	OverlappingPolls: {"overlapping polls", 0},
	SlowClient:       {"slow client", 0},
	StalledClient:    {"stalled client", 0},
}

func (r Reason) String() string {
	if r < reasons {
		return reasonTable[r].text
	}
	return "unknown"
}
