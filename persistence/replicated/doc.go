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
// has the entry, each node applies it to its machine (persistence/internal/machine). The outcome
// (done, already there, fenced, or gap) is a pure function of the entry and those that precede it.
// The proposing node looks up its callers by the entry's number and returns this outcome. Nothing
// else reports an append as done. So a refused append stays refused wherever the log is replayed,
// and a late duplicate answers no other caller.
//
// # Owners
//
// An Acquire entry raises the owner's token. The token is not raft's term: a node that loses the
// lead and wins it again continues under its token, if no other owner came between. When Acquire
// returns, this node has applied every earlier entry that can still take effect. A node that stops
// leading answers all callers that the outcome is unknown: an error that is not
// persistence.Definite. A token below the newest one applied here is fenced permanently, and any
// node can refuse it.
//
// # What no node may do
//
//   - acknowledge an entry, or vote, before the entry or the vote is on its disk: see raftlog
//   - vote with a log that has lost its end: the log's HEAD shows the loss, and the folder is not
//     opened
//   - take part with a folder that has no log: the disk was replaced, and the entries that the node
//     acknowledged are gone. A log is created only when a cluster is formed, or for a node that a
//     membership change awaits, which then is another member
//   - take part as an older copy of its folder: see Starts
//   - drop entries that a member lacks, unless it lacks more than Options.LogMax
//   - drop entries that no owner has trimmed
//   - drop entries that the node itself needs: for the images of its local store (see Trim), or for
//     its archive (see Hold)
//
// # Starts
//
// Each start of a node has a name: its number and a nonce. The node's folder lists them. Peers
// record a node's newest start before they accept its frames. They accept a new start only if the
// node states that it succeeds the recorded one. A node that cannot state so runs on an older copy
// of its folder: once two voters have found so, that folder is never opened again. Peers recognize
// a copy only if they have recorded a start that is newer than the copy.
//
// # Clocks
//
// Nodes exchange their clocks. A node whose clock is too far from the median of all does not own
// the engine. Transmission delays count in a clock's favour, and a difference between only two
// clocks proves neither wrong.
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
// Each frame states the newest format of entries and records that its sender's program reads. Nodes
// write a format newer than the cluster's initial one only after a Format entry is applied. The
// leader proposes that entry when all members read the format. A joining node must read the applied
// format. If an older program that does not read it is started again, its node applies no more of
// the journal, but still votes.
//
// # The node and its goroutine
//
// A node has no clock, goroutine or network: ticks, frames and proposals are its inputs, and
// callbacks its outputs. Raft's own election timer draws from a source that cannot be reproduced,
// so the node counts silent ticks itself, with an injected source. One goroutine of the store owns
// the node. A simulation runs three nodes on disks whose power fails between any two writes, and a
// network that loses, duplicates and reorders frames; a seed repeats a run.
//
// # Members
//
// The membership is a part of the machine's state, and each log begins after a state. The
// membership assigns each log an ID, by which raft identifies its node, and never reuses one. A
// cluster is formed when all of its nodes are present and none has a log. No node takes part before
// each has created its log. From then on entries change the members, one change at a time. A node
// that is to join is first awaited. When it is started without a log and asks, the leader assigns
// an ID, and sends the state at the floor, from which the new log starts. Every member has the log
// up to the floor, except members that lack more than LogMax, and none has dropped entries above
// it. The node is a learner, without a vote, until it has the log. Then it is promoted, or replaces
// a voter: until the change is complete, raft needs majorities of the old and of the new voters. A
// removed node is notified by its peers, records it in its folder, and ends.
//
// When the disks of a majority are permanently lost, an operator lets one voter survive. Its log
// gets an entry that leaves it alone, with IDs from a new range, and from then on everything in its
// log is committed. Acknowledged entries that it lacks are lost. A lost member that comes back is
// notified of its removal.
//
// A node that joins after the journal's beginning was trimmed first fetches a copy of a member's
// local store (Copies), of a follower if possible. The copy becomes its store atomically and
// durably. Then its log is created, from the newest offer. So a log never exists without the store
// that it continues. A mark in the folder distinguishes a copy from a store whose log is lost.
// After a crash at any step the next start begins again. A copy is of the member's newest image,
// and the floor is no higher than an owner's trim, which is below that owner's images.
//
// A member that lacks entries which all others have dropped cannot catch up. It still votes,
// because it holds all that it acknowledged, and it logs that it must be replaced.
//
// # Connections
//
// A member opens connections to another one (Dial), which accepts them (Accept). Over them the
// packages above the store reach the leader, outside the log. The link proves both names. Only
// members that have a log may open them, by the membership applied at each end. An awaited or
// removed node may still send join frames, because the config file names it. A member's connections
// end when its removal is applied.
//
//	startup.go      what Open needs, and a node that is joining its cluster
//	open.go         the start of a node, until it is in its cluster
//	membership.go   changes of the members, and each member's state
//	offer.go        the state from which a joining node's log starts
//	copies.go       the copy of a store that a joining node may need
//	folder.go       the log of a cluster of one node, made by a restore
//	formation.go    the nodes of a new cluster, and their wait for each other
//	survive.go      a node that survives alone
//	store.go        the store: its proposals, tokens and end
//	journal.go      owners, appends, reads, trims
//	standing.go     the cluster as a node sees it, and waits for another view
//	clocks.go       the others' clocks
//	market.go       the market part of the configuration
//	formats.go      newer formats of entries, once all members read them
//	confirmation.go linearizable reads, and the owner's confirmation
//	transfer.go     the transfer of the lead
//	connections.go  connections for the packages above
//	observer.go     connections of observers, which are not members
//	local.go        images and projections: the local store
//	node.go         the node's state, view, elections and proposals
//	work.go         the node's goroutine, between raft's inputs and outputs
//	raft.go         members and entries in raft's terms
//	receive.go      frames of peers
//	doubts.go       accusations by peers, and impossible messages
//	proposals.go    numbers, and the callers that wait for them
//	trim.go         the log's beginning, and when entries are dropped
//	index.go        which entries are the journal's batches
//	frame.go        frames as bytes
//	logger.go       raft's log lines
//	certify.go      the cluster's authority, and the nodes' certificates
package replicated
