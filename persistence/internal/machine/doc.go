// Package machine is the state that the nodes of a replicated store agree on. Each node applies the
// committed entries of the shared log to it, in the order of the log. The effect of an entry
// depends on the entry and the state alone: not on a clock, a local store, or the node. So all
// nodes have the same state after the same entry, and a node that applies its log again gets the
// same answers. An append that was refused stays refused.
//
// The owner's token is part of this state, and grows with each acquire entry. A node that has
// applied an acquire entry has applied every earlier entry that can take effect.
//
//	state.go    the state, and the effect of each entry
//	members.go  the nodes of the cluster
//	answer.go   the outcome of an entry, and the error that a store returns for it
//	entry.go    an entry as bytes
//	image.go    the state as bytes
package machine
