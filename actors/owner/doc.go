// Package owner claims the store for one process at a time, and keeps the claim alive by
// heartbeats. Standbys wait here until the owner has stopped, or shows no sign of life. Packages
// above it start an engine on a Hold: actors on a store of its own, a node on its replica.
//
//	hold.go     the claim, its heartbeats, its loss and its release
//	standby.go  the wait for another owner
//	testing.go  heartbeats on a simulated clock
package owner
