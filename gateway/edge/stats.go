package edge

import (
	"exchange/actors"
	"exchange/gateway/socketio"
	"exchange/gateway/stream"
)

// The numbers of the edge for the metrics.

// Engine returns the engine; nil: the exchange is starting, or is a follower.
func (e *Edge) Engine() *actors.Engine { return e.engine.Load() }

// Serves reports whether this process is a follower that serves clients.
func (e *Edge) Serves() bool {
	a := e.api.Load()
	return a != nil && a.Ready() == nil
}

// Throttled calls f with the count of answers with 429 for each limit.
func (e *Edge) Throttled(each func(refused uint64, limit string)) {
	for i, l := range e.limits.all() {
		each(l.throttled.Load(), rateNames[i])
	}
}

// Configuration returns when the configuration was last applied, in Unix time, and whether a reload
// was refused since.
func (e *Edge) Configuration() (at int64, stale bool) {
	return e.configured.at.Load(), e.configured.stale.Load()
}

// StreamStats returns the counts of the event stream; false: there is no stream.
func (e *Edge) StreamStats() (_ socketio.Stats, _ stream.Stats, ok bool) {
	s := e.stream.sockets.Load()
	if s == nil {
		return socketio.Stats{}, stream.Stats{}, false
	}
	return s.server.Stats(), s.hub.Stats(), true
}
