// Package owner claims the store for one process at a time, and keeps the claim alive by beats.
// Standbys wait here until the owner has stopped, or shows no sign of life. Packages above it start
// an engine behind a Hold: actors on a store of its own, a node on its replica.
//
//	hold.go     the claim, its beats, and how it is lost and given back
//	standby.go  the wait for another owner
//	testing.go  beats on a simulated clock
package owner
