// Package duplex takes messages over a connection between two nodes: whole, in order, and many at
// once. What gathers while the last write is under way is the next write, so a busy connection has
// few, and a quiet one has no delay. A side that has nothing to say sends beats, and a side that
// hears nothing for a while takes the connection for broken.
//
// It knows nothing of what the messages say.
//
//	duplex.go  connections
package duplex
