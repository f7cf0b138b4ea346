// Package replicated is a store whose journal is on several nodes, so that the exchange survives
// the loss of any one machine of three. The journal is the log of etcd's raft: an append is durable
// once a majority has it on disk. Each node keeps data derived from the journal (images,
// projections and history) in a local store of its own. Open opens one node's store, a
// persistence.Replica.
//
// # One entry's way
//
// A caller's append becomes an entry with the owner's token, the sequence that it follows, a
// digest, and a number. The leader adds the entry to its log. It sends the entry to the others
// while it writes and syncs the entry itself: one sync covers all queued entries. When a majority
// has the entry, each node applies it to its machine (persistence/internal/machine), a pure
// function of the entries before: done, already there, fenced, or gap. The node that proposed the
// entry answers the number with this outcome, and no other event does. So a refused append stays
// refused wherever the log is replayed, and a delayed copy answers no other caller.
//
// # Owners
//
// An owner's token is raised by an entry, too. It is not raft's term: a node that loses the lead
// and wins it again continues under its token, if no other owner came between. When Acquire
// returns, this node has applied each earlier entry that will ever count. A node that stops leading
// answers all callers that the outcome is unknown: an error that is not persistence.Definite. A
// token below the newest one applied here is fenced permanently, and any node can refuse it.
//
// # What no node may do
//
//   - acknowledge an entry, or vote, before the entry or the vote is on its disk: see raftlog
//   - vote with a log that has lost its end: the log's HEAD shows it, and the folder is not opened
//   - take part with a folder that has no log: the disk was replaced, and the entries that the node
//     acknowledged are gone. Only the formation of a cluster creates a log, and a membership change
//     that awaits the node, which then is another member
//   - take part as an older copy of its folder. A folder lists the names of its starts, and peers
//     record each node's newest one before they accept its frames. They accept another one once the
//     node states that it follows on that one. Otherwise the folder is not opened again. Peers
//     recognize a copy only if they have received a start that is newer than the copy.
//   - drop entries that another member lacks, unless they exceed Options.LogMax, that an owner has
//     not trimmed, or that the node itself needs: for the images of its local store (see Trim), or
//     for its archive (see Hold).
//
// # Clocks
//
// Nodes exchange their clocks. One that is too far from the median of all does not own the engine.
// Transmission delays count in a clock's favour, and a difference between only two clocks proves
// neither wrong.
//
// # Nodes that could not serve
//
// A node whose clock is wrong, whose program does not read the format, or whose engine reports
// Unfit, campaigns last: it waits three times as long for a leader. So a fit node with the whole
// log is elected, if there is one. Otherwise the unfit node is elected. It replicates the entries
// that the others lack, and its engine hands the lead to a fit node, if there is one. A node whose
// engine has reported Unfit notifies the others.
//
// # Formats
//
// Each frame carries the newest format of entries and records that its sender's program reads. A
// format newer than the cluster's first is written once an entry of the kind Format is applied. The
// leader proposes it when all members read it. A joining node must read the applied format. A
// program that does not read it, because an older one was started again, stops applying: its node
// receives no more of the journal, and votes.
//
// # The node and its goroutine
//
// A node has no clock, goroutine or network: ticks, frames and proposals are its inputs, and it
// calls back. Raft's own election timer draws from a source that cannot be reproduced, so the node
// counts silent ticks itself, with an injected source. One goroutine of the store owns the node. A
// simulation plays three nodes with disks whose power fails between any two writes, and a network
// that loses, doubles and swaps frames; a seed repeats it.
//
// # Members
//
// The membership is a part of the machine's state, and each log begins after a state. It assigns
// each log an id, by which raft identifies its node, and never reuses one. A cluster is formed when
// all of its nodes are present and none has a log, and no node takes part before each has one. From
// then on entries change the members, one change at a time. A node that is to join is awaited. When
// a start of it without a log asks, the leader assigns an id, and sends the state that its log
// begins after: that of the floor, the entry up to which all members have the log, and the highest
// one up to which any may have dropped it. The node is a learner, without a vote until it has the
// log. Then it is promoted, or replaces a voter: raft needs majorities of both sets of voters until
// it has left the old one. A removed node is notified by its peers, notes it in its folder, and
// ends.
//
// When the disks of a majority are permanently lost, an operator lets one voter survive. Its log
// gets an entry that leaves it alone, in another epoch of the IDs, and from then on all of its log
// counts. Entries that the others had acknowledged and it lacks are lost. One of them that comes
// back is notified of its removal.
//
// A node that joins after the journal's beginning was trimmed first fetches a copy of a member's
// local store (Copies), of a follower if possible. The copy becomes its store atomically and
// durably. Then its log is created, from the newest offer. So a log never exists without the store
// that it continues. A mark in the folder distinguishes a copy from a store whose log is lost.
// After a crash at any step the next start begins again. A copy is of the member's newest image,
// and the floor is no higher than an owner's trim, which is below its images.
//
// A member that lacks entries which all others have dropped cannot catch up. It votes, because it
// holds all that it acknowledged, and it logs that it must be replaced.
//
// # Connections
//
// A member opens connections to another one (Dial), which accepts them (Accept): so the packages
// above the store reach the leader, outside the log. The link proves both names. Only members that
// have a log have such connections, by the membership applied at each end: an awaited or removed
// node may still send the frames of a joining one, because the configuration names it. Its
// connections end when its removal is applied.
//
//	open.go         a node's start, until it is in its cluster
//	membership.go   the nodes, as raft and the links see them
//	offer.go        how a node without a log joins
//	copies.go       and its copy of a store, if needed
//	folder.go       a cluster of one node, made by a restore
//	formation.go    how the nodes of a new cluster wait for each other
//	survive.go      a node that survives alone
//	store.go        the store: its goroutine, proposals, views
//	journal.go      owners, appends, reads, trims
//	standing.go     a node's view of the others, and waits for it
//	clocks.go       the others' clocks
//	market.go       the market part of the configuration
//	formats.go      enabling newer formats of entries
//	confirmation.go whether an owner is still one
//	transfer.go     handing the lead over
//	connections.go  connections for the packages above
//	observer.go     and those of observers, which are not members
//	local.go        images and projections: the local store
//	node.go         raft's state machine between its inputs and outputs
//	receive.go      frames of peers
//	doubts.go       accusations by peers, and impossible messages
//	proposals.go    numbers, and the callers that wait for them
//	trim.go         dropping the log's beginning
//	index.go        which entries are the journal's batches
//	frame.go        frames as bytes
//	logger.go       raft's lines
//	certify.go      the cluster's authority, and the nodes' certificates
package replicated
