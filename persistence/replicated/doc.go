// Package replicated is a store whose journal is on several nodes, so that the exchange outlives
// any one machine of three. The journal is the log of etcd's raft: an append is durable when a
// majority has it on its disks. What each node derives from the journal, images, projections and
// history, is in a local store of its own. Open opens one node's store, a persistence.Replica.
//
// # One entry's way
//
// A caller's append becomes an entry with the owner's token, the sequence that it follows, a
// digest, and a number. The node that leads adds the entry to its log. It sends the entry to the
// others while it writes and syncs it itself: one sync for all that has gathered. When a majority
// has the entry, each node applies it to its machine (persistence/internal/machine), a pure
// function of the entries before: done, already there, fenced, or gap. The node that proposed the
// entry answers the number with that, and nothing else does. So an append that was refused stays
// refused wherever the log is applied again, and a delayed copy answers no other caller.
//
// # Owners
//
// An owner's token is raised by an entry, too. It is not raft's term: a node that loses the lead
// and wins it again goes on under its token, if no other owner came between. When Acquire returns,
// this node has applied each earlier entry that will ever count. A node that stops leading tells
// all callers that the outcome is unknown: an error that is not persistence.Definite. A token that
// is below the newest one applied here is fenced for ever, and any node can say so.
//
// # What no node may do
//
//   - acknowledge an entry before it is on its disk, or vote before the vote is: see raftlog
//   - vote with a log that has lost its end: the log's HEAD tells, and the folder is not opened
//   - take part with a folder that has no log: the disk was replaced, and what the node has
//     acknowledged is gone. Only the forming of a cluster makes a log, and a change of the
//     membership that awaits the node, which then is another member
//   - take part as an older copy of its folder. A folder has the names of its starts, and peers
//     remember the newest one of each node before they listen to it. They listen to another one
//     once the node says that it follows on that one. Otherwise the folder is not opened again. A
//     copy is told from the folder by the peers that have heard of a start since it was made.
//   - forget entries that another member lacks, unless they are more bytes than Options.LogMax,
//     that an owner has not trimmed, or that the node itself needs: for the images of its local
//     store, as its own Trim says, or for its archive, as its Hold says.
//
// # Clocks
//
// Nodes tell each other their clocks. One that is too far from the median of all does not own the
// engine. What the way of the frames leaves in doubt counts for nothing, and so does a difference
// between two clocks of which none is known to be right.
//
// # Nodes that could not serve
//
// A node whose clock is wrong, whose program does not read the format, or whose engine says so
// (Unfit), campaigns last: it waits three times as long for a leader. So another one is elected
// that could serve, if there is one with the whole log. If there is none, the node is elected. Then
// it gives the others what they lack, and its engine hands the lead over: to one that could serve,
// if there is one. A node whose engine has said Unfit tells the others so.
//
// # Formats
//
// Each frame tells the newest format of entries and records that its sender's program reads. One
// that is newer than the cluster's first is written once an entry of the kind Format is applied.
// The node that leads proposes it when all members read it. A node that joins must read what is
// applied. A program that does not read it, because an older one was started again, applies no
// more: its node has no more of the journal, and votes.
//
// # The node and its goroutine
//
// A node has no clock, goroutine or network: ticks, frames and proposals are put into it, and it
// calls back. raft's own election timer draws from a source that cannot be repeated, so the node
// counts silent ticks itself, and draws where it is told to. One goroutine of the store owns the
// node. A simulation plays three nodes with disks whose power fails between any two writes, and a
// network that loses, doubles and swaps frames; a seed repeats it.
//
// # Members
//
// The membership is a part of the machine's state, and each log begins behind a state. It gives
// each log an id, by which raft knows its node, and no id twice. A cluster is formed when all of
// its nodes are there and none has a log, and no node takes part before each has one. From then on
// entries change the members, one change at a time. A node that is to join is awaited. When a start
// of it without a log asks, the node that leads gives it an id, and the state that its log begins
// behind: that behind the floor, the entry up to which all members have the log, and the highest
// one up to which any may have forgotten it. It is a learner, and has no vote until it has the log.
// Then it is promoted, or takes a voter's place: raft needs majorities of both sets of voters until
// it has left the one before. A node that is removed is told so by its peers, notes it in its
// folder, and ends.
//
// When the disks of a majority are gone for good, an operator lets one voter survive. Its log gets
// an entry that leaves it alone, in another epoch of the IDs, and from then on all of its log
// counts. What the others had acknowledged and it lacks is lost. One of them that comes back is
// told that it is removed.
//
// A node that joins when the beginning of the journal is forgotten first gets a copy of a member's
// local store (Copies), of one that follows if that can be. The copy becomes its store at once, and
// durably. Then its log is made, behind the newest offer. So a log is never there without the store
// that it goes on from. A mark in the folder tells a copy from a store whose log is lost. A crash
// at any step makes the next start begin again. A copy is of the member's newest image, and the
// floor is no higher than what an owner has trimmed, which is below its images.
//
// A member that lacks what all others have forgotten cannot go on. It votes, because all that it
// has acknowledged is there, and its log says that it must be replaced.
//
// # Connections
//
// A member opens connections to another one (Dial), which takes them (Accept): that is how what is
// above the store reaches the node that leads, and none of it is in the log. The link proves both
// names. Only members that have a log have such connections, as far as each end has applied: a node
// that is awaited or removed may still say the frames of one that joins, because the configuration
// names it. Its connections end when its removal is applied.
//
//	open.go       the way of a node into its cluster
//	membership.go the nodes, as raft and the links know them
//	joining.go    how a node without a log joins
//	copying.go    and how it gets a copy of a store, if it needs one
//	founding.go   a cluster of one node, which a restore makes
//	forming.go    how the nodes of a new cluster wait for each other
//	survive.go    a node that goes on alone
//	store.go      the store: its goroutine, proposals, views
//	journal.go    owners, appends, reads, trims
//	following.go  what a node knows of the others, and waiting for it
//	clocks.go     the others' clocks
//	agreeing.go   the market part of the configuration
//	formats.go    which format of entries may be written
//	confirming.go whether an owner is one still
//	handing.go    handing the lead over
//	connecting.go connections for what is above
//	observing.go  and those of observers, which are no members
//	local.go      images and projections: the local store
//	node.go       raft's state machine between its inputs and outputs
//	receive.go    frames of peers
//	doubts.go     what peers say of this node, and what cannot be
//	proposals.go  numbers, and the callers that wait for them
//	trimming.go   forgetting the log's beginning
//	index.go      which entries are the journal's batches
//	frame.go      frames as bytes
//	logger.go     raft's lines
//	certify.go    the cluster's authority, and the nodes' certificates
package replicated
