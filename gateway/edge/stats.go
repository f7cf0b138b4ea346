package edge

import (
	"exchange/actors"
	"exchange/gateway/socketio"
	"exchange/gateway/stream"
)

// The numbers of the edge for the metrics.

// Engine returns the engine; nil: the exchange is starting, or is a follower.
func (e *Edge) Engine() *actors.Engine { return e.engine.Load() }

// Serves reports whether this process, without an engine, follows and serves.
func (e *Edge) Serves() bool {
	a := e.api.Load()
	return a != nil && a.Ready() == nil
}

// Throttled gives the answers with 429 by the name of their limit.
func (e *Edge) Throttled(each func(refused uint64, limit string)) {
	for i, l := range e.limits.all() {
		each(l.refused.Load(), rateNames[i])
	}
}

// Configuration returns when the configuration was last applied, in Unix time, and whether a reload
// was refused since.
func (e *Edge) Configuration() (at int64, stale bool) {
	return e.configured.at.Load(), e.configured.stale.Load()
}

// StreamStats returns the numbers of the event stream. False: there is none.
func (e *Edge) StreamStats() (_ socketio.Stats, _ stream.Stats, ok bool) {
	s := e.stream.sockets.Load()
	if s == nil {
		return socketio.Stats{}, stream.Stats{}, false
	}
	return s.server.Stats(), s.hub.Stats(), true
}
